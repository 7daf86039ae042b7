"""`compile`: writes a cartridge's opcodes, tokenized for one model, to a file that `run` can map into memory."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from dispatch.cli.common import AsJson, CartridgeName, Model, Opcodes, WireForm
from dispatch.cli.model import tokenizable
from dispatch.cli.output import failing, print_json, say, working
from kernel.errors import StoreError
from kernel.trie import store
from kernel.trie.opcodes import OpcodeSet
from kernel.trie.tab import trie_asset, vocabulary_asset

Output = Annotated[Path, typer.Option("--output", "-o", help="File to write.", dir_okay=False)]
Tab = Annotated[bool, typer.Option("--tab", help="Write what a browser reads, and the vocabulary beside it.")]


def compile_command(
    name: CartridgeName,
    output: Output,
    model: Model = "smollm2",
    wire: WireForm = "compact",
    opcodes: Opcodes = None,
    tab: Tab = False,
    as_json: AsJson = False,
) -> None:
    """Compile a cartridge's opcodes for a model into a file; read it back once, to be sure.

    Large sets are kept by themselves when they are first used; this is for shipping them: `run CARTRIDGE --set
    compiled=FILE` maps it. The file is refused where tokenizer, opcodes or wire form differ.

    With `--tab` the file is what the page reads to choose in the visitor's tab; the vocabulary of the model stands
    beside it, in a file that ends in `.vocabulary`. Any web server can give both.

    Example: compile tetris --model smollm2 -o tetris.trie
    """
    with failing():
        _, literals, vocabulary = tokenizable(name, opcodes, wire, model)
        started = time.perf_counter()
        with working("tokenizing") as tell:
            opcode_set = OpcodeSet(
                literals, vocabulary, progress=lambda done, total: tell(f"tokenizing {done} of {total}")
            )
        seconds = time.perf_counter() - started
        tokenizer, fingerprint = vocabulary.fingerprint, opcode_set.fingerprint
        if tab:
            _for_the_tab(output, opcode_set)
            say(
                f"{output}, {output.with_suffix('.vocabulary')}: {len(opcode_set)} opcodes, compiled in {seconds:.2f} s"
            )
            return
        store.save(output, opcode_set.compiled, tokenizer=tokenizer, opcodes=fingerprint)
        started = time.perf_counter()
        store.compiled_from(output, literals, vocabulary)
        mapped = time.perf_counter() - started
    found = {
        "file": str(output),
        "bytes": output.stat().st_size,
        "opcodes": len(opcode_set),
        "nodes": opcode_set.trie.n_nodes,
        "edges": opcode_set.trie.n_edges,
        "tokenizer": tokenizer,
        "fingerprint": fingerprint,
        "seconds": round(seconds, 3),
        "seconds_to_map": round(mapped, 3),
    }
    if as_json:
        print_json(found, indent=None)
        return
    size = f"{len(opcode_set)} opcodes, {found['bytes']} bytes"
    say(f"{output}: {size}; compiled in {seconds:.2f} s, mapped in {mapped:.3f} s")


def _for_the_tab(output: Path, opcodes: OpcodeSet) -> None:
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_bytes(trie_asset(opcodes))
        output.with_suffix(".vocabulary").write_bytes(vocabulary_asset(opcodes.vocabulary))
    except OSError as error:
        raise StoreError(f"{str(output)!r} cannot be written: {error.strerror or error}") from error
