"""Strategies: prose in Markdown files that goes before the prompts of a cartridge.

    ---
    id: well-filler
    name: Well filler
    summary: Keep one column open for the long bar.
    ---
    Keep the rightmost column empty until ...

The files are in the folder `strategies` beside the cartridge's `make`. The prose is tokenized as data, so no text in it
becomes a control token.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kernel import textfile
from kernel.contract import Cartridge, Case, Engine, Option, View
from kernel.errors import CartridgeError, UsageError, did_you_mean
from kernel.opcode import NAME
from kernel.prompt import Part, Prompt

FOLDER = "strategies"
KEYS = ("id", "name", "summary")
FENCE = "---"


@dataclass(frozen=True, slots=True)
class Strategy:
    """One file: three lines of front matter and the prose, its line breaks kept, none at its ends."""

    id: str
    name: str
    summary: str
    prose: str


def parse(text: str, where: str) -> Strategy:
    """Return the strategy that a file holds; `where` begins the errors.

    Raises CartridgeError, with the line, for anything but exactly three keys between two `---` and prose behind them.

    >>> parse("---\\nid: bold\\nname: Bold\\nsummary: Dare more.\\n---\\nTake risks.\\n", "bold.md")
    Strategy(id='bold', name='Bold', summary='Dare more.', prose='Take risks.')
    """
    lines = textfile.lines(text.removeprefix("\ufeff"))
    if not lines or lines[0].rstrip() != FENCE:
        raise CartridgeError(f"{where}:1: front matter begins with {FENCE!r}, not {lines[0] if lines else ''!r}")
    found: dict[str, str] = {}
    for number, line in enumerate(lines[1:], 2):
        if line.rstrip() == FENCE:
            break
        match = re.fullmatch(r"(\w+):\s*(.*\S)\s*", line)
        if match is None:
            raise CartridgeError(f"{where}:{number}: {line!r} is not `key: value`")
        key, value = match.groups()
        if key in found or key not in KEYS:
            what = "stands twice" if key in found else f"is unknown{did_you_mean(key, KEYS)}"
            raise CartridgeError(f"{where}:{number}: the key {key!r} {what}")
        found[key] = value
    else:
        raise CartridgeError(f"{where}:{len(lines)}: front matter has no {FENCE!r} at its end")
    if missing := [key for key in KEYS if key not in found]:
        raise CartridgeError(f"{where}:{number}: front matter lacks {missing[0]!r}; it has {', '.join(KEYS)}")
    if not NAME.fullmatch(found["id"]):
        raise CartridgeError(f"{where}: the id {found['id']!r} does not match {NAME.pattern!r}")
    prose = "\n".join(line.rstrip() for line in lines[number:]).strip()
    if not prose:
        raise CartridgeError(f"{where}:{number}: there is no prose behind the front matter")
    return Strategy(found["id"], found["name"], found["summary"], prose)


def read(folder: Path) -> dict[str, Strategy]:
    """Return the strategies of a folder by id, in the order of their names; none when there is no folder.

    Raises CartridgeError for a file that cannot be read or parsed, or whose name is not its id.
    """
    found = {}
    for path in sorted(folder.glob("*.md")):
        where = f"{folder.parent.name}/{folder.name}/{path.name}"
        strategy = parse(textfile.read_text(path, CartridgeError, where), where)
        if strategy.id != path.stem:
            raise CartridgeError(f"{where}: its id is {strategy.id!r}; name the file {strategy.id}.md")
        found[strategy.id] = strategy
    return found


def choose(cartridge: Cartridge, known: Mapping[str, Strategy], chosen: str) -> Cartridge:
    """Return the cartridge with one of its strategies before each prompt, those of its labelled cases included.

    Raises UsageError when there is no such strategy.
    """
    if chosen not in known:
        raise UsageError(f"{cartridge.name}: no strategy {chosen!r}{did_you_mean(chosen, known)}")
    strategy = known[chosen]

    def told(cases: Callable[[], Sequence[Case]]) -> Callable[[], Sequence[Case]]:
        return lambda: [replace(case, prompt=with_prose(case.prompt, strategy)) for case in cases()]

    return replace(
        cartridge,
        view=StrategyView(cartridge.view, strategy),
        cases=None if cartridge.cases is None else told(cartridge.cases),
        more_cases={name: told(each) for name, each in cartridge.more_cases.items()},
    )


def with_prose(prompt: Prompt, strategy: Strategy) -> Prompt:
    """Return a prompt that begins with the strategy, and its nulls as well: they leave out what decides, only that."""
    head = Part(f"{strategy.prose}\n\n")
    return Prompt(
        (head, *prompt.parts),
        tuple((head, *null) for null in prompt.nulls),
        tuple((head, *parts) for parts in prompt.rotations),
    )


@dataclass(frozen=True)
class StrategyView:
    """A view whose prompts begin with a strategy."""

    view: View
    strategy: Strategy

    def prompt(self, engine: Engine, options: Sequence[Option], request: str = "") -> Prompt:
        """Return the view's own prompt behind the strategy."""
        return with_prose(self.view.prompt(engine, options, request), self.strategy)

    def render(self, engine: Engine) -> Any:
        """Return the view's own picture."""
        return self.view.render(engine)
