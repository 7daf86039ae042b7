"""The runtime in the tab: llama.cpp in WebAssembly on tiny models with random weights, beside the one of this kernel.

The tiny models have real tokenizers and the real graphs of llama.cpp. `make browser` fetches the runtime.
"""

from __future__ import annotations

import os
import random
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kernel.api import Kernel
from kernel.backends.llama_cpp import LlamaCppBackend
from kernel.choose.question import Question
from kernel.choose.rule import Rule, RuleName
from kernel.errors import PackageError
from kernel.models import browser as parts
from kernel.prompt import Lines, Part, Prompt
from kernel.trie.opcodes import Literal
from kernel.trie.tab import trie_asset, vocabulary_asset

LOADED = """
const { TabKernel } = await import("/kernel.js");
const { bytes, failed } = await import("/fake.js");
const wllama = { module: "/wllama.js", wasm: "/wllama.wasm" };
const load = (more) => TabKernel.load({ vocabulary: bytes(asked.vocabulary), wllama, context: 512, ...more });
"""

NASTY = [
    "The best move is north",
    " go",
    "go north\n\nleft",
    "<|start|> is a marker <|end|>",
    "caf\u00e9 \u4e2d\u6587 \U0001f600 e\u0301",
    "a\x00b\x01\x7f",
    "   spaces  \t tabs\r\n",
    "\u2028\u202e\ufeff",
    "1234567890 3.14",
    "The" * 40,
]


TEXTS = (" go", " go north", " left left", " left right", "axe axe", "pick up")


def base64(data: bytes) -> str:
    return b64encode(data).decode()


class Tab:
    """Scripts beside the real runtime; `load` in them loads a model with the vocabulary that was asked for."""

    def __init__(self, tab: Callable[..., Any]) -> None:
        self.run, self.files = tab, tab.files  # type: ignore[attr-defined]
        try:
            self.files.update(parts.files("wllama"))
        except PackageError as error:
            if os.environ.get("KERNEL_NEEDS_BROWSER"):
                pytest.fail(str(error))
            pytest.skip(str(error))
        self.files["fake.js"] = Path(__file__).with_name("fake.js")

    def __call__(self, script: str, **asked: object) -> Any:
        """Run a script; it sees `asked`, `load`, `bytes` and `failed`."""
        return self.run(f"async (asked) => {{ {LOADED} {script} }}", asked)


@pytest.fixture
def real(tab: Callable[..., Any]) -> Tab:
    return Tab(tab)


def as_pieces(prompt: Prompt) -> dict[str, object]:
    """Return a prompt as JSON."""

    def pieces(parts: tuple[Part | Lines, ...]) -> list[dict[str, object]]:
        kinds = {Part: lambda p: {"text": p.text}, Lines: lambda p: {"texts": list(p.texts)}}
        return [{**kinds[type(part)](part), "trusted": part.trusted} for part in parts]  # type: ignore[no-untyped-call]

    nulls, rotations = ([pieces(parts) for parts in some] for some in (prompt.nulls, prompt.rotations))
    return {"parts": pieces(prompt.parts), "nulls": nulls, "rotations": rotations}


@pytest.mark.parametrize(("arch", "bos"), [("llama", True), ("lfm2", False)])
def test_tokens_and_choices_are_those_of_the_kernel(
    real: Tab, tools: SimpleNamespace, tmp_path: Path, arch: str, bos: bool
) -> None:
    """Same ids for hostile text and for trusted markers, with and without a first id; same choice by every rule."""
    path = tmp_path / "tiny.gguf"
    tools.write_model(path, arch, layers=3, bos=bos)
    real.files["tiny.gguf"] = path
    draw = random.Random(5)
    with Kernel(LlamaCppBackend(path, n_ctx=512, n_seq=32, threads=1)) as kernel:
        words = kernel.vocabulary
        prompts = [
            Prompt((Part(text, trusted=trusted), Part(other)))
            for text in NASTY
            for other in ("", " go")
            for trusted in (True, False)
        ]
        prompts.append(Prompt((Part("The best:\n"), Lines((" go", " left", " go")), Part(" move")), ((Part("a"),),)))
        opcodes = kernel.compile([Literal(text, "\n>\n") for text in TEXTS])
        asked, made = [], []
        for name in (RuleName.GREEDY, RuleName.EXACT, RuleName.CALIBRATED):
            for _ in range(4):
                text = "".join(draw.choices(NASTY, k=3))
                nulls = ((Part("The"),), (Part("go go"),)) if name is RuleName.CALIBRATED else ()
                prompt = Prompt((Part(text),), nulls)
                legal = draw.sample(range(len(opcodes)), 4)
                made.append(kernel.decide(Question(kernel.ids(prompt), opcodes, opcodes.subset_of(legal), Rule(name))))
                asked.append({"prompt": as_pieces(prompt), "legal": legal, "rule": {"name": str(name)}})
        script = """
        const kernel = await load({ model: "/tiny.gguf" });
        try {
          const opcodes = kernel.opcodes(bytes(asked.trie));
          const ids = [];
          for (const prompt of asked.prompts) ids.push(await kernel.ids(prompt));
          const answers = [];
          for (const { prompt, ...more } of asked.questions) {
            answers.push(await kernel.decide({ ...more, opcodes, prompt: await kernel.ids(prompt) }));
          }
          return { ids, made: answers };
        } finally { await kernel.close(); }
        """
        told = real(
            script,
            vocabulary=base64(vocabulary_asset(words)),
            trie=base64(trie_asset(opcodes)),
            prompts=[as_pieces(prompt) for prompt in prompts],
            questions=asked,
        )
        for prompt, ids in zip(prompts, told["ids"], strict=True):
            expected = kernel.ids(prompt)
            if isinstance(expected.main, tuple):
                assert tuple(ids["main"]) == expected.main, prompt
            else:
                found = ids["main"]
                assert (tuple(found["lead"]), tuple(found["question"])) == (expected.main.lead, expected.main.question)
                assert {tuple(line) for line in found["lines"]} == set(expected.main.lines)
                assert [tuple(null) for null in ids["nulls"]] == [*expected.nulls]
    for here, there in zip(made, told["made"], strict=True):
        assert there["index"] == here.index
        place = there["leaves"].index(here.index)
        assert there["raw"][place] == pytest.approx(here.raw[here.position], abs=0.02)
    refused = sum(there["refused"] for there in told["made"])
    assert (refused > 0) == (arch == "lfm2")  # a hybrid memory drops no tokens


def test_files_that_are_no_model_of_this_page_say_what_to_do(
    real: Tab, tiny_models: dict[str, Path], tools: SimpleNamespace, tmp_path: Path
) -> None:
    """Cut, another kind of file, another vocabulary, none at the address, too little memory: a code and a sentence."""
    path = tmp_path / "other.gguf"
    tools.write_model(path, "llama", pre="qwen2")
    model = tiny_models["llama"].read_bytes()
    broken = model.replace(b"blk.1.ffn_up.weight", b"blk.1.ffn_oh.weight", 1)
    for name, data in {"cut1": model[:30], "cut2": model[: len(model) // 2], "cut3": model[:-1]}.items():
        real.files[f"{name}.gguf"] = data
    real.files |= {"page.gguf": b"<!doctype html>", "other.gguf": path, "broken.gguf": broken, "tiny.gguf": model}
    names = ["cut1", "cut2", "cut3", "page", "other", "broken", "missing"]
    script = """
    const told = [];
    for (const name of asked.names) told.push(await failed(() => load({ model: `/${name}.gguf` })));
    told.push(await failed(() => load({ model: "/tiny.gguf", wllama: { ...wllama, wasm: "/nothing.wasm" } })));
    told.push(await failed(() => load({ model: "/tiny.gguf", context: 2 ** 31 - 1 })));
    told.push(await failed(async () => (await load({ model: "/tiny.gguf" })).close()));
    return told;
    """
    with Kernel(LlamaCppBackend(tiny_models["llama"], n_ctx=64, n_seq=2, threads=1)) as kernel:
        told = real(script, names=names, vocabulary=base64(vocabulary_asset(kernel.vocabulary)))
    assert told[-1] is None, "the model itself loads"
    codes = [code for code, _ in told[:-1]]
    assert codes == ["cut", "cut", "cut", "model", "vocabulary", "model", "model", "wasm", "memory"]
    assert all(message.endswith(".") and "[object" not in message for _, message in told[:-1]), told


def test_a_download_takes_pieces_and_sees_where_it_ends(real: Tab) -> None:
    """Pieces are put together, one that fails is asked for again, and what ends early is no model."""
    script = """
    const { download } = await import("/download.js");
    const whole = Uint8Array.from({ length: 20 << 20 }, (_, n) => n % 251);
    const asks = [];
    const server = (faults) => async (address, { headers }) => {
      const [, begin, end] = /bytes=(\\\\d+)-(\\\\d+)/.exec(headers.range).map(Number);
      asks.push(begin);
      if (faults.once?.delete(begin)) throw new TypeError("network");
      const given = (from, to, status, headers) => new Response(whole.slice(from, to), { status, headers });
      if (faults.whole) return given(0, faults.whole, 200, { "content-length": whole.length });
      const to = Math.min(end + 1, faults.ends ?? whole.length);
      return given(begin, to, 206, { "content-range": `bytes ${begin}-${to - 1}/${whole.length}` });
    };
    const plain = globalThis.fetch;
    try {
      const told = [];
      globalThis.fetch = server({ once: new Set([8 << 20]) });
      const blob = await download("/x", (...what) => told.push(what));
      const got = new Uint8Array(await blob.arrayBuffer());
      const same = got.length === whole.length && got.every((value, at) => value === whole[at]);
      globalThis.fetch = server({ ends: 10 << 20 });
      const early = await failed(() => download("/x", () => {}));
      globalThis.fetch = server({ whole: 1000 });
      const cut = await failed(() => download("/x", () => {}));
      globalThis.fetch = server({ whole: whole.length });
      const size = (await download("/x", () => {})).size;
      return { same, asks: asks.slice(0, 4), last: told.at(-1), early, cut, size };
    } finally { globalThis.fetch = plain; }
    """
    told = real(script.replace("\\\\", "\\"))
    assert told["same"]
    assert told["asks"] == [0, 8 << 20, 8 << 20, 16 << 20]
    assert told["last"] == ["model", 20 << 20, 20 << 20]
    assert told["early"][0] == told["cut"][0] == "cut"
    assert told["size"] == 20 << 20
