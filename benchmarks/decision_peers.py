"""Who decides in bench_decision.py: our rules, and what others do with the same model, prompt and texts.

Each gets a prompt as token ids (guidance: as text) and the bodies of the legal opcodes, and returns the body that it
chose. Each has a context of its own, keeps what is equal in two prompts, and stops when the body is decided: what
closes an opcode is the same for all of them. All are used as their own documentation does it.
"""

# ruff: noqa: D102 - what the methods do stands once, in Contestant

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from trie_peers import LLGuidance

from kernel.api import Kernel
from kernel.backends.llama_cpp import LlamaCppBackend
from kernel.choose.question import Question
from kernel.choose.rule import Rule, RuleName
from kernel.memory.memory import Memory
from kernel.prompt import Prompt
from kernel.trie.opcodes import Literal

N_CTX = 1024


@dataclass(frozen=True)
class Case:
    """One decision: a prompt, which of the set's opcodes are legal, and the body that is asked for, if one is."""

    prompt: Prompt
    ids: tuple[int, ...]
    legal: tuple[int, ...]
    wanted: str = ""
    rotated: Prompt | None = None
    """What `OursRotations` reads in place of the prompt."""

    @cached_property
    def text(self) -> str:
        return "".join(part.text for part in self.prompt.parts)


@dataclass
class Calls:
    """Counts what goes through llama_decode, whoever calls it, and the time that it takes."""

    passes: int = 0
    tokens: int = 0
    seconds: float = 0.0
    _undo: list[Callable[[], None]] = field(default_factory=list)

    def __enter__(self) -> Calls:
        import llama_cpp
        import llama_cpp.llama_cpp as inner

        plain = inner.llama_decode

        def counted(context: Any, batch: Any) -> Any:
            self.passes += 1
            self.tokens += batch.n_tokens
            start = time.perf_counter()
            code = plain(context, batch)
            self.seconds += time.perf_counter() - start
            return code

        for module in (llama_cpp, inner):
            setattr(module, "llama_decode", counted)  # noqa: B010 - it comes from a star import, which mypy does not see
            self._undo.append(lambda module=module: setattr(module, "llama_decode", plain))  # type: ignore[misc]
        return self

    def __exit__(self, *_: object) -> None:
        for undo in self._undo:
            undo()


class Contestant:
    """What the benchmark calls; `use` is for a list of opcodes, `choose` for one decision."""

    package = ""
    keeps = False
    """Whether it keeps more from one decision to the next than what two prompts begin with."""

    def __init__(self, model: Path, threads: int) -> None:
        """Load the model into a context of its own."""

    def use(self, literals: Sequence[Literal]) -> None:
        """Take a list of opcodes; not timed."""
        self.bodies = [literal.body for literal in literals]

    def choose(self, case: Case) -> str:
        """Return the body of the opcode that it chooses."""
        raise NotImplementedError


class Ours(Contestant):
    """This project by one of its rules, as `run` calls it: the prompt is tokenized within the time."""

    rule = RuleName.EXACT
    keeps = True

    def __init__(self, model: Path, threads: int) -> None:
        self._kernel = Kernel(LlamaCppBackend(model, n_ctx=N_CTX, threads=threads))

    def use(self, literals: Sequence[Literal]) -> None:
        super().use(literals)
        self._opcodes = self._kernel.compile(literals)

    def choose(self, case: Case) -> str:
        legal = self._opcodes.subset_of(case.legal)
        question = Question(self._kernel.ids(self.prompt(case)), self._opcodes, legal, Rule(self.rule))
        return self.bodies[self._kernel.decide(question).index]

    def prompt(self, case: Case) -> Prompt:
        """Return what is read."""
        return case.prompt


class OursGreedy(Ours):
    """Our baseline rule."""

    rule = RuleName.GREEDY


class OursCalibrated(Ours):
    """Our default rule on the cartridge's own prompts: the options as a set, and a null prompt."""

    rule = RuleName.CALIBRATED


class OursCold(OursCalibrated):
    """The same at the beginning of a session."""

    keeps = False


class OursRotations(OursCalibrated):
    """The same rule on lists in every rotated order, each with a null prompt of its own."""

    keeps = False

    def prompt(self, case: Case) -> Prompt:
        if case.rotated is None:
            raise ValueError("its prompt lists nothing that could be rotated")
        return case.rotated


class Gbnf(Contestant):
    """llama-cpp-python with a GBNF grammar of the bodies at temperature 0, ended by an end-of-text token."""

    package = "llama-cpp-python"

    def __init__(self, model: Path, threads: int) -> None:
        import llama_cpp

        self._api: Any = llama_cpp
        self._llama = llama_cpp.Llama(
            str(model), n_ctx=N_CTX, n_batch=N_CTX, n_threads=threads, n_threads_batch=threads, verbose=False
        )
        self._grammars: dict[tuple[int, ...], Any] = {}

    def use(self, literals: Sequence[Literal]) -> None:
        super().use(literals)
        self._grammars = {}

    def choose(self, case: Case) -> str:
        made = self._llama.create_completion(list(case.ids), **self._arguments(case))
        return str(made["choices"][0]["text"])  # type: ignore[index]

    def _texts(self) -> list[str]:
        return self.bodies

    def _arguments(self, case: Case) -> dict[str, Any]:
        grammar = self._grammars.get(case.legal)
        if grammar is None:
            texts = self._texts()
            text = "root ::= " + " | ".join(json.dumps(texts[i]) for i in case.legal)
            grammar = self._grammars[case.legal] = self._api.LlamaGrammar.from_string(text, verbose=False)
        return {"grammar": grammar, "temperature": 0.0, "max_tokens": 100}


class GbnfWhole(Gbnf):
    """The same with whole instructions, closer included: what a user has who needs the text itself."""

    def use(self, literals: Sequence[Literal]) -> None:
        super().use(literals)
        self._whole = {literal.text: literal.body for literal in literals}

    def choose(self, case: Case) -> str:
        text = super().choose(case)
        return self._whole.get(text, text)

    def _texts(self) -> list[str]:
        return list(self._whole)


class GbnfStopped(Gbnf):
    """The bodies again, streamed and broken off as soon as the text is one of them: one pass less.

    Nobody's documentation does so; it is the least that a grammar needs where no opcode begins another.
    """

    def choose(self, case: Case) -> str:
        text, legal = "", {self.bodies[i] for i in case.legal}
        for part in self._llama.create_completion(list(case.ids), stream=True, **self._arguments(case)):
            text += part["choices"][0]["text"]  # type: ignore[index]
            if text in legal:
                break
        return text


class Masks(Contestant):
    """llguidance: its masks on the rows of our backend, token by token; forced tokens go in with the next pass."""

    package = "llguidance"

    class _Grammar(LLGuidance):
        head = ""

    def __init__(self, model: Path, threads: int) -> None:
        self._backend = LlamaCppBackend(model, n_ctx=N_CTX, n_seq=2, threads=threads)
        self._memory = Memory(self._backend)
        self._matchers: dict[tuple[int, ...], Any] = {}

    def use(self, literals: Sequence[Literal]) -> None:
        super().use(literals)
        self._grammar = self._Grammar(self._backend.vocabulary)
        self._matchers = {}

    def choose(self, case: Case) -> str:
        engine = self._grammar
        matcher = self._matchers.get(case.legal)
        if matcher is None:
            engine.compile([self.bodies[i] for i in case.legal])
            matcher = self._matchers[case.legal] = engine._matcher
        matcher.reset()
        engine._matcher = matcher
        ids = list(case.ids)
        best: list[int] = []

        def read(_: int, __: int, row: NDArray[np.float32]) -> None:
            engine.mask()
            allowed = np.flatnonzero(np.unpackbits(engine._bits.view(np.uint8), bitorder="little")[: len(row)])
            best.append(int(allowed[row[allowed].argmax()]))

        ids += self._forced(matcher)
        while not matcher.is_stopped():
            self._memory.open(ids, read)
            ids.append(best.pop())
            engine.advance(ids[-1])
            ids += self._forced(matcher)
        said = [i for i in ids[len(case.ids) :] if i not in self._backend.vocabulary.eog]
        return self._backend.vocabulary.join(said).decode()

    @staticmethod
    def _forced(matcher: Any) -> list[int]:
        found: list[int] = [] if matcher.is_stopped() else matcher.compute_ff_tokens()
        if found and not matcher.consume_tokens(found):
            raise RuntimeError(matcher.get_error()[:200])
        return found


class Select(Contestant):
    """guidance: `select` behind the prompt's text, which it tokenizes itself."""

    package = "guidance"

    def __init__(self, model: Path, threads: int) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import guidance

            self._guidance = guidance
            self._model = guidance.models.LlamaCpp(
                str(model), n_ctx=N_CTX, n_threads=threads, n_threads_batch=threads, echo=False, enable_monitoring=False
            )
        self._selects: dict[tuple[int, ...], Any] = {}

    def use(self, literals: Sequence[Literal]) -> None:
        super().use(literals)
        self._selects = {}

    def choose(self, case: Case) -> str:
        select = self._selects.get(case.legal)
        if select is None:
            options = [self.bodies[i] for i in case.legal]
            select = self._selects[case.legal] = self._guidance.select(options, name="chosen")
        return str((self._model + case.text + select)["chosen"])


CONTESTANTS: dict[str, type[Contestant]] = {
    "ours greedy": OursGreedy,
    "ours exact": Ours,
    "ours calibrated": OursCalibrated,
    "ours cold": OursCold,
    "ours rotations": OursRotations,
    "gbnf": Gbnf,
    "gbnf whole": GbnfWhole,
    "gbnf stopped": GbnfStopped,
    "llguidance": Masks,
    "guidance": Select,
}


def failed(error: BaseException) -> str:
    """Return what a row says of a contestant that could not play."""
    if isinstance(error, ModuleNotFoundError):
        return f"not installed: {error.name}"
    said = str(error).strip().splitlines()
    print(f"{type(error).__name__}: {error}", file=sys.stderr)
    return f"{type(error).__name__}: {said[0] if said else ''}"[:160]
