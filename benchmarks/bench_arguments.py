"""What does it cost to hold an argument, and how do the grammar engines compare?

    python benchmarks/bench_arguments.py                   compile and step times of each kind of argument
    python benchmarks/bench_arguments.py --peers           and correctness, latency and size of llguidance, glrmask,
                                                           xgrammar and outlines-core, as far as they can be imported

Kinds that are finite are held by tries: `legal` gives the ids, `advance` moves. Open ones are slots: a mask and a move,
once through the bare engine and once through ours. Warm-up first; medians and p99 in microseconds a token. The peers
hold `{"text": string of at most 64 characters, "n": 0..180}` and are asked about 120 valid and 120 invalid texts, each
tokenized by the vocabulary's own tokenizer. The last line of stdout is one JSON document.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from harness import make_parser, publish
from llguidance import LLMatcher
from llguidance.numpy import allocate_token_bitmask, fill_next_token_bitmask

from kernel.backends.llama_cpp import read_vocabulary
from kernel.canon import canonical
from kernel.shape.parameters import read_parameters
from kernel.shape.recogniser import Recogniser
from kernel.shape.shape import seq
from kernel.text.vocabulary import Vocabulary
from kernel.write.matcher import Matcher
from kernel.write.slots import Slot, tokenizer
from kernel.write.stage import TriePlace
from kernel.write.stages import Stages

ROOT = Path(__file__).resolve().parent.parent
VOCABULARY = ROOT / ".cache" / "vocabs" / "ggml-vocab-gpt-2.gguf"
Row = dict[str, Any]

NODE = {"type": "object", "properties": {"v": {"type": "integer"}, "next": {"$ref": "#/$defs/n"}}, "required": ["v"]}
KINDS: dict[str, tuple[Row, list[Row]]] = {
    "enum": ({"room": {"enum": ["kitchen", "bedroom", "bath", "hall"]}}, [{"room": "kitchen"}, {"room": "hall"}]),
    "integer 0..180": ({"n": {"type": "integer", "minimum": 0, "maximum": 180}}, [{"n": 7}, {"n": 180}]),
    "decimal 16..26 by 0.5": (
        {"c": {"type": "number", "minimum": 16, "maximum": 26, "multipleOf": 0.5}},
        [{"c": 16.5}, {"c": 26.0}],
    ),
    "two integers 0..9999": (
        {name: {"type": "integer", "minimum": 0, "maximum": 9999} for name in "xy"},
        [{"x": 7, "y": 42}, {"x": 9999, "y": 1234}],
    ),
    "small object and union": (
        {
            "to": {
                "anyOf": [
                    {"type": "object", "properties": {"x": {"enum": [0, 1]}, "y": {"enum": [0, 1]}}, "required": ["x"]},
                    {"type": "null"},
                ]
            }
        },
        [{"to": {"x": 1, "y": 0}}, {"to": None}],
    ),
    "string of 64": (
        {"text": {"type": "string", "maxLength": 64}},
        [{"text": "Call the plumber about the kitchen sink"}, {"text": "Grüße 🦙"}],
    ),
    "string and integer": (
        {"text": {"type": "string"}, "n": {"type": "integer", "minimum": 0, "maximum": 180}},
        [{"text": "Call the plumber about the kitchen sink", "n": 120}],
    ),
    "pattern": (
        {"code": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{4}$"}},
        [{"code": "AB-1234"}, {"code": "XY-0007"}],
    ),
    "number": ({"x": {"type": "number"}}, [{"x": -12.75}, {"x": 1e300}]),
    "array of integers": (
        {"l": {"type": "array", "items": {"type": "integer"}, "maxItems": 8}},
        [{"l": [1, 22, 333, 4444]}],
    ),
    "recursive object": ({"list": {"$ref": "#/$defs/n"}}, [{"list": {"v": 1, "next": {"v": 2, "next": {"v": 3}}}}]),
    "anything": ({"x": {}}, [{"x": {"a": [1, "two", None], "b": {"c": True}}}]),
}


def main() -> None:
    """Measure what is asked for."""
    parser = make_parser(__doc__)
    parser.add_argument("--vocabulary", type=Path, default=VOCABULARY, help="GGUF file (default: %(default)s)")
    parser.add_argument(
        "--repeat", type=int, default=40, help="passes over each text, the first 3 unmeasured (default: %(default)s)"
    )
    parser.add_argument("--peers", action="store_true", help="compare the grammar engines")
    given = parser.parse_args()
    if given.repeat < 4:
        parser.error(f"--repeat {given.repeat}: the first 3 passes are not measured")
    vocabulary = read_vocabulary(given.vocabulary)
    started = time.perf_counter()
    tokenizer(vocabulary)
    print(f"{vocabulary.name}: {len(vocabulary)} ids; the engine's view of them: {_ms(started):.0f} ms, once")
    rows = [kind(name, *KINDS[name], vocabulary, given.repeat) for name in KINDS]
    print(f"{'kind':24} {'compile':>9} {'legal':>15} {'advance':>15} {'engine':>15} {'ours':>15} {'more':>6}")
    for row in rows:
        print(
            f"{row['kind']:24} {row['compile_ms']:6.1f} ms {_pair(row.get('legal_us')):>15} "
            f"{_pair(row.get('advance_us')):>15} {_pair(row.get('engine_us')):>15} {_pair(row.get('slot_us')):>15} "
            f"{row.get('more', ''):>6}"
        )
    result: Row = {"vocabulary": vocabulary.name, "kinds": rows}
    if given.peers:
        result["peers"] = [peer(name, vocabulary) for name in PEERS]
        for row in result["peers"]:
            print(row)
    publish("arguments", result, given.out)


def kind(name: str, properties: Row, values: list[Row], vocabulary: Vocabulary, repeat: int) -> Row:
    """Measure one kind of argument."""
    schema = {"properties": properties, "required": list(properties), "$defs": {"n": NODE}}
    shape = seq(" do ", read_parameters("do", schema).shape, "\n")
    started = time.perf_counter()
    stages = Stages([shape], vocabulary)
    row: Row = {"kind": name, "compile_ms": round(_ms(started), 2)}
    legal: list[float] = []
    advance: list[float] = []
    slot: list[float] = []
    engine: list[float] = []
    mask = allocate_token_bitmask(1, len(vocabulary) + 1)
    source = stages.grammars[0].source if stages.grammars else "start: /a/"
    prototype = LLMatcher(tokenizer(vocabulary), LLMatcher.grammar_from_lark(source))
    for n in range(repeat):
        for value in values:
            ids = vocabulary.plain(f" do {canonical(value)}\n")
            matcher = Matcher(stages)
            bare: LLMatcher | None = None
            for token in ids:
                place = matcher.place
                if isinstance(place, Slot) and bare is None:
                    bare = prototype.deep_copy()  # as ours: what the engine has learned of the grammar is shared
                if isinstance(place, TriePlace):
                    began = time.perf_counter_ns()
                    stages.legal(place)
                    middle = time.perf_counter_ns()
                    stages.advance(place, token)
                    ended = time.perf_counter_ns()
                    matcher.consume(token)
                    if n >= 3:
                        legal.append((middle - began) / 1000)
                        advance.append((ended - middle) / 1000)
                    continue
                assert bare is not None
                first, second = (_bare, _slot) if n % 2 else (_slot, _bare)
                one = first(matcher, bare, mask, token)
                two = second(matcher, bare, mask, token)
                if n >= 3:
                    (engine if n % 2 else slot).append(one)
                    (slot if n % 2 else engine).append(two)
            assert matcher.ended, value
    for key, took in (("legal_us", legal), ("advance_us", advance), ("engine_us", engine), ("slot_us", slot)):
        if took:
            took.sort()
            row[key] = [round(statistics.median(took), 2), round(took[int(0.99 * len(took))], 1)]
    if slot:
        row["more"] = f"{100 * (row['slot_us'][0] / row['engine_us'][0] - 1):+.0f} %"
    return row


def _bare(_: Matcher, bare: LLMatcher, mask: Any, token: int) -> float:
    began = time.perf_counter_ns()
    fill_next_token_bitmask(bare, mask)
    bare.consume_token(token)
    return (time.perf_counter_ns() - began) / 1000


def _slot(matcher: Matcher, _: LLMatcher, __: Any, token: int) -> float:
    began = time.perf_counter_ns()
    assert isinstance(matcher.place, Slot)
    matcher.place.mask()
    matcher.consume(token)
    return (time.perf_counter_ns() - began) / 1000


def _ms(started: float) -> float:
    return 1000 * (time.perf_counter() - started)


def _pair(times: list[float] | None) -> str:
    return "" if times is None else f"{times[0]:.1f} / {times[1]:.0f} us"


# -- the peers -----------------------------------------------------------------------------------------------------

PEER_SCHEMA: Row = {
    "type": "object",
    "properties": {"text": {"type": "string", "maxLength": 64}, "n": {"type": "integer", "minimum": 0, "maximum": 180}},
    "required": ["text", "n"],
    "additionalProperties": False,
}
PEERS = ("ours", "llguidance", "glrmask", "xgrammar", "outlines_core")
Step = Callable[[int], bool]
"""Compute the mask; whether the id is in it; move."""


def peer(name: str, vocabulary: Vocabulary) -> Row:
    """Ask one engine about valid and invalid texts, and measure it."""
    row: Row = {"engine": name}
    try:
        if name != "ours":
            importlib.import_module(name)
            row["version"] = importlib.metadata.version(name)
            files = importlib.metadata.files(name) or []
            row["installed_mb"] = round(sum(Path(str(f.locate())).stat().st_size for f in files) / 1e6, 1)
        started = time.perf_counter()
        begin = {"ours": _ours, "llguidance": _llguidance, "glrmask": _glrmask, "xgrammar": _xgrammar}.get(
            name, _outlines
        )(vocabulary)
        row["first_compile_ms"] = round(_ms(started), 1)
    except ImportError as error:
        return {**row, "missing": str(error)}
    except Exception as error:
        return {**row, "failed": f"{type(error).__name__}: {error}"[:200]}
    times: list[float] = []
    right = wrong = 0
    missed: list[str] = []
    leaked: list[str] = []
    for text, valid in _texts():
        step, accepting = begin()
        accepted = True
        if name == "glrmask":  # it writes a space after each comma and colon, so it is asked about that text
            text = text.replace('{"text":', '{"text": ').replace(',"n":', ', "n": ')
        for token in vocabulary.plain(text):
            began = time.perf_counter_ns()
            accepted = step(token)
            times.append((time.perf_counter_ns() - began) / 1000)
            if not accepted:
                break
        accepted = accepted and accepting()
        right += valid and accepted
        wrong += not valid and accepted
        if valid and not accepted:
            missed.append(text)
        if not valid and accepted:
            leaked.append(text)
    times.sort()
    row |= {
        "valid_accepted": right,
        "invalid_accepted": wrong,
        "of": [120, 120],
        "missed": missed[:3],
        "leaked": leaked[:3],
    }
    row["step_us"] = [round(statistics.median(times), 1), round(times[int(0.99 * len(times))], 1)]
    return row


def _texts() -> list[tuple[str, bool]]:
    """Return 120 valid and 120 invalid texts, the latter so near that one character decides."""
    rng = random.Random(3)
    words = ["call", "Grüße", "🦙", 'say "hi"', "a\\b", "tab\t", "nl\n", "\x1f", "<b>", "50 %", "{}", "naïve", "日本"]
    reader = Recogniser(read_parameters("peer", PEER_SCHEMA).shape)
    valid: list[str] = []
    while len(valid) < 120:
        text = " ".join(rng.choice(words) for _ in range(rng.randint(0, 12)))
        text = text[:64] if rng.random() < 0.9 else (text + "x" * 64)[:64]
        valid.append(canonical({"text": text, "n": rng.randint(0, 180)}))
    invalid: list[str] = []
    while len(invalid) < 120:
        text = rng.choice(valid)
        at = rng.randrange(len(text))
        changed = text[:at] + rng.choice(["", '"', "\x01", "0", ",", "}", "\\", "é" * 64, "-", "1.0"]) + text[at + 1 :]
        if not reader.accepts(changed):
            invalid.append(changed)
    assert all(map(reader.accepts, valid))
    return [(text, True) for text in valid] + [(text, False) for text in invalid]


def _ours(vocabulary: Vocabulary) -> Any:
    from kernel.write.slots import Grammar

    grammar = Grammar(read_parameters("peer", PEER_SCHEMA).shape, vocabulary)

    def begin() -> tuple[Step, Callable[[], bool]]:
        slot = grammar.start()

        def step(token: int) -> bool:
            return bool(slot.mask()[token // 32] >> (token % 32) & 1) and slot.take(token)

        return step, lambda: slot.ended

    return begin


def _llguidance(vocabulary: Vocabulary) -> Any:
    options = {"whitespace_flexible": False, "item_separator": ",", "key_separator": ":"}
    source = LLMatcher.grammar_from_json_schema(PEER_SCHEMA, overrides=options)  # type: ignore[arg-type]
    lark = json.dumps({**json.loads(source)}) if source.startswith("{") else source
    matcher = LLMatcher(tokenizer(vocabulary), lark)
    if matcher.is_error():
        raise RuntimeError(matcher.get_error())
    mask = allocate_token_bitmask(1, len(vocabulary) + 1)

    def begin() -> tuple[Step, Callable[[], bool]]:
        each = matcher.deep_copy()

        def step(token: int) -> bool:
            fill_next_token_bitmask(each, mask)
            return bool(mask[0, token // 32] >> (token % 32) & 1) and each.consume_token(token)

        return step, each.is_accepting

    return begin


def _glrmask(vocabulary: Vocabulary) -> Any:
    glrmask = importlib.import_module("glrmask")
    text = vocabulary.is_text.tolist()
    known = glrmask.Vocab.from_id_to_bytes({i: p for i, p in enumerate(vocabulary.pieces) if text[i]})
    constraint = glrmask.Grammar.from_json_schema(json.dumps(PEER_SCHEMA)).compile(known)

    def begin() -> tuple[Step, Callable[[], bool]]:
        state = constraint.start()

        def step(token: int) -> bool:
            mask = state.mask()
            return bool(token < len(mask) and mask[token]) and bool(state.commit_token(token))

        return step, state.is_accepting

    return begin


def _xgrammar(vocabulary: Vocabulary) -> Any:
    xgrammar = importlib.import_module("xgrammar")
    end = min(vocabulary.eog)
    info = xgrammar.TokenizerInfo(
        vocabulary.pieces, xgrammar.VocabType.RAW, vocab_size=len(vocabulary), stop_token_ids=[end]
    )
    compiled = xgrammar.GrammarCompiler(info).compile_json_schema(
        json.dumps(PEER_SCHEMA), any_whitespace=False, separators=(",", ":"), strict_mode=True
    )
    mask = xgrammar.allocate_token_bitmask(1, len(vocabulary))
    shown = mask.numpy()

    def begin() -> tuple[Step, Callable[[], bool]]:
        matcher = xgrammar.GrammarMatcher(compiled)

        def step(token: int) -> bool:
            matcher.fill_next_token_bitmask(mask)
            return bool(shown[0, token // 32] >> (token % 32) & 1) and bool(matcher.accept_token(token))

        return step, lambda: bool(matcher.accept_token(end))

    return begin


def _outlines(vocabulary: Vocabulary) -> Any:
    outlines = importlib.import_module("outlines_core")
    regex = outlines.json_schema.build_regex_from_schema(json.dumps(PEER_SCHEMA), "")
    text = vocabulary.is_text.tolist()
    ids: dict[bytes, list[int]] = {}
    for token, piece in enumerate(vocabulary.pieces):
        if text[token]:
            ids.setdefault(piece, []).append(token)
    index = outlines.Index(regex, outlines.Vocabulary(min(vocabulary.eog), ids))

    def begin() -> tuple[Step, Callable[[], bool]]:
        guide = outlines.Guide(index)

        def step(token: int) -> bool:
            if token not in guide.get_tokens():
                return False
            guide.advance(token)
            return True

        return step, lambda: min(vocabulary.eog) in guide.get_tokens()

    return begin


if __name__ == "__main__":
    np.seterr(all="ignore")
    main()
