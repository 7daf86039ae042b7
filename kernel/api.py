"""The front door: load a model, choose among texts, compile a cartridge's opcodes. Knows no cartridge and no log."""

from __future__ import annotations

import logging
import re
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Self

from kernel import recent
from kernel.backends.base import Backend
from kernel.choose.aio import awaited
from kernel.choose.chooser import Chooser
from kernel.choose.decision import Decision
from kernel.choose.learned import Learned, unordered
from kernel.choose.many import choose_many
from kernel.choose.null_cache import NULLS_KEPT, NullCache
from kernel.choose.options import asked, option_literals
from kernel.choose.outcome import Judge
from kernel.choose.question import PromptIds, Question
from kernel.choose.rule import Rule, RuleName
from kernel.errors import BuildError, StoreError
from kernel.memory.listed import Listed
from kernel.memory.memory import Memory
from kernel.models.catalogue import cache_dir
from kernel.prompt import Part, Piece, Prompt, parted
from kernel.text.bulk import Progress
from kernel.tools.caller import ToolCalls
from kernel.trie.opcodes import Literal, OpcodeSet
from kernel.trie.store import compile_cached, compiled_from

SETS_KEPT = 32

KEPT_FROM = 50_000
"""A set of so many opcodes takes longer to compile than to map from disk."""

_log = logging.getLogger(__name__)


class Kernel(ToolCalls):
    """One model, one memory, any number of choices.

    Threads may share it: decisions, texts that are written and `compile` wait for each other (`lock`).

    >>> kernel = Kernel.load("smollm2")                                       # doctest: +SKIP
    >>> kernel.choose("The opposite of open is", [" shut", " opener"]).text   # doctest: +SKIP
    ' shut'
    """

    def __init__(self, backend: Backend, *, cache: Path | None = None) -> None:
        """Take a model.

        Args:
            cache: folder in which what many null prompts say is kept for the next time; None is nowhere.
        """
        self.backend = backend
        self.vocabulary = backend.vocabulary
        self.memory = Memory(backend)
        self.lock = self.memory.lock
        nulls = None
        if cache is not None:
            nulls = NullCache(cache / "nulls", f"{backend.fingerprint} {version('llama-cpp-python')}", _log.warning)
        self._chooser = Chooser(self.memory, nulls)
        self._sets: OrderedDict[tuple[Literal, ...], OpcodeSet] = OrderedDict()
        self._learned: dict[str, Learned] = {}
        self._given: Path | None = None
        # null prompts mostly stay the same, and there may be a hundred of them; leads and lines come again
        self._known_ids = lru_cache(NULLS_KEPT)(lambda parts, start: tuple(self.vocabulary.prompt(parts, start=start)))

    @classmethod
    def load(
        cls,
        model: str = "smollm2",
        *,
        n_ctx: int = 2048,
        n_seq: int = 128,
        threads: int | None = None,
        gpu_layers: int = 0,
    ) -> Self:
        """Load a model by name, `hf:OWNER/REPO/FILE.gguf` or path; a named one is fetched when it is missing.

        Raises:
            ModelError: unknown, not to be had, not a model.
        """
        from kernel.backends.llama_cpp import LlamaCppBackend
        from kernel.models.catalogue import resolve

        path = resolve(model)
        backend = LlamaCppBackend(path, n_ctx=n_ctx, n_seq=n_seq, threads=threads, gpu_layers=gpu_layers)
        return cls(backend, cache=cache_dir())

    def take(self, path: Path) -> None:
        """Map the next set that is compiled to be kept from a file that the command `compile` wrote.

        `compile` then raises StoreError where the file is damaged, or is not of that set and this tokenizer.
        """
        self._given = path

    def compile(
        self, literals: Sequence[Literal | str], *, keep: bool = True, progress: Progress | None = None
    ) -> OpcodeSet:
        """Tokenize literals once into a trie; equal lists are compiled once.

        Args:
            keep: whether a set of KEPT_FROM or more is kept on disk, so that the next process only maps it.
            progress: told how many texts are tokenized, when that takes more than a second.
        """
        key = tuple([x if isinstance(x, Literal) else Literal(x) for x in literals])
        with self.lock:
            known = recent.recall(self._sets, key)
            if known is None:
                known = self._compiled(key, keep, progress)
                recent.keep(self._sets, key, known, SETS_KEPT)
            return known

    def _compiled(self, key: tuple[Literal, ...], keep: bool, progress: Progress | None) -> OpcodeSet:
        if keep and self._given is not None:
            known, self._given = compiled_from(self._given, key, self.vocabulary), None
            return known
        if keep and len(key) >= KEPT_FROM:
            return compile_cached(key, self.vocabulary, cache_dir() / "tries", progress=progress, note=_log.warning)
        return OpcodeSet(key, self.vocabulary, progress=progress)

    def choose(
        self,
        prompt: str,
        options: Sequence[str],
        *,
        null: Sequence[str] | str = (),
        rule: Rule | str | None = None,
        listed: bool = False,
        judge: Judge | None = None,
    ) -> Decision:
        """Choose one of the options: what the model really prefers, in one pass.

        Args:
            prompt: trusted template text; it ends where the option begins.
            options: texts. The model reads a space before one that has none, where the prompt does not end in one.
            null: the same prompt asking for nothing; several are averaged. Without one the rule is `exact`.
            rule: `calibrated` (the default with a null), `exact`, `greedy`, `sample`, or a Rule.
            listed: show the options before the prompt, as a set: in any order the scores are the same.
            judge: says how it ends (`Decision.outcome`), such as `Thresholds()`; None always chooses.

        Raises:
            UsageError, BuildError, ContextError, LogitsError.
        """
        return self.decide(self.question(prompt, options, null, rule, listed=listed, judge=judge))

    achoose = awaited(choose)

    def choose_many(
        self,
        prompts: Sequence[str],
        options: Sequence[str],
        *,
        null: Sequence[str] | str = (),
        rule: Rule | str | None = None,
        listed: bool = False,
        judge: Judge | None = None,
    ) -> list[Decision]:
        """Choose one of the options behind each prompt, several prompts in one pass where memory allows.

        The arguments and the answers are those of `choose`.
        """
        return self.decide_many([self.question(p, options, null, rule, listed=listed, judge=judge) for p in prompts])

    def question(
        self,
        prompt: str,
        options: Sequence[str],
        null: Sequence[str] | str = (),
        rule: Rule | str | None = None,
        *,
        listed: bool = False,
        judge: Judge | None = None,
    ) -> Question:
        """Return what `choose` asks."""
        literals = option_literals(prompt, options)
        made = rule if rule is None or isinstance(rule, Rule) else Rule(rule)  # type: ignore[arg-type]
        try:
            ids = self.ids(asked(prompt, null, literals if listed else ()))
            return Question(ids, self.compile(literals, keep=False), rule=made, judge=judge)
        except BuildError as error:
            raise BuildError(re.sub(r"^opcode", "option", str(error)), error.pairs) from error

    def ids(self, prompt: Prompt) -> PromptIds:
        """Tokenize a prompt, its null prompts and its rotations."""
        tokenize = self.vocabulary.prompt
        return PromptIds(
            self._set(prompt.parts) or tuple(tokenize(prompt.parts)),
            tuple(self._set(null) or self._known_ids(null, True) for null in prompt.nulls),
            tuple(self._set(parts) or tuple(tokenize(parts)) for parts in prompt.rotations),
        )

    def _set(self, parts: tuple[Piece, ...]) -> Listed | None:
        """Tokenize a prompt that shows a set, piece by piece; None where it shows none."""
        lead, lines, question = parted(parts)
        if lines is None:
            return None
        each = tuple(self._known_ids((Part(text, trusted=lines.trusted),), False) for text in lines.texts)
        return Listed(self._known_ids(lead, True), each, self._known_ids(question, False))

    def teach(self, learned: Learned) -> None:
        """Take what was learned: from now on the rule `learned` goes by it for its opcodes.

        Raises StoreError where it was learned for another model.
        """
        mine = (self.backend.fingerprint, self.vocabulary.fingerprint)
        if (learned.keys.model, learned.keys.tokenizer) != mine:
            raise StoreError(f"that was learned for the model {learned.keys.model!r}, and this is {mine[0]!r}")
        self._learned[learned.keys.opcodes] = learned

    def learned_of(self, opcodes: OpcodeSet, prompt: PromptIds | None = None) -> Learned | None:
        """Return what was learned of some opcodes, behind a prompt where one is given; None where nothing was."""
        if not self._learned:
            return None
        found = self._learned.get(unordered([literal.body for literal in opcodes.literals]))
        if found is None or (prompt is not None and found.order((prompt.main, *prompt.rotations)) is None):
            return None
        return found

    def decide(self, question: Question) -> Decision:
        """Choose among the legal opcodes of a compiled set; see `Chooser.choose` for the errors."""
        return self._chooser.choose(self._taught(question))

    adecide = awaited(decide)

    def decide_many(self, questions: Sequence[Question]) -> list[Decision]:
        """Decide each question, in the same passes where their options are few or alike; see `choose_many`."""
        return choose_many(self._chooser, [self._taught(question) for question in questions])

    def _taught(self, question: Question) -> Question:
        """Return a question under the rule `learned` with what was learned of its opcodes."""
        if question.by.name is not RuleName.LEARNED or question.learned is not None:
            return question
        return replace(question, learned=self.learned_of(question.opcodes))

    def close(self) -> None:
        """Free the model's memory, when the decision that is being made is made. What comes later is a BackendError."""
        self._end_worker()
        with self.lock:
            self.backend.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
