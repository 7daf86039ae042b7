"""The page and some decisions of a log in one HTML file, which opens from disk and asks nobody for anything.

The page's modules are put into one script, each in a function of its own; its answers stand in the file as JSON, in
which no `<` is left, so that no text of a log can end its element. A policy in the head lets nothing run but that one
script, and nothing be loaded.
"""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path
from urllib.parse import quote

from dispatch.inspector.columns import Filter
from dispatch.inspector.jsonable import Json, dump
from dispatch.inspector.opened import MOST_ROWS, OpenedLog
from kernel.errors import LogError

PAGE = Path(__file__).resolve().parent.parent / "serve" / "page"
"""The files of the page; they are read as text."""
MAIN = "main.js"
NULLS = 4
"""Null prompts of a decision that are written; there may be a hundred, nearly alike."""
MOST_BYTES = 1 << 26
"""Decisions that would make the answers longer than this are left out."""
SAFE = "!~*'()"
"""What `encodeURIComponent` leaves as it is, beside letters, digits, `-`, `_` and `.`."""

IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([\w.-]+\.js)";\s*$', re.MULTILINE)
EXPORT = re.compile(r"^export (?=((?:async )?function|class|const) (\w+))", re.MULTILINE)


def html(opened: OpenedLog, most: int, *, prompts: bool = True) -> tuple[str, int]:
    """Return the file's text, and how many decisions it holds.

    Args:
        most: so many decisions, the first ones.
        prompts: whether what was read and what people asked is in it.
    Raises:
        LogError: the page's files are none that can be put together.
    """
    answers, count = _answers(opened, most, prompts)
    script = bundled(PAGE)
    data = dump(answers).decode("ascii").replace("<", "\\u003c")
    styles = "".join((PAGE / name).read_text("utf-8") for name in ("base.css", "app.css"))
    if "</" in styles or re.search(r"</script|<!--", script, re.IGNORECASE):
        raise LogError("export: a file of the page would end its own element")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data:"
    return (
        "<!doctype html>\n"
        '<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>Inspector</title>\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<meta name="kernel-token" content="">\n'
        f"<style>{styles}</style>\n"
        f'<script type="application/json" id="kernel-export">{data}</script>\n'
        f'<script type="module">{script}</script>\n'
        "</head>\n<body><noscript>The inspector needs JavaScript.</noscript></body>\n</html>\n",
        count,
    )


def bundled(folder: Path) -> str:
    """Return the page's modules as one script, each behind those that it imports.

    Raises LogError for a module that imports in a circle, or in another form than `import { a, b } from "./x.js";`.
    """
    made: list[str] = []
    done: set[str] = set()

    def add(name: str, above: tuple[str, ...] = ()) -> None:
        if name in above:
            raise LogError(f"export: {name} imports itself, by way of {', '.join(above)}")
        if name in done:
            return
        done.add(name)
        text = (folder / name).read_text("utf-8")
        for found in IMPORT.finditer(text):
            add(found[2], (*above, name))
        body = IMPORT.sub(lambda found: f"const {{{_renamed(found[1])}}} = {_variable(found[2])};", text)
        names = [found[2] for found in EXPORT.finditer(body)]
        body = EXPORT.sub("", body)
        if odd := re.search(r"^(import|export)\b.*", body, re.MULTILINE):
            raise LogError(f"export: {name}: {odd[0][:80]!r} is no form that can be put into one script")
        end = f"return {{ {', '.join(names)} }};\n" if names else ""
        made.append(f"const {_variable(name)} = (() => {{\n{body}\n{end}}})();\n")

    add(MAIN)
    return "".join(made)


def _variable(name: str) -> str:
    return "m_" + re.sub(r"\W", "_", name.removesuffix(".js"))


def _renamed(names: str) -> str:
    """Return the names of an import as those of a destructuring: `a as b` is `a: b` there."""
    return re.sub(r"\b(\w+) as (\w+)\b", r"\1: \2", names)


def _answers(opened: OpenedLog, most: int, prompts: bool) -> tuple[Json, int]:
    """Return what the page would have been told, by the paths that it asks."""
    place = f"/api/s/{quote(opened.name, safe=SAFE)}"
    total = opened.kept.index.columns.count
    found: dict[str, Json] = {}
    size = count = 0
    for n in range(1, min(total, most) + 1):
        told = {f"{place}/d/{n}": _without(opened.decision(n), prompts)}
        if prompts:
            told[f"{place}/d/{n}/prompt"] = _fewer(opened.prompt(n))
        size += sum(len(dump(each)) for each in told.values())
        if size > MOST_BYTES and count:
            break
        found |= told
        count = n
    rows = [row for start in range(0, count, MOST_ROWS) for row in opened.rows(start, MOST_ROWS, Filter())["rows"]]
    summary = opened.summary()
    summary |= {"decisions": count, "complete": True}
    if count < total:
        summary["notes"] = [*summary["notes"], f"this file has the first {count} of {total} decisions"]
    line = dict.fromkeys(("started", "player", "model", "rule", "seed", "error"))
    header = opened.kept.index.header
    line |= {"started": header.started, "player": header.player, "seed": header.seed}
    listed = {"name": opened.name, "kind": "log", "bytes": opened.kept.index.size, "modified": header.started, **line}
    listed["cartridges"] = [each.name for each in header.cartridges]
    sessions: Json = {"sessions": [listed], "default": opened.name, "model": None, "models": [], "rules": []}
    sessions |= {"cartridges": [], "bench": False, "starting": False}
    return {
        "answers": {"/api/sessions": sessions, place: summary, **found},
        "strip": base64.b64encode(opened.kept.index.columns.strip(1, 1, complete=True, most=count)).decode("ascii"),
        "rows": [_without(row, prompts) for row in rows[:count]],
    }, count


def _without(told: Json, prompts: bool) -> Json:
    return told if prompts else {**told, "request": None}


def _fewer(read: Json) -> Json:
    """Leave out most null prompts."""
    left = len(read["nulls"]) - NULLS
    if left <= 0:
        return read
    return {**read, "nulls": read["nulls"][:NULLS], "why": f"{left} more null prompts are not in this file"}
