"""Reads labelled cases from disk: a JSON Lines file beside the cartridge that they judge, one case a line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from kernel.contract import CallCase, Case
from kernel.errors import CartridgeError
from kernel.prompt import Explained, Prompt, explained
from kernel.textfile import read_lines

Split = Literal["dev", "test"]


class Row(BaseModel):
    """What every line of a case file holds; a cartridge adds its own fields in a subclass."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    id: str
    split: Split


class RequestRow(Row):
    """A request in everyday words and the one command that answers it, as words.

    `elsewhere` names the cartridges of which a command answers it as well, or better: in a session with one of them it
    is no case, because two answers would be right.
    """

    request: str
    answer: str
    elsewhere: tuple[str, ...] = ()


class CallRow(Row):
    """A request to tools: the tool, and the right values of each argument; null is one that may be left out."""

    request: str
    tool: str
    arguments: dict[str, list[Any]]


Kind = Literal["nonsense", "beyond", "negated", "vague"]


class NothingRow(Row):
    """A request that nothing should answer, and of which kind it is.

    `nonsense` asks for nothing that can be done, `beyond` for what none of the commands does, `negated` says what not
    to do, and `vague` does not say what. `elsewhere` names the cartridges that may answer it; see `RequestRow`.
    """

    request: str
    kind: Kind
    elsewhere: tuple[str, ...] = ()


M = TypeVar("M", bound=BaseModel)
R = TypeVar("R", bound=Row)
NONE = "none"
"""The answer of a request that nothing should answer."""


def numbered(path: Path, row: type[M], name: str) -> Iterator[tuple[int, M]]:
    """Yield number and value of each line of a file of JSON lines.

    Raises CartridgeError, with the name, line and field, when the file or a line of it cannot be read.
    """
    for number, line in enumerate(read_lines(path, CartridgeError, name), 1):
        try:
            found = row.model_validate_json(line)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(map(str, first["loc"])) or "the line"
            raise CartridgeError(f"{name}:{number}: {where}: {first['msg']}") from error
        yield number, found


def read(path: Path, row: type[R]) -> list[R]:
    """Return the rows of a case file in file order.

    Raises CartridgeError, with file, line and field, when the file or a line of it cannot be read or an id comes twice.
    """
    rows: dict[str, R] = {}
    for number, found in numbered(path, row, path.name):
        if found.id in rows:
            raise CartridgeError(f"{path.name}:{number}: the id {found.id!r} stands twice; give each case its own")
        rows[found.id] = found
    return list(rows.values())


def case(row: RequestRow, prompt: Prompt, options: Sequence[str]) -> Case:
    """Return the case of a request row.

    The options are words with a space before them, so that they can be appended to a prompt that ends in a colon. The
    answer `none` says that nothing should be done; the case's answer is empty then.
    Raises CartridgeError for another answer that is not one of the options.
    """
    texts = tuple(f" {option}" for option in options)
    if row.answer == NONE and NONE not in options:
        return Case(row.id, prompt, texts, "", row.split, row.request, elsewhere=row.elsewhere)
    if row.answer not in options:
        raise CartridgeError(f"case {row.id}: the answer {row.answer!r} is not one of the {len(options)} options")
    return Case(row.id, prompt, texts, f" {row.answer}", row.split, row.request, elsewhere=row.elsewhere)


def calls(path: Path) -> list[CallCase]:
    """Return the cases of a file of requests to tools, in file order; raises CartridgeError as `read` does."""
    return [
        CallCase(row.id, row.request, row.tool, {name: tuple(v) for name, v in row.arguments.items()}, row.split)
        for row in read(path, CallRow)
    ]


def requests(path: Path, guide: tuple[Explained, ...]) -> list[Case]:
    """Return the cases of a file of requests, in file order: each request behind the guide, its commands as options.

    Raises CartridgeError for a file that `read` refuses and an answer that the guide does not explain.
    """
    options = [each.words for each in guide]
    return [case(row, explained(row.request, guide), options) for row in read(path, RequestRow)]


def nothing(path: Path, make: Callable[[str], Prompt], options: Sequence[str]) -> list[Case]:
    """Return the cases of a file of requests that nothing should answer, in file order; their answer is empty.

    Args:
        make: gives the prompt of a request.
        options: the commands as words.

    Raises CartridgeError for a file that `read` refuses.
    """
    texts = tuple(f" {option}" for option in options)
    return [
        Case(row.id, make(row.request), texts, "", row.split, row.request, row.kind, row.elsewhere)
        for row in read(path, NothingRow)
    ]


def refusals(path: Path, guide: tuple[Explained, ...]) -> list[Case]:
    """Return the cases of a file of requests that nothing should answer, behind the guide; see `nothing`."""
    return nothing(path, lambda request: explained(request, guide), [each.words for each in guide])
