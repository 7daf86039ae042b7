"""Who makes calls in bench_calls.py: ours, llguidance's JSON grammar written greedily, and nothing held at all.

The two others read one prompt, which lists each function with its arguments and asks for a JSON object of `name` and
`arguments`. To say that no function fits they have `null`, which the grammar allows only where that is right: this is
to their favour. A function that is called by a name with dots keeps it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from bfcl_cases import Case
from numpy.typing import NDArray
from trie_peers import LLGuidance

from kernel.api import Kernel
from kernel.errors import KernelError
from kernel.memory.passes import Cost
from kernel.opcode.opcode import SchemaOpcode
from kernel.opcode.tools import read_tools
from kernel.prompt import Part
from kernel.tools.tools import Tool, Tools
from kernel.write.writer import write_freely

TOKENS = 160
LONGEST = 1500
"""Characters of a request that are read."""


@dataclass(frozen=True)
class Made:
    """What a contestant made of a request; the name is "" where no function fits, `fault` why there is no call."""

    name: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    passes: int = 0
    tokens: int = 0
    fault: str = ""


class Contestant:
    """Makes calls with one kernel."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    def call(self, case: Case) -> Made:
        """Return the call that a request asks for; what cannot be made is a fault of the contestant."""
        before = self.kernel.memory.cost
        with self.kernel.lock:
            try:
                name, arguments, fault = self._call(case)
            except (KernelError, ValueError) as error:
                name, arguments, fault = "", {}, f"{type(error).__name__}: {error}"[:200]
        cost: Cost = self.kernel.memory.cost - before
        return Made(name, arguments, cost.passes, cost.tokens, fault)

    def _call(self, case: Case) -> tuple[str, Mapping[str, Any], str]:
        raise NotImplementedError


class Ours(Contestant):
    """`Kernel.call`; functions that the schema reader refuses are left out."""

    def _call(self, case: Case) -> tuple[str, Mapping[str, Any], str]:
        call = self.kernel.call(Tools([Tool(opcode) for opcode in opcodes(case)]), case.request[:LONGEST])
        return call.name, call.arguments, ""


class Held(Contestant):
    """llguidance: a JSON object of name and arguments, most probable legal token each time; forced ones ride along."""

    class _Grammar(LLGuidance):
        head = ""

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(kernel)
        self._engine = self._Grammar(kernel.vocabulary)

    def _call(self, case: Case) -> tuple[str, Mapping[str, Any], str]:
        from llguidance import LLMatcher

        found = opcodes(case)
        ways = [_way(opcode) for opcode in found] + ([] if case.wanted else [{"const": None}])
        source = LLMatcher.grammar_from_json_schema({"anyOf": ways}, overrides={"whitespace_flexible": False})
        engine = self._engine
        engine._matcher = LLMatcher(engine._tokenizer, source)
        if engine._matcher.is_error():
            return "", {}, f"no grammar: {engine._matcher.get_error()[:150]}"
        text = self._written(engine, self.kernel.vocabulary.prompt(_prompt(case)))
        return _read(text, case)

    def _written(self, engine: Any, prompt: list[int]) -> str:
        best: list[int] = []
        matcher, ids = engine._matcher, [*prompt]

        def read(_: int, __: int, row: NDArray[np.float32]) -> None:
            engine.mask()
            allowed = np.flatnonzero(np.unpackbits(engine._bits.view(np.uint8), bitorder="little")[: len(row)])
            best.append(int(allowed[row[allowed].argmax()]))

        ids += _forced(matcher)
        while not matcher.is_stopped() and len(ids) < len(prompt) + TOKENS:
            self.kernel.memory.open(ids, read)
            ids.append(best.pop())
            if not matcher.consume_token(ids[-1]):
                raise ValueError(matcher.get_error()[:150])
            ids += _forced(matcher)
        said = [token for token in ids[len(prompt) :] if token not in self.kernel.vocabulary.eog]
        return self.kernel.vocabulary.join(said).decode(errors="replace")


class Free(Contestant):
    """Nothing is held; the first JSON object or list that can be read is the call, and the text ends with it."""

    def _call(self, case: Case) -> tuple[str, Mapping[str, Any], str]:
        vocabulary = self.kernel.vocabulary
        text = ""

        def heard(ids: tuple[int, ...], *_: Any) -> None:
            nonlocal text
            text = vocabulary.join([token for token in ids if token not in vocabulary.eog]).decode(errors="replace")
            if text.rstrip().endswith(("}", "]", "null")) and not _read(text, case)[2]:
                raise InterruptedError

        try:
            written = write_freely(self.kernel.memory, vocabulary.prompt(_prompt(case)), max_tokens=TOKENS, watch=heard)
            text = written.text
        except InterruptedError:
            pass  # a call can be read
        return _read(text, case)


CONTESTANTS: dict[str, type[Contestant]] = {"ours": Ours, "llguidance": Held, "unconstrained": Free}


def opcodes(case: Case) -> Sequence[type[SchemaOpcode]]:
    """Return the functions of a case as opcodes; two of one name are two entries of which the first is taken."""
    known: dict[str, Any] = {}
    for function in case.functions:
        known.setdefault(function["name"], function)
    return read_tools(list(known.values())).opcodes


def _way(opcode: type[SchemaOpcode]) -> dict[str, Any]:
    """Return the schema of a call of one function."""
    arguments = {"type": "object", "additionalProperties": False, **opcode.schema_}
    return {
        "type": "object",
        "properties": {"name": {"const": opcode.original}, "arguments": arguments},
        "required": ["name", "arguments"],
        "additionalProperties": False,
    }


def _prompt(case: Case) -> tuple[Part, ...]:
    listed = [{key: function.get(key) for key in ("name", "description", "parameters")} for function in case.functions]
    return (
        Part("Functions:\n", trusted=True),
        Part("".join(f"{json.dumps(function, ensure_ascii=False)}\n" for function in listed)[:6000]),
        Part(
            '\nAnswer with one JSON object {"name": ..., "arguments": {...}} that calls the function which the request '
            "asks for, or with null where none fits.\n\nRequest:",
            trusted=True,
        ),
        Part(f" {' '.join(case.request[:LONGEST].split())}"),
        Part("\nAnswer: ", trusted=True),
    )


def _forced(matcher: Any) -> list[int]:
    found: list[int] = [] if matcher.is_stopped() else matcher.compute_ff_tokens()
    if found and not matcher.consume_tokens(found):
        raise ValueError(matcher.get_error()[:150])
    return found


def _read(text: str, case: Case) -> tuple[str, Mapping[str, Any], str]:
    """Read a call leniently: the first JSON value in the text that names a function, whatever stands around it."""
    if re.match(r"\s*null\b", text):
        return "", {}, ""
    names = {function["name"] for function in case.functions}
    for value in _values(text):
        inner = value[0] if isinstance(value, list) and value else value
        if not isinstance(inner, dict):
            continue
        inner = inner.get("function", inner) if isinstance(inner.get("function", inner), dict) else inner
        name = inner.get("name", inner.get("function"))
        arguments = inner.get("arguments", inner.get("parameters", {}))
        if isinstance(name, str) and name in names and isinstance(arguments, dict):
            return name, arguments, ""
        if len(inner) == 1 and (only := next(iter(inner))) in names and isinstance(inner[only], dict):
            return only, inner[only], ""
    return "", {}, f"no call in {text[:100]!r}"


def _values(text: str) -> Iterator[Any]:
    decoder = json.JSONDecoder(strict=False)
    for match in re.finditer(r"[{\[]", text):
        try:
            yield decoder.raw_decode(text[match.start() :])[0]
        except ValueError:
            continue
