"""One request, one instruction: choose the method by whole-opcode scores, then write its arguments.

For cartridges whose arguments nobody wrote out. Both steps read the same prompt, so that it is evaluated once. Knows no
cartridge and no screen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dispatch.wire.wire import Wire
from kernel.api import Kernel
from kernel.choose.decision import Decision
from kernel.choose.question import Question
from kernel.choose.rule import Rule
from kernel.contract import Cartridge
from kernel.errors import NoLegalOpcodeError
from kernel.opcode import Halt, Instruction, Opcode
from kernel.opcode.spelling import object_shape, words_shape
from kernel.prompt import Prompt
from kernel.shape.shape import Shape, seq
from kernel.trie.opcodes import Literal
from kernel.write.stages import Stages
from kernel.write.writer import TOKENS, Written, write

COMPACT, TAGGED = "compact", "tagged"


@dataclass(frozen=True)
class Call:
    """What came of a request.

    Attributes:
        decision: the choice of the method; None where there is only one, or where it is written with its arguments.
        written: the instruction as the model wrote it.
    """

    instruction: Instruction
    decision: Decision | None
    written: Written


class Caller:
    """Turns requests into instructions of one cartridge.

    Args:
        methods: the methods that may be called; None is all of them but the halt.
    """

    def __init__(
        self, kernel: Kernel, cartridge: Cartridge, wire: Wire, *, methods: Sequence[str] | None = None
    ) -> None:
        self.kernel = kernel
        self.cartridge = cartridge
        self.wire = wire
        self.opcodes = {
            opcode.method: opcode
            for opcode in cartridge.opcodes
            if not issubclass(opcode, Halt) and (methods is None or opcode.method in methods)
        }
        if not self.opcodes:
            raise NoLegalOpcodeError(f"{cartridge.name}: there is no method to call")
        self._stages: dict[tuple[str, ...], Stages] = {}

    def call(
        self,
        prompt: Prompt,
        *,
        rule: Rule | None = None,
        max_tokens: int = TOKENS,
        temperature: float = 0.0,
        seed: int = 0,
    ) -> Call:
        """Choose a method and write its arguments.

        Raises:
            ContextError, LogitsError.
        """
        methods, decision = tuple(self.opcodes), None
        if len(methods) > 1 and not self._phrased:
            # each method stands as its opcode begins, so that what is read then is what is written afterwards
            literals = [Literal(self._begin(name), self._after(), label=name) for name in self.opcodes]
            decision = self.kernel.decide(Question(self.kernel.ids(prompt), self.kernel.compile(literals), rule=rule))
            methods = (decision.texts[decision.position],)
        written = write(
            self.kernel.memory,
            self.stages(methods),
            self.kernel.vocabulary.prompt(prompt.parts),
            max_tokens=max_tokens,
            temperature=temperature,
            seed=seed,
        )
        return Call(self.wire.parse(written.text), decision, written)

    def stages(self, methods: tuple[str, ...]) -> Stages:
        """Return the compiled opcodes of some methods."""
        known = self._stages.get(methods)
        if known is None:
            shapes = [opcode_shape(self.cartridge.name, self.opcodes[m], self.wire.form.name) for m in methods]
            known = self._stages[methods] = Stages(shapes, self.kernel.vocabulary)
        return known

    @property
    def _phrased(self) -> bool:
        """Whether a method stands behind its arguments, so that it cannot be chosen before them."""
        return self.wire.form.name == COMPACT and any(opcode.wire_phrase for opcode in self.opcodes.values())

    def _begin(self, method: str) -> str:
        return f" {method}" if self.wire.form.name == COMPACT else f"<|call|>{self.cartridge.name}.{method}"

    def _after(self) -> str:
        return "\n" if self.wire.form.name == COMPACT else " {"


def opcode_shape(cartridge: str, opcode: type[Opcode], wire: str) -> Shape:
    """Return the shape of an opcode in a wire form, its closing mark included."""
    arguments = opcode.arguments()
    if wire == COMPACT and opcode.wire_phrase:
        said = words_shape(arguments, opcode.wire_phrase)
        return seq(said, f"\n@{cartridge}.{opcode.method}\n")
    if wire == COMPACT:
        return seq(f" {opcode.method}", words_shape(arguments), f"\n@{cartridge}\n")
    return seq(f"<|call|>{cartridge}.{opcode.method} ", object_shape(arguments), "<|/call|>\n")
