"""A cartridge from another package: says one of three words, counts them, ends at a limit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Self

from cartridges.kit.phrasing import offered
from kernel.contract import Cartridge, Engine, Option
from kernel.errors import IllegalInstructionError
from kernel.opcode import Instruction, Opcode, commands
from kernel.prompt import Prompt, asked


class Say(Opcode):
    """Say a word."""

    word: Literal["one", "two", "three"]


WORDS = commands("echo", [Say])


class Echo:
    """The rules: anything goes until the limit."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.reset(0)

    def reset(self, seed: int) -> None:
        """Forget all; the seed changes nothing but the hash."""
        self.said: list[str] = [str(seed)]

    def legal(self) -> Sequence[Instruction]:
        """Return all words, or none at the end."""
        return WORDS if self.ended() is None else ()

    def apply(self, instruction: Instruction) -> str:
        """Say the word."""
        if instruction not in self.legal():
            raise IllegalInstructionError(f"echo: {instruction!r} is not legal")
        self.said.append(instruction.args["word"])
        return self.said[-1]

    def copy(self) -> Self:
        """Return an independent engine."""
        twin = type(self)(self.limit)
        twin.said = list(self.said)
        return twin

    def state_hash(self) -> str:
        """Return all that was said."""
        return " ".join(self.said)

    def ended(self) -> str | None:
        """Return why it ended."""
        return "all is said" if len(self.said) > self.limit else None

    def summary(self) -> Mapping[str, int | float | str]:
        """Return how much was said."""
        return {"words": len(self.said) - 1}


class EchoView:
    """Words only."""

    def prompt(self, engine: Engine, options: Sequence[Option], request: str = "") -> Prompt:
        """Return what the model reads."""
        return offered("Words.", options, [Say]) if options and not request.strip() else asked(request)

    def render(self, engine: Engine) -> str:
        """Return what was said."""
        return engine.state_hash()


def make(limit: int = 5) -> Cartridge:
    """Return the cartridge; it ends after `limit` words."""
    return Cartridge("echo", "3", "Says words.", (Say,), lambda: Echo(limit), EchoView(), takes_requests=True)
