"""One kernel, many threads, tasks and questions: the answers are those that one thread gets, one after the other.

The kind of fault: native state that is shared without a lock. Two threads in the runtime abort the process.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from kernel import Kernel
from kernel.backends.scripted import ScriptedBackend
from kernel.choose.decision import Decision
from kernel.choose.question import PromptIds, Question
from kernel.choose.rule import Rule, RuleName
from kernel.errors import BackendError, UsageError

COLOURS = ["red", "green", "blue"]
PROMPTS = [f"The colour of thing {i} is" for i in range(6)]

EIGHT = """
import sys
from concurrent.futures import ThreadPoolExecutor
from kernel import Kernel
from kernel.backends.llama_cpp import LlamaCppBackend
kernel = Kernel(LlamaCppBackend(sys.argv[1], n_ctx=256, n_seq=32, threads=1))
prompts = [f"The colour of thing {i} is" for i in range(8)]
def ask(i):
    return [kernel.choose(prompts[i], ["red", "green", "blue"]).text for _ in range(12)]
alone = [ask(i) for i in range(8)]
with ThreadPoolExecutor(8) as threads:
    together = list(threads.map(ask, range(8)))
kernel.close()
print(together == alone)
"""


@pytest.fixture
def make(tools: SimpleNamespace) -> Callable[[], Kernel]:
    return lambda: made(tools)


@pytest.fixture
def kernel(make: Callable[[], Kernel]) -> Kernel:
    return make()


def made(tools: SimpleNamespace) -> Kernel:
    vocabulary = tools.toy_vocabulary(["The", "colour", "of", "thing", "is", "red", "green", "blue"])
    return Kernel(ScriptedBackend(vocabulary, tools.hashed_row(len(vocabulary)), n_ctx=2048, n_seq=64))


def same(a: Decision, b: Decision) -> bool:
    """Whether two decisions say the same, whatever they cost."""
    return a.text == b.text and np.allclose(a.raw, b.raw) and np.allclose(a.shares, b.shares) and a.null is None


def test_eight_threads_on_one_model_get_the_answers_of_one(tiny_models: dict[str, Path]) -> None:
    """In a child process, because what goes wrong here ends it: 96 decisions of the real runtime."""
    done = subprocess.run([sys.executable, "-c", EIGHT, str(tiny_models["llama"])], capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, "True"), done.stderr[-2000:]


def test_a_decision_is_not_broken_into(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    """While one thread is in the runtime, no other one is, whatever both call."""
    inside, most = [0], [0]
    decode = kernel.backend.decode

    def watched(*args: object) -> None:
        inside[0] += 1
        most[0] = max(most[0], inside[0])
        time.sleep(0.001)
        decode(*args)  # type: ignore[arg-type]
        inside[0] -= 1

    monkeypatch.setattr(kernel.backend, "decode", watched)
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda p: kernel.choose(p, COLOURS, rule="greedy"), PROMPTS * 4))
    assert most == [1]


def test_closing_waits_for_the_decision_that_is_made_and_ends_the_next(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not a freed memory under the feet of a thread, but its answer; then a typed error."""
    begun, answers = threading.Event(), []
    decode = kernel.backend.decode

    def slow(*args: object) -> None:
        begun.set()
        time.sleep(0.05)
        decode(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(kernel.backend, "decode", slow)
    thread = threading.Thread(target=lambda: answers.append(kernel.choose(PROMPTS[0], COLOURS).text))
    thread.start()
    begun.wait()
    kernel.close()
    thread.join()
    assert answers[0] in COLOURS
    with pytest.raises(BackendError, match="closed"):
        kernel.choose(PROMPTS[0], COLOURS)


def test_tasks_choose_without_blocking_the_loop(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    """While decisions are made, the loop turns; the answers are those of `choose`."""
    decode = kernel.backend.decode

    def slow(*args: object) -> None:
        time.sleep(0.02)
        decode(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(kernel.backend, "decode", slow)
    turns = [0]

    async def ticking() -> None:
        while True:
            turns[0] += 1
            await asyncio.sleep(0.001)

    async def main() -> list[Decision]:
        ticker = asyncio.create_task(ticking())
        found = await asyncio.gather(*(kernel.achoose(prompt, COLOURS) for prompt in PROMPTS))
        ticker.cancel()
        return list(found)

    made = asyncio.run(main())
    assert turns[0] > 10
    assert [d.text for d in made] == [kernel.choose(prompt, COLOURS).text for prompt in PROMPTS]


def test_a_cancelled_task_leaves_the_kernel_as_it_was(kernel: Kernel) -> None:
    """The next answer is the right one."""

    async def main() -> Decision:
        given_up = asyncio.create_task(kernel.achoose(PROMPTS[0], COLOURS))
        await asyncio.sleep(0)
        given_up.cancel()
        return await kernel.achoose(PROMPTS[1], COLOURS)

    assert asyncio.run(main()).text == kernel.choose(PROMPTS[1], COLOURS).text


def test_several_prompts_share_a_pass(kernel: Kernel) -> None:
    """Six prompts in one pass; each answer is that of the prompt alone."""
    together = kernel.choose_many(PROMPTS, COLOURS)
    assert [d.passes for d in together] == [1, 0, 0, 0, 0, 0]
    alone = [kernel.choose(prompt, COLOURS) for prompt in PROMPTS]
    assert all(map(same, together, alone))
    assert len({d.text for d in alone}) > 1, "the prompts are answered in different ways"


def test_null_prompts_are_read_once_for_all(kernel: Kernel, make: Callable[[], Kernel]) -> None:
    """The six share one null prompt: seven prompts are evaluated, and the calibrated scores are those of each alone."""
    together = kernel.choose_many(PROMPTS, COLOURS, null="The colour is")
    fresh = make()
    for made, prompt in zip(together, PROMPTS, strict=True):
        alone = fresh.choose(prompt, COLOURS, null="The colour is")
        assert made.text == alone.text
        np.testing.assert_allclose(made.scores, alone.scores)
    assert sum(d.passes for d in together) == 1


def test_questions_of_every_kind_may_stand_together(kernel: Kernel) -> None:
    """Two sets, a forced one, a greedy one and more prompts than a pass takes: the order is that of the questions."""
    first, second = kernel.compile([" red", " green"]), kernel.compile([" blue", " is"])
    ids = [tuple(kernel.vocabulary.plain(prompt)) for prompt in PROMPTS]
    questions = [Question(PromptIds(i), s) for i in ids * 5 for s in (first, second)]
    questions[3] = Question(PromptIds(ids[0]), first, first.subset([" red"]))
    questions[4] = Question(PromptIds(ids[1]), second, rule=Rule(RuleName.GREEDY))
    many = kernel.decide_many(questions)
    alone = [kernel.decide(question) for question in questions]
    assert [d.text for d in many] == [d.text for d in alone]
    assert [d.rule for d in many] == [d.rule for d in alone]
    assert sum(d.passes for d in many) < sum(d.passes for d in alone) / 3
    assert kernel.decide_many([]) == []


def test_a_question_that_does_not_fit_is_told(kernel: Kernel) -> None:
    """By the same error as alone."""
    with pytest.raises(UsageError, match="no options to choose among"):
        kernel.choose_many(PROMPTS, [])


def test_prompts_that_fit_alone_but_not_together_are_decided_one_after_the_other(tools: SimpleNamespace) -> None:
    """Two prompts of 60 ids in 100 cells: the answers are those of `choose`, and no error."""
    vocabulary = tools.toy_vocabulary(["red", "green"])
    kernel = Kernel(ScriptedBackend(vocabulary, tools.hashed_row(len(vocabulary)), n_ctx=100, n_seq=64))
    prompts = ["a" * 60, "b" * 60]
    together = kernel.choose_many(prompts, ["red", "green"])
    assert [d.text for d in together] == [kernel.choose(prompt, ["red", "green"]).text for prompt in prompts]
    assert all(d.passes for d in together)
