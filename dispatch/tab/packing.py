"""What a page needs to play in the visitor's tab: its files by their places, and the settings that name them.

`serve --tab` answers with them, `bundle` writes them into a folder. Of a model that does not lie beside the page only
the vocabulary is in them.
"""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from dispatch.loading.registry import Registry
from dispatch.session.model_player import leaves
from dispatch.tab.choosing import WIRE
from dispatch.tab.presets import packed_presets
from dispatch.tab.zipped import zipped
from dispatch.wire.form import FORMS
from dispatch.wire.wire import Wire
from kernel.contract import Cartridge
from kernel.errors import CartridgeError, UsageError
from kernel.models import browser
from kernel.text.vocabulary import Vocabulary
from kernel.trie.opcodes import OpcodeSet
from kernel.trie.tab import trie_asset, vocabulary_asset

PAGE = Path(__file__).resolve().parent.parent / "serve" / "page"
"""The files of the page."""
SUFFIXES = (".js", ".css", ".svg")
SETTINGS = '<meta name="kernel-tab" content="">'
"""Stands in index.html where the settings of a tab belong."""
POLICY = (
    "default-src 'none'",
    "script-src 'self' 'wasm-unsafe-eval'",
    "worker-src 'self' blob:",
    "style-src 'self'",
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self' blob:",
    "base-uri 'none'",
    "form-action 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types kernel-tab default",
)
"""Content-Security-Policy of a page with a model in it: WebAssembly may be compiled, and workers begin from blobs."""

File = Path | bytes


@dataclass(frozen=True)
class Plan:
    """What is to be played in the tab.

    Attributes:
        cartridge: by its name, as the registry finds it.
        model: what the model is called; `file` is its GGUF file, where it is to lie beside the page.
        seed, context: of engines; tokens that a prompt may have.
    """

    cartridge: str
    model: str
    vocabulary: Vocabulary
    file: Path | None = None
    seed: int = 0
    context: int = 2048


@dataclass(frozen=True)
class Packed:
    """The files of a tab by place (`tab/worker.js`), and its page.

    Attributes:
        index: text of index.html; the policy is not in it.
    """

    files: Mapping[str, File]
    index: str


def pack(plan: Plan) -> Packed:
    """Return the files of a tab.

    Raises:
        PackageError: the files of the packages are not here; the text says how to get them.
        CartridgeError, UsageError: a cartridge that cannot be played in a tab.
    """
    maker, cartridge = _maker(plan.cartridge)
    wire = Wire([cartridge], FORMS[WIRE])
    opcodes = OpcodeSet(list(leaves(cartridge, wire).values()), plan.vocabulary)
    files: dict[str, File] = {path.name: path for path in sorted(PAGE.iterdir()) if path.suffix in SUFFIXES}
    files |= {f"tab/{path.name}": path for path in sorted((PAGE / "tab").iterdir()) if path.suffix in SUFFIXES}
    own: dict[str, File] = {f"tab/{name}": path for name, path in browser.files("wllama").items()}
    python = browser.files("python")
    own |= {f"tab/python/{name}": path for name, path in python.items()}
    own["tab/python/program.zip"] = zipped(maker.partition(":")[0])
    own["tab/vocabulary.bin"] = vocabulary_asset(plan.vocabulary)
    own[f"tab/{cartridge.name}.trie"] = trie_asset(opcodes)
    bench = list(packed_presets(plan.vocabulary))
    own |= {f"tab/bench-{preset['id']}.trie": trie_asset(compiled) for preset, compiled in bench}
    place = None if plan.file is None else f"model/{plan.file.name}"
    settings: dict[str, Any] = {
        "model": {"name": plan.model, "place": place, "bytes": 0 if plan.file is None else _size(plan.file)},
        "cartridge": cartridge.name,
        "makers": [maker],
        "seed": plan.seed,
        "context": plan.context,
        "vocabulary": "vocabulary.bin",
        "opcodes": {
            cartridge.name: f"{cartridge.name}.trie",
            **{f"bench:{preset['id']}": f"bench-{preset['id']}.trie" for preset, _ in bench},
        },
        "presets": [preset for preset, _ in bench],
        "wllama": {"module": "wllama.js", "wasm": "wllama.wasm"},
        "python": {
            "place": "python/",
            "wheels": [name for name in python if name.endswith(".whl")],
            "program": "program.zip",
        },
        "versions": {"cartridge-kernel": version("cartridge-kernel"), **_versions()},
        "bytes": sum(_size(each) for each in own.values()),
    }
    index = (PAGE / "index.html").read_text("utf-8")
    index = index.replace(SETTINGS, SETTINGS.replace('""', f'"{html.escape(json.dumps(settings))}"'))
    if plan.file is not None:
        own[f"tab/{place}"] = plan.file
    return Packed({**files, **own}, index)


def with_policy(index: str) -> str:
    """Return a page that holds its own policy, for servers that send none."""
    meta = f'<meta http-equiv="Content-Security-Policy" content="{"; ".join(POLICY)}">'
    return index.replace('<meta charset="utf-8">', f'<meta charset="utf-8">\n{meta}', 1)


def _maker(name: str) -> tuple[str, Cartridge]:
    """Return what makes a cartridge in a tab, as `module:name`, and the cartridge."""
    source = Registry().find(name)
    if not source.name:
        raise UsageError(f"{name!r}: a tab plays cartridges that are installed, by their name, such as 'tetris'")
    cartridge = Registry().load(name)
    if cartridge.planner is None or cartridge.acts_outside:
        raise CartridgeError(f"{name!r} cannot be played in a tab: it waits for requests, or acts outside")
    if any(opcode.is_open() for opcode in cartridge.opcodes):
        raise CartridgeError(f"{name!r} cannot be played in a tab: it has opcodes whose arguments are written")
    module, _, function = source.target.partition(":")
    return f"{module}:{function or 'make'}", cartridge


def _versions() -> dict[str, str]:
    """Return the versions of what the tab runs, for its logs."""
    pinned = {archive.name: archive.version for part in ("python", "wllama") for archive in browser.PARTS[part]}
    return {name: pinned[name] for name in ("pyodide", "@wllama/wllama")}


def _size(file: File) -> int:
    return len(file) if isinstance(file, bytes) else file.stat().st_size
