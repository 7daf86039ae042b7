"""The command `write`: what is written is a value of the schema, whatever the model wants."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from typer.testing import CliRunner

from dispatch.cli import app
from dispatch.cli import write as command
from dispatch.wire.value import SCHEMA, write
from kernel.api import Kernel
from kernel.backends.llama_cpp import LlamaCppBackend
from kernel.backends.scripted import ScriptedBackend
from kernel.errors import OpcodeError
from kernel.text.vocabulary import Vocabulary


@pytest.fixture(scope="module")
def vocabulary(load: Callable[[str], Vocabulary]) -> Vocabulary:
    return load("gpt-2")


def noise(vocabulary: Vocabulary, seed: int) -> Kernel:
    """A model that wants something else each time, out of a seed; the same for the same ids before."""

    def row(before: tuple[int, ...]) -> Any:
        rng = np.random.default_rng([seed, len(before), *before[-3:]])
        return rng.standard_normal(len(vocabulary)).astype(np.float32)

    return Kernel(ScriptedBackend(vocabulary, row, n_ctx=1024))


@pytest.mark.parametrize("seed", range(6))
def test_any_model_writes_a_valid_value(vocabulary: Vocabulary, seed: int) -> None:
    """Noise instead of a model, greedy and sampled, with a budget that may run out: the value validates."""
    judge = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text()))
    kernel = noise(vocabulary, seed)
    for temperature in (0.0, 1.0):
        value = write(kernel, SCHEMA, "a parrot <|endoftext|>", max_tokens=120, temperature=temperature, seed=seed)
        judge.validate(value.value)
        assert json.loads(value.text) == value.value
        assert value.fault == ""
        assert len(value.written.ids) <= 120


def test_raw_text_is_judged_and_not_mended(vocabulary: Vocabulary) -> None:
    """What a model writes alone is shown as it is, with what is wrong with it."""
    value = write(noise(vocabulary, 1), {"type": "object"}, "a parrot", raw=True, max_tokens=12)
    assert value.value is None
    assert value.fault.startswith("no JSON")
    assert len(value.written.ids) == 12


def test_a_schema_that_cannot_be_held_is_refused(vocabulary: Vocabulary) -> None:
    """Before anything is evaluated, with its path and keyword."""
    kernel = noise(vocabulary, 1)
    with pytest.raises(OpcodeError, match=r"write: \$\.properties\.x: pattern: .*lookaround"):
        write(kernel, {"properties": {"x": {"type": "string", "pattern": "(?=a)"}}})
    with pytest.raises(OpcodeError, match="cannot be read"):
        write(kernel, Path("nowhere.json"))
    assert kernel.memory.cost.passes == 0


# -- the command ---------------------------------------------------------------------------------------------------


def run(*arguments: object) -> tuple[int, str, str]:
    """Run the command in this process; return exit code, stdout, stderr."""
    result = CliRunner().invoke(app, ["write", *map(str, arguments)], env={"COLUMNS": "200"})
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture
def loaded(vocabulary: Vocabulary, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "load_kernel", lambda *_, **__: noise(vocabulary, 3))


@pytest.mark.usefixtures("loaded")
def test_the_command_writes_a_value_of_the_schema(tmp_path: Path) -> None:
    """On stdout alone, the same for the same seed; with --json, what it cost and that it was closed."""
    schema = {"properties": {"name": {"type": "string", "maxLength": 12}, "age": {"type": "integer"}}}
    file = tmp_path / "my.schema.json"
    file.write_text(json.dumps({**schema, "required": ["name"]}))
    told = ("--schema", file, "--prompt", "a parrot", "--max-tokens", 40)
    code, out, err = run(*told)
    assert code == 0, err
    jsonschema.validate(json.loads(out), schema)
    code, again, _ = run(*told, "--temperature", 1, "--seed", 5, "--json")
    found = json.loads(again)
    jsonschema.validate(found["value"], schema)
    assert (code, found["valid"], found["fault"], found["raw"]) == (0, True, "", False)
    assert run(*told, "--temperature", 1, "--seed", 5, "--json")[1] == again
    assert json.loads(run(*told, "--temperature", 1, "--seed", 6, "--json")[1])["text"] != found["text"]


@pytest.mark.usefixtures("loaded")
def test_the_command_closes_what_the_budget_cuts_off_and_says_so() -> None:
    """The value is whole all the same."""
    code, out, err = run("--max-tokens", 40, "--json")
    found = json.loads(out)
    assert code == 0
    assert found["valid"]
    assert found["closed_tokens"] > 0
    assert "40 tokens were used up; what was open then was closed" in err


@pytest.mark.usefixtures("loaded")
def test_the_command_shows_what_is_written_with_nothing_held() -> None:
    """What is wrong with it stands on stderr, and in --json."""
    code, out, err = run("--raw", "--max-tokens", 10)
    assert code == 0
    assert out.strip()
    assert "no JSON" in err
    found = json.loads(run("--raw", "--max-tokens", 10, "--json")[1])
    assert (found["raw"], found["valid"], found["value"]) == (True, False, None)


def test_it_is_no_cartridge() -> None:
    """Misuse of `run`: exit code 2, one line, nothing loaded."""
    result = CliRunner().invoke(app, ["run", "story"])
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("error: no cartridge 'story'")
    assert result.stderr.count("\n") == 1


@pytest.mark.usefixtures("loaded")
def test_a_schema_that_is_none_fails_in_one_line(tmp_path: Path) -> None:
    """A file that is not there, one that is no JSON, one that cannot be held: exit code 1."""
    file = tmp_path / "s.json"
    for text, said in [
        (None, "cannot be read"),
        ("{", "the schema is no JSON"),
        ('{"type": "sting"}', "$: type: 'sting' is not a type"),
    ]:
        if text is not None:
            file.write_text(text)
        code, out, err = run("--schema", file)
        assert (code, out) == (1, "")
        assert said in err


@pytest.mark.model
def test_smollm2_writes_a_character(smollm2_path: Path) -> None:
    """Real weights, greedy: a whole character, none of it closed for the model."""
    with Kernel(LlamaCppBackend(smollm2_path, n_ctx=512, n_seq=4)) as kernel:
        value = write(kernel, SCHEMA, "a lighthouse keeper with a parrot", max_tokens=200)
    jsonschema.validate(value.value, json.loads(SCHEMA.read_text()))
    assert value.written.closed == 0
