"""The cursor shows the same step however it got there."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dispatch.log.cursor import Cursor
from dispatch.log.reader import LogReader
from dispatch.log.replay import Replay, Verdict


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cursor")


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(moves=st.lists(st.integers(-3, 40), max_size=12), window=st.integers(1, 9))
def test_every_way_to_a_step_shows_the_same_state(
    moves: list[int], window: int, folder: Path, counter: SimpleNamespace
) -> None:
    """Thirty decisions; numbers outside lead to the start or to the last one."""
    path = folder / "log.jsonl"
    if not path.exists():
        counter.write(path, decisions=30)
    with Cursor(path, counter.make, window=window) as cursor:
        for n in moves:
            step = cursor.go(n)
            assert cursor.n == max(0, min(n, 30))
            assert (step is None) == (n < 1)
            if step is not None:
                assert step.record.n == cursor.n
                assert step.engine.state_hash() == step.record.state


def test_the_cursor_stops_before_the_damage(tmp_path: Path, counter: SimpleNamespace) -> None:
    """Going on is harmless, and the report says where it is."""
    path = counter.write(tmp_path / "log.jsonl")
    counter.forge(path, 6, state="s0.0")
    with Cursor(path, counter.make) as cursor:
        for n in (3, 9, 10, 11):
            cursor.go(n)
        assert cursor.n == 4
        assert cursor.report().verdict is Verdict.DIFFERENT
        assert cursor.go(2) is not None
        assert cursor.n == 2


def test_kept_steps_do_not_change_when_the_game_goes_on(tmp_path: Path, counter: SimpleNamespace) -> None:
    """A replay's own engine is live; the cursor's steps are copies."""
    path = counter.write(tmp_path / "log.jsonl")
    with LogReader(path) as reader:
        live = list(Replay(reader, counter.make))
    assert live[0].engine is live[-1].engine
    with Cursor(path, counter.make) as cursor:
        first = cursor.go(1)
        cursor.go(10)
        assert first is not None
        assert first.engine.state_hash() == first.record.state
