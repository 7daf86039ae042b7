"""How an instruction is said in words: `light kitchen on`. Prompts, labelled cases and the compact wire form use it.

An instruction is its method and the values of its required arguments, a space before each; or the opcode's
`wire_phrase` with the values in its places, as `wire_values` says them. Optional arguments follow as `name=value`, and
not at all when they are missing or have their default. A string of a listed domain that is a single word stands without
quotes; every other value is JSON. `words` says one instruction, `words_shape` is the language of all of them,
`read_words` is the way back.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from kernel.canon import canonical
from kernel.errors import OpcodeError, WireError, did_you_mean
from kernel.opcode.instruction import HALT, HALT_INSTRUCTION, Instruction
from kernel.opcode.opcode import Opcode, kept
from kernel.shape.argument import Argument
from kernel.shape.listing import texts
from kernel.shape.shape import EMPTY, NOTHING, Alt, Except, Scalar, Shape, alt, listed, seq

WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
"""What stands without quotes, unless JSON gives it a meaning of its own."""
JSON_WORDS = frozenset({"true", "false", "null"})
SLOT = re.compile(r"\{([A-Za-z_]\w*)\}")
"""The place of an argument in a `wire_phrase`."""

_STRING = r'"(?:[^"\\]|\\.)*"'
"""A JSON string. It may hold spaces; a backslash takes the next character with it, a quote too."""
_VALUE = rf'(?:{_STRING}|[^\s"])+'
"""Whole strings and characters that are neither white space nor a quote, so `["a b",1]` is one value."""
_VALUES = rf"(?: (?:(?:{WORD.pattern}|{_STRING})=)?{_VALUE})*"
"""Any number of values, a space before each; a name, which is a word or a JSON string, may stand before the value."""
_EACH = re.compile(rf" (?:(?P<name>{WORD.pattern}|{_STRING})=)?(?P<value>{_VALUE})")


def words(instruction: Instruction, opcodes: Collection[type[Opcode]]) -> str:
    """Return an instruction in words, exactly as a model says it in the compact wire form.

    Args:
        opcodes: those of the instruction's cartridge.
    Raises:
        OpcodeError: none of them has its method.

    >>> doors = {"wide": {"const": True}, "door": {"enum": ["hall", "back door"]}}
    >>> Open = Opcode.from_json_schema("open", {"properties": doors, "required": ["door"]})
    >>> words(Instruction.of("home", "open", door="back door", wide=True), [Open])
    'open "back door" wide=true'
    >>> words(Instruction.of("home", "open", door="hall"), [Open])
    'open hall'
    """
    if instruction == HALT_INSTRUCTION:
        return HALT
    opcode = _declaring(instruction.method, opcodes)
    required, optional = {}, []
    args = instruction.args
    for argument in opcode.arguments():
        if argument.name not in args:
            continue
        text = canonical(args[argument.name])
        said = _without_quotes(text) if text in _bare_texts(opcode)[argument.name] else text
        said = _spoken(opcode, argument.name).get(text, said)
        if argument.required:
            required[argument.name] = said
        elif text != argument.default:
            optional.append(f"{_name(argument.name)}={said}")
    if opcode.wire_phrase:
        return " ".join([SLOT.sub(lambda slot: required[slot[1]], opcode.wire_phrase), *optional])
    return " ".join([opcode.method, *required.values(), *optional])


def first_words(opcode: type[Opcode]) -> str:
    """Return what is said before the first argument; "" where a phrase begins with one."""
    return opcode.wire_phrase.partition("{")[0].rstrip() if opcode.wire_phrase else opcode.method


def words_shape(opcode: type[Opcode]) -> Shape:
    """Return the shape of the words of every instruction of an opcode, open arguments included.

    >>> from kernel.shape.listing import texts
    >>> doors = {"wide": {"const": True}, "door": {"enum": ["hall", "back door"]}}
    >>> Open = Opcode.from_json_schema("open", {"properties": doors, "required": ["door"]})
    >>> list(texts(words_shape(Open)))
    ['open hall', 'open hall wide=true', 'open "back door"', 'open "back door" wide=true']
    >>> Open.wire_phrase = "the {door} opens"
    >>> list(texts(words_shape(Open)))[::2]
    ['the hall opens', 'the "back door" opens']
    """
    return alt(*(_words_shape(opcode, arguments) for arguments in opcode.alternatives()))


def _words_shape(opcode: type[Opcode], arguments: Sequence[Argument]) -> Shape:
    always = [argument.name for argument in opcode.arguments() if argument.required]
    required = {
        argument.name: listed(tuple(said.values()))
        if (said := _spoken(opcode, argument.name))
        else _bare(argument.shape)
        for argument in arguments
        if argument.name in always
    }
    parts: list[Shape | str]
    if opcode.wire_phrase:
        first, *pieces = SLOT.split(opcode.wire_phrase)
        parts = [first]
        for name, after in zip(pieces[::2], pieces[1::2], strict=True):
            parts += [required[name], after]
    else:
        parts = [opcode.method]
        for shape in required.values():
            parts += [" ", shape]
    named: list[tuple[Shape, bool]] = []
    for argument in arguments:
        if argument.name not in always:
            value = argument.shape if argument.default is None else _but(argument.shape, argument.default)
            named.append((seq(f" {_name(argument.name)}=", _bare(value)), argument.required))
    low, high = opcode.counts()
    return seq(*parts, _some(named, low - len(required), None if high is None else high - len(required)))


def _some(named: Sequence[tuple[Shape, bool]], low: int, high: int | None) -> Shape:
    """Return low .. high of these arguments in order; those marked True are always there."""
    if low <= 0 and high is None:
        return seq(*(shape if must else alt(EMPTY, shape) for shape, must in named))
    most = len(named) if high is None else min(high, len(named))
    after: list[Shape] = [EMPTY if low <= count <= most else NOTHING for count in range(len(named) + 2)]
    for shape, must in reversed(named):
        taken = [seq(shape, more) for more in after[1:]]
        after = [more if must else alt(less, more) for less, more in zip(after, taken, strict=False)]
        after.append(NOTHING)
    return after[0]


def read_words(text: str, opcode: type[Opcode]) -> str:
    """Return the arguments in the words of an instruction of an opcode, as the JSON text of an object.

    Raises WireError where the text is not said as the opcode is, or an argument is missing, unknown or there twice.
    """
    found = _pattern(opcode).fullmatch(text)
    if found is None:
        raise WireError(f"{opcode.method}: {text!r} is not said as {opcode.wire_phrase or opcode.method!r}")
    required = [argument.name for argument in opcode.arguments() if argument.required]
    optional = {argument.name for argument in opcode.arguments() if not argument.required}
    said = [(each["name"], each["value"]) for each in _EACH.finditer(found[found.re.groups])]
    in_place = [found[name] for name in required if name in found.re.groupindex]
    in_place += [value for name, value in said if not name]
    if len(in_place) != len(required):
        raise WireError(f"{opcode.method}: {len(in_place)} values for {len(required)} arguments {required}")
    meant = [{word: text for text, word in _spoken(opcode, name).items()} for name in required]
    by_name = {n: words.get(v, v) for n, words, v in zip(required, meant, in_place, strict=True)}
    for given, value in said:
        if not given:
            continue
        name = json.loads(_json(given)) if given.startswith('"') else given
        if name in by_name:
            raise WireError(f"{opcode.method}: argument {name!r} is given twice")
        if name not in optional:
            raise WireError(f"{opcode.method}: no argument {name!r}{did_you_mean(name, optional)}")
        by_name[name] = value
    members = [f"{canonical(a.name)}:{_json(by_name[a.name])}" for a in opcode.arguments() if a.name in by_name]
    return "{" + ",".join(members) + "}"


def _declaring(method: str, opcodes: Collection[type[Opcode]]) -> type[Opcode]:
    known = []
    for opcode in opcodes:
        if opcode.method == method:
            return opcode
        known.append(opcode.method)
    raise OpcodeError(f"no opcode {method!r}{did_you_mean(method, known)}")


def _pattern(opcode: type[Opcode]) -> re.Pattern[str]:
    """Return what reads the words of an opcode: a named group for each place of its phrase, and the rest last."""
    if not opcode.wire_phrase:
        return re.compile(rf"{re.escape(opcode.method)}({_VALUES})")
    first, *pieces = SLOT.split(opcode.wire_phrase)
    places = zip(pieces[::2], pieces[1::2], strict=True)
    pattern = re.escape(first) + "".join(
        f"(?P<{name}>{'|'.join(map(re.escape, _spoken(opcode, name).values())) or _VALUE}){re.escape(after)}"
        for name, after in places
    )
    return re.compile(rf"{pattern}({_VALUES})")


def _spoken(opcode: type[Opcode], name: str) -> Mapping[str, str]:
    """Return how the values of an argument are said in the opcode's phrase, by their JSON texts.

    Raises OpcodeError unless these are all of its values, in words that differ.
    """

    def words() -> Mapping[str, Mapping[str, str]]:
        for argument in opcode.arguments():
            said = opcode.wire_values.get(argument.name)
            if said is None:
                continue
            values = set(texts(argument.shape)) if argument.required and opcode.wire_phrase else set()
            if set(said) != values or len(set(said.values())) < len(said):
                raise OpcodeError(
                    f"{opcode.method}.{argument.name}: wire_values {dict(said)!r} has to say each value of a required "
                    f"argument of the phrase, in words that differ: {sorted(values)}"
                )
        return opcode.wire_values

    return kept(opcode, "_own_spoken", words).get(name, {})


def _bare(shape: Shape) -> Shape:
    """Return the shape with listed strings that are words without their quotes."""
    match shape:
        case Alt(parts):
            return Alt(tuple(map(_bare, parts)))
        case Scalar(_, values) if values:
            written = tuple(map(_without_quotes, values))
            return shape if written == values else listed(written)
    return shape


def _bare_texts(opcode: type[Opcode]) -> dict[str, frozenset[str]]:
    """Return by argument the JSON texts that stand without their quotes."""

    def texts() -> dict[str, frozenset[str]]:
        return {argument.name: frozenset(_listed_words(argument.shape)) for argument in opcode.arguments()}

    return kept(opcode, "_own_bare_texts", texts)


def _listed_words(shape: Shape) -> Iterable[str]:
    match shape:
        case Alt(parts):
            for part in parts:
                yield from _listed_words(part)
        case Scalar(_, values):
            yield from (value for value in values if _without_quotes(value) != value)


def _without_quotes(text: str) -> str:
    """Return the JSON text of a string that is a word as that word, any other text as it is."""
    word = json.loads(text) if text.startswith('"') else ""
    return word if WORD.fullmatch(word) and word not in JSON_WORDS else text


def _but(shape: Shape, text: str) -> Shape:
    """Return the shape without one text, as far as scalars go."""
    match shape:
        case Alt(parts):
            return Alt(tuple(_but(part, text) for part in parts))
        case Scalar(_, values) if values:
            return listed(tuple(value for value in values if value != text))
        case Scalar(part):
            return Scalar(Except(part, frozenset({text})))
    return shape


def _name(name: str) -> str:
    return name if WORD.fullmatch(name) else canonical(name)


def _json(said: str) -> str:
    """Return a value as it is said as JSON; raises WireError where it is neither a word nor JSON."""
    if WORD.fullmatch(said) and said not in JSON_WORDS:
        return canonical(said)
    try:
        json.loads(said)
    except ValueError:
        raise WireError(f"{said!r} is neither a word nor JSON") from None
    return said
