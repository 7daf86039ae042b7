"""Can the functions of the Berkeley Function Calling Leaderboard be held, and does a small model call them validly?

    python benchmarks/bench_bfcl.py                      import and compile all 3,420 distinct functions
    python benchmarks/bench_bfcl.py --calls 300          and let smollm2 write a call for 300 of them
    python benchmarks/bench_bfcl.py --calls 60 --raw     the same without any constraint, to compare

The calls take half an hour on a busy machine. Each is kept in .cache/bfcl/calls-*.jsonl as soon as it is written,
so that the same command goes on where it was stopped; what is kept is judged again. --fresh begins anew.

The data come out of the PyPI package `bfcl-eval`, fetched without its dependencies into .cache/bfcl. Every call is
judged by the library jsonschema against the schema of its function, of which only the dialect is translated.
The last line of stdout is one JSON document.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
import statistics
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
from harness import make_parser, publish

from cartridges.kit.toolbox import Tools, ToolView
from dispatch.wire.form import form
from dispatch.wire.open_arguments import ArgumentWriter
from dispatch.wire.wire import Wire
from kernel.api import Kernel
from kernel.backends.llama_cpp import read_vocabulary
from kernel.contract import Cartridge
from kernel.errors import BuildError
from kernel.opcode.opcode import SchemaOpcode
from kernel.opcode.tools import read_tools
from kernel.write.stages import Stages
from kernel.write.writer import write_freely

PACKAGE = "bfcl-eval==2026.3.23"
ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache" / "bfcl"
TOKENS = 160

Row = dict[str, Any]


def wheel() -> Path:
    """Return the package, fetched when it is not here."""
    if not list(CACHE.glob("bfcl_eval-*.whl")):
        CACHE.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(CACHE), PACKAGE]
        subprocess.run(command, check=True)
    return next(CACHE.glob("bfcl_eval-*.whl"))


def functions(package: Path) -> list[tuple[Row, str]]:
    """Return the distinct function definitions, each with a question that it was asked for ("" if there is none)."""
    found: dict[str, tuple[Row, str]] = {}
    with zipfile.ZipFile(package) as archive:
        for name in sorted(archive.namelist()):
            if re.fullmatch(r"bfcl_eval/data/(multi_turn_func_doc/)?[^/]+\.json", name):
                for row in _rows(archive.read(name).decode()):
                    listed = row.get("function", [row] if "parameters" in row else [])
                    for function in listed if isinstance(listed, list) else [listed]:
                        key = json.dumps(function, sort_keys=True)
                        if key not in found or not found[key][1]:
                            found[key] = (function, _question(row))
    return list(found.values())


def _rows(text: str) -> Iterator[Row]:
    for line in text.splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            return  # one document over many lines: no list of functions
        if isinstance(row, dict):
            yield row


def _question(row: Row) -> str:
    turns = row.get("question") or [[]]
    messages = turns[0] if isinstance(turns[0], list) else [turns[0]]
    return next((m["content"] for m in messages if isinstance(m, dict) and m.get("role") == "user"), "")


def cartridge(opcode: type[SchemaOpcode]) -> Cartridge:
    """Return a cartridge of one function."""
    engine = lambda: Tools("bfcl", {opcode.method: opcode}, {opcode.method: lambda **_: ""})  # noqa: E731
    return Cartridge("bfcl", "1", "one function", (opcode,), engine, ToolView([opcode]), takes_requests=True)


def main() -> None:
    """Compile all functions, let the model call some, print what came of it."""
    parser = make_parser(__doc__)
    parser.add_argument("--calls", type=int, default=0, help="functions that the model calls (default: %(default)s)")
    parser.add_argument("--raw", action="store_true", help="without constraint")
    parser.add_argument("--model", default="smollm2", help="(default: %(default)s)")
    parser.add_argument("--vocabulary", type=Path, help="vocabulary-only GGUF to compile with (default: the model's)")
    parser.add_argument("--threads", type=int, help="CPU threads (default: all cores, at most 8)")
    parser.add_argument("--fresh", action="store_true", help="begin the calls anew")
    parser.add_argument("--seed", type=int, default=1, help="of the choice of functions (default: %(default)s)")
    given = parser.parse_args()
    found = functions(wheel())
    print(f"{len(found)} distinct functions")
    kernel = None if given.vocabulary else Kernel.load(given.model, n_seq=8, threads=given.threads)
    vocabulary = read_vocabulary(given.vocabulary) if kernel is None else kernel.vocabulary
    opcodes: list[tuple[type[SchemaOpcode], str]] = []
    refused: list[str] = []
    took: list[float] = []
    for function, question in found:
        started = time.perf_counter()
        read = read_tools([function])
        refused += [refusal.reason for refusal in read.refusals]
        for opcode in read.opcodes:
            try:
                Stages([form("tagged").shape("bfcl", opcode)], vocabulary)
            except BuildError as error:
                refused.append(f"{opcode.original}: {error}")
                continue
            opcodes.append((opcode, question))
            took.append(1000 * (time.perf_counter() - started))
    took.sort()
    held = len(opcodes)
    print(
        f"{held} compile ({100 * held / len(found):.2f} %), each in {statistics.median(took):.1f} ms (median), ", end=""
    )
    print(f"{took[int(0.99 * len(took))]:.1f} ms (p99), on {vocabulary.name}")
    for reason in refused:
        print(f"  refused: {reason}")
    result: Row = {
        "functions": len(found),
        "compiled": held,
        "refused": refused,
        "compile_ms": {"median": round(statistics.median(took), 2), "p99": round(took[int(0.99 * len(took))], 2)},
        "vocabulary": vocabulary.name,
    }
    if given.calls and kernel is not None:
        asked = [(opcode, question) for opcode, question in opcodes if question]
        chosen = random.Random(given.seed).sample(asked, min(given.calls, len(asked)))
        kept = CACHE / f"calls-{Path(given.model).stem}-{given.seed}{'-raw' if given.raw else ''}.jsonl"
        if given.fresh:
            kept.unlink(missing_ok=True)
        result["calls"] = calls(kernel, chosen, kept, raw=given.raw)
        print(json.dumps(result["calls"], indent=2))
    publish("bfcl", result, given.out)


def calls(kernel: Kernel, chosen: list[tuple[type[SchemaOpcode], str]], kept: Path, *, raw: bool) -> Row:
    """Let the model call each function once and judge the arguments.

    Args:
        kept: file of the calls that were made before; those are not made again, the others are added.
    """
    known: Row = {}
    if kept.exists():
        known = {row["key"]: row for row in map(json.loads, kept.read_text("utf-8").splitlines())}
    made: list[Row] = []
    wrong: list[str] = []
    with kept.open("a", encoding="utf-8") as file:
        for opcode, question in chosen:
            key = hashlib.blake2b(f"{TOKENS} {opcode.schema_} {question}".encode(), digest_size=8).hexdigest()
            row = known.get(key)
            if row is None:
                row = {"key": key, "function": opcode.original, **_call(kernel, opcode, question[:1500], raw=raw)}
                print(json.dumps(row, ensure_ascii=False), file=file, flush=True)
            made.append(row)
            if reason := judge(opcode, row["arguments"]):
                wrong.append(f"{opcode.original}: {row['arguments'][:100]!r}: {reason}")
            if len(made) % 20 == 0:
                done, closed = len(made) - len(wrong), sum(one["closed"] for one in made)
                seconds = sum(one["seconds"] for one in made)
                print(f"{len(made)}: {done} valid, {closed} closed, {seconds:.0f} s", flush=True)
    return {
        "raw": raw,
        "asked": len(chosen),
        "valid": len(chosen) - len(wrong),
        "kept_from_before": sum(row["key"] in known for row in made),
        "closed_by_the_budget": sum(row["closed"] for row in made),
        "tokens": sum(row["tokens"] for row in made),
        "passes": sum(row["passes"] for row in made),
        "seconds_median": round(statistics.median(row["seconds"] for row in made), 2),
        "wrong": wrong[:10],
    }


def _call(kernel: Kernel, opcode: type[SchemaOpcode], question: str, *, raw: bool) -> Row:
    """Return the arguments that the model writes, and what it took."""
    one = cartridge(opcode)
    started = time.perf_counter()
    if raw:
        arguments, spent = _raw(kernel, one, opcode, question), {"closed": 0, "tokens": 0, "passes": 0}
    else:
        prompt = one.view.prompt(one.engine(), (), question)
        call = ArgumentWriter(kernel).call(Wire([one], form("tagged")), prompt, max_tokens=TOKENS)
        written, arguments = call.written, call.instruction.arguments
        spent = {"closed": int(written.closed > 0), "tokens": len(written.ids), "passes": written.cost.passes}
    return {"arguments": arguments, **spent, "seconds": round(time.perf_counter() - started, 3)}


def _raw(kernel: Kernel, one: Cartridge, opcode: type[SchemaOpcode], question: str) -> str:
    """Return the arguments that the model writes alone behind the same prompt and the beginning of the call."""
    parts = one.view.prompt(one.engine(), (), question).parts
    ids = kernel.vocabulary.prompt(parts) + kernel.vocabulary.plain(f"<|call|>bfcl.{opcode.method} ")
    text = write_freely(kernel.memory, ids, max_tokens=TOKENS).text
    return text.split("<|/call|>")[0].strip()


def judge(opcode: type[SchemaOpcode], arguments: str) -> str:
    """Return why the arguments are wrong, "" when they are right."""
    schema = {"type": "object", **opcode.schema_}
    names = {argument.name for argument in opcode.arguments()}
    try:
        value = json.loads(arguments)
        jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker()).validate(value)
    except ValueError as error:
        return f"no JSON: {error}"
    except jsonschema.ValidationError as error:
        return f"invalid: {error.message[:100]}"
    return "" if set(value) <= names else f"unknown arguments {sorted(set(value) - names)}"


if __name__ == "__main__":
    main()
