"""The command: exit codes, one JSON document, the board in a pipe and in a terminal, keys."""

from __future__ import annotations

import json
import math
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

from cartridges.tetris import make as make_tetris
from dispatch.cli import keys as keyboard
from dispatch.cli.frame import Frame
from dispatch.cli.output import shown
from dispatch.cli.replay import replay_command
from dispatch.log.objects import CartridgeRecord, InstructionRecord, LedgerStep, LegalRow, TokenRow
from dispatch.log.reader import LogReader
from dispatch.log.records import DecisionRecord, Ending, Header, Outcome
from dispatch.log.replay import Replay
from dispatch.log.writer import LogWriter
from dispatch.session.recorded import make_cartridge
from dispatch.wire.wire import Wire
from kernel.errors import UsageError

app = typer.Typer()
app.command("replay")(replay_command)
PROGRAM = "import typer; from dispatch.cli.replay import replay_command; typer.run(replay_command)"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Eight decisions of Tetris, one of them with everything that a model leaves."""
    cartridge = make_tetris("moves")
    engine = cartridge.engine()
    engine.reset(5)
    start = CartridgeRecord(
        name="tetris", version=cartridge.version, state=engine.state_hash(), options=dict(cartridge.options)
    )
    path = tmp_path / "game.jsonl"
    wire = Wire([cartridge])
    step = LedgerStep(
        at=0,
        legal=2,
        mass=0.25,
        rows=(
            TokenRow.of(11, b"left", -1.5, legal=True),
            TokenRow.of(12, b"\x1b[2J", -0.5, legal=False),
            TokenRow.of(13, b"\xf0\x9f", -4, legal=False),
        ),
    )
    with LogWriter(path, Header(cartridges=(start,), seed=5)) as log:
        for n in range(1, 9):
            key, legal = engine.legal()[n % 2], [wire.literal(each).text for each in engine.legal()]
            rows = [LegalRow(text=text, logprob=-3, null=-2.0, probability=0.3 / len(legal)) for text in legal]
            rows[n % 2] = LegalRow(text=legal[n % 2], logprob=-1.5, null=-2.0, probability=0.7)
            log.decision(
                DecisionRecord(
                    n=n,
                    cartridge="tetris",
                    instruction=InstructionRecord.of(key),
                    text=legal[n % 2],
                    ids=(11, 99),
                    result=engine.apply(key),
                    state=engine.state_hash(),
                    legal=tuple(rows),
                    chosen=n % 2,
                    rule="calibrated",
                    margin=0.4,
                    ledger=(step,),
                )
            )
        summary = {"tetris": dict(engine.summary())}
        log.outcome(
            Outcome(decisions=8, ending=Ending.LIMIT, detail="decisions", summary=summary, totals={"mass": math.nan})
        )
    return path


def run(*arguments: object) -> tuple[int, str, str]:
    """Run the command in this process; return exit code, stdout, stderr."""
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    return result.exit_code, result.stdout, result.stderr


def test_a_whole_log_exits_with_0_and_one_sentence(log: Path) -> None:
    """Headless prints the verdict and nothing else."""
    assert run(log, "--headless") == (0, "verified: 8 whole decisions verify to the end: limit (decisions)\n", "")


def test_without_a_terminal_the_last_board_is_printed_once(log: Path) -> None:
    """One board, the decision, the verdict; no control sequences."""
    code, out, _ = run(log)
    assert code == 0
    assert out.count("8. tetris.move") == 1
    assert out.count("verified: 8") == 1
    assert "\x1b" not in out


def test_damage_exits_with_1_and_names_the_step(log: Path) -> None:
    """A changed line, a cut one and a missing outcome."""
    lines = log.read_bytes().splitlines(keepends=True)
    for content, told in [
        (b"".join([*lines[:4], lines[4].replace(b"left", b"lift"), *lines[5:]]), "line 5 (decision 4): changed"),
        (b"".join(lines[:5]) + lines[5][:20], "damaged: 4 whole decisions verify, then line 6 (decision 5): cut"),
        (b"".join(lines[:-1]), "unfinished: 8 whole decisions verify"),
    ]:
        log.write_bytes(content)
        code, out, err = run(log, "--headless")
        assert (code, err) == (1, "")
        assert told in out


def test_json_is_one_document_with_the_verdict(log: Path) -> None:
    """For one file an object, for several a list in the order given."""
    code, out, _ = run(log, "--json")
    one = json.loads(out)
    assert (code, one["verdict"], one["decisions"], one["outcome"]["ending"]) == (0, "verified", 8, "limit")
    assert one["outcome"]["totals"] == {"mass": None}
    log.with_name("cut.jsonl").write_bytes(log.read_bytes()[:-9])
    code, out, _ = run(log, log.with_name("cut.jsonl"), "--json")
    assert code == 1
    assert [document["verdict"] for document in json.loads(out)] == ["verified", "damaged"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--speed", "0"], "--speed 0 is not above 0"),
        (["--speed", "fast"], "valid number"),
        (["--from", "0"], "equal to 1"),
        (["--from", "5", "--to", "4"], "--to 4 is before --from 5"),
        (["--step"], "--step needs one file and a terminal"),
        (["--lines"], "No such option"),
    ],
)
def test_misuse_exits_with_2(log: Path, arguments: list[str], told: str) -> None:
    """And says what is wrong on stderr."""
    code, out, err = run(log, *arguments)
    assert (code, out) == (2, "")
    assert told in " ".join(err.replace("│", " ").split())


def test_a_missing_file_and_a_directory_exit_with_2(tmp_path: Path) -> None:
    """Both are named; so is the lack of any file."""
    assert run(tmp_path / "no.jsonl")[0] == 2
    assert run(tmp_path)[0] == 2
    assert run()[0] == 2


def test_a_file_that_is_no_log_exits_with_1(tmp_path: Path) -> None:
    """One line, no traceback."""
    (tmp_path / "notes.txt").write_text("hello\n")
    code, out, err = run(tmp_path / "notes.txt")
    assert (code, out) == (1, "")
    assert err == f"error: log: '{tmp_path}/notes.txt': line 1 is no header of a session log\n"


@pytest.mark.parametrize("name", ["tetriss", "../evil", "os", "os:system", "cartridges.tetris", "tetris.engine", ""])
def test_a_log_that_names_an_unknown_cartridge_exits_with_1(tmp_path: Path, name: str) -> None:
    """The name comes from a file, so nothing but a cartridge is ever imported for it."""
    with LogWriter(tmp_path / "log", Header(cartridges=(CartridgeRecord(name=name, version="1"),), seed=0)):
        pass
    code, out, err = run(tmp_path / "log")
    assert (code, out) == (1, "")
    assert f"no cartridge {name!r}" in err


@pytest.mark.parametrize(
    ("options", "status"),
    [({"spec": 1}, 1), ({"self": 1}, 1), ({"a b": 1}, 1), ({"size": 3}, 2), ({"opcodes": "all"}, 2)],
)
def test_options_of_a_log_that_its_cartridge_does_not_take_are_an_error(
    tmp_path: Path, options: dict[str, object], status: int
) -> None:
    """One line, no traceback, whatever a log says."""
    record = CartridgeRecord(name="tetris", version="1", options=options)
    with LogWriter(tmp_path / "log", Header(cartridges=(record,), seed=0)):
        pass
    code, out, err = run(tmp_path / "log")
    assert (code, out) == (status, "")
    assert err.startswith("error: ")


MINE = """
from kernel.contract import Cartridge
from kernel.opcode import Instruction, Opcode
from kernel.prompt import Part, Prompt

class Go(Opcode):
    'Go on.'

class Engine:
    def __init__(self, length):
        self.length, self.at = length, 0
    def reset(self, seed):
        self.at = 0
    def legal(self):
        return [Instruction.of("mine", "go")] if self.at < self.length else []
    def apply(self, instruction):
        self.at += 1
        return f"{self.at} of {self.length}"
    def copy(self):
        twin = Engine(self.length)
        twin.at = self.at
        return twin
    def state_hash(self):
        return str(self.at)
    def ended(self):
        return "there" if self.at == self.length else None
    def summary(self):
        return {"steps": self.at}

class View:
    def prompt(self, engine, options, request=""):
        return Prompt((Part("go"),), ((Part("?"),),))
    def render(self, engine):
        return f"at {engine.at}"

def make(length: int = 1):
    return Cartridge("mine", "1", "Walks.", (Go,), lambda: Engine(length), View(), options={"length": length})
"""


def test_a_cartridge_that_is_not_installed_can_be_named(tmp_path: Path) -> None:
    """A folder of the person's own, with the options of the log; without it the log alone loads nothing."""
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "__init__.py").write_text(MINE)
    go = InstructionRecord(cartridge="mine", method="go")
    record = CartridgeRecord(name="mine", version="1", state="0", options={"length": 2})
    with LogWriter(tmp_path / "log", Header(cartridges=(record,), seed=5)) as log:
        log.decision(DecisionRecord(n=1, cartridge="mine", instruction=go, result="1 of 2", state="1"))
        log.outcome(Outcome(decisions=1, ending=Ending.LIMIT, summary={"mine": {"steps": 1}}))
    assert run(tmp_path / "log", "--headless")[0] == 1
    code, out, err = run(tmp_path / "log", "--headless", "--cartridge", folder)
    assert (code, out, err) == (0, "verified: 1 whole decision verifies to the end: limit\n", "")


@pytest.mark.parametrize("place", ["log.jsonl", "my logs/it's $HOME.jsonl", "-x.jsonl"])
def test_the_command_that_run_prints_plays_the_log_again(tmp_path: Path, place: str) -> None:
    """The kind: a printed command is read by a shell. Spaces, quotes, a dash first, a cartridge of one's own, a key."""
    (tmp_path / "my own" / "mine").mkdir(parents=True)
    (tmp_path / "my own" / "mine" / "__init__.py").write_text(MINE)
    (tmp_path / "my logs").mkdir()
    (tmp_path / "key").write_bytes(b"0123456789abcdef")
    root = Path(__file__).resolve().parents[2]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "PYTHONPATH": str(root)}
    arguments = ["./my own/mine", "--option", "length=3", "--player", "random", f"--log={place}", "--headless"]
    done = subprocess.run(
        [sys.executable, "-m", "kernel", "run", *arguments, "--set", "key=key"],
        cwd=tmp_path, env=env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    _, _, command = done.stderr.strip().partition("play it again with: ")
    again = subprocess.run(command, shell=True, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert (again.returncode, again.stderr) == (0, ""), command
    assert "verified: 3 whole decisions verify to the end: rules (there); sealed with the key" in again.stdout


def test_replay_stops_at_to(log: Path) -> None:
    """The verdict says that it was asked to."""
    assert run(log, "--headless", "--to", 3) == (0, "stopped as asked: 3 whole decisions verify\n", "")


@pytest.mark.parametrize("width", [12, 40, 79, 80, 200])
def test_a_frame_fits_its_width_and_shows_what_the_mask_removed(log: Path, width: int) -> None:
    """No line is wider than the terminal, no byte of the log steers it, and the ledger is there."""
    with LogReader(log) as reader:
        steps = list(Replay(reader, make_cartridge))
    console = Console(width=width, color_system=None, force_terminal=False)
    with console.capture() as capture:
        console.print(Frame(steps[0], ledger=True))
    text = capture.get()
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= width
    if width >= 79:
        for part in ("70.0 %", "-1.50", "-2.00", "removed", r"\x1b[2J", "<f0 9f>", "2 legal, mass 0.2500", "[99]"):
            assert part in text


def test_text_from_a_log_cannot_steer_a_terminal() -> None:
    """Escapes, bidirectional overrides and line breaks are shown, letters of any language stay."""
    assert shown("küche 門 \x1b]0;x\x07 \u202e \n") == r"küche 門 \x1b]0;x\x07 \u202e \n"


class Terminal:
    """The program in a pseudo-terminal of 100 x 40."""

    def __init__(self, *arguments: object) -> None:
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell's background jobs start with it ignored
            os.environ.update(COLUMNS="100", LINES="40", TERM="xterm-256color")
            os.execv(sys.executable, [sys.executable, "-c", PROGRAM, *map(str, arguments)])
        self.text = ""

    def until(self, what: Callable[[str], bool], seconds: float = 20) -> None:
        """Read until `what` holds for the text so far."""
        end = time.monotonic() + seconds
        while not what(self.text):
            assert time.monotonic() < end, self.text[-2000:]
            if select.select([self.fd], [], [], 0.1)[0]:
                try:
                    self.text += os.read(self.fd, 1 << 16).decode("utf-8", "replace")
                except OSError:
                    assert what(self.text), self.text[-2000:]

    def press(self, keys: str) -> None:
        """Type, with what was shown before forgotten."""
        self.text = ""
        os.write(self.fd, keys.encode())

    def wait(self) -> int:
        """Return the exit code."""
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        os.close(self.fd)
        return code


def test_without_termios_there_are_no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on Windows."""
    monkeypatch.setitem(sys.modules, "termios", None)
    with pytest.raises(UsageError, match="has no termios; leave out --step"), keyboard.keys():
        pass


def test_the_keyboard_steps_forward_back_and_jumps(log: Path) -> None:
    """Space, left, end, home, a number, and q; the board of each decision is drawn."""
    terminal = Terminal(log, "--step", "--from", 2)
    terminal.until(lambda text: "2. " in text and "quit" in text)
    for keys, head in [
        (" ", "3. "),
        ("\x1b[D", "2. "),
        ("\x1b[F", "8. "),
        ("\x1b[H", "1. "),
        ("6\r", "6. "),
        (" \x1b[D\x1b[D", "5. "),
    ]:
        terminal.press(keys)
        terminal.until(lambda text, head=head: head in text and "quit" in text)  # type: ignore[misc]
    terminal.press("q")
    terminal.until(lambda text: "verif" in text)
    assert terminal.wait() == 0


def test_in_a_terminal_the_board_goes_along_and_ctrl_c_ends_it(log: Path) -> None:
    """Slow enough to break into: exit 130, and the verdict says how far it came."""
    terminal = Terminal(log, "--speed", 0.1)
    terminal.until(lambda text: "2. " in text)
    os.kill(terminal.pid, signal.SIGINT)
    terminal.until(lambda text: "stopped as asked" in text)
    assert terminal.wait() == 130


def test_in_a_terminal_a_game_is_shown_to_its_end(log: Path) -> None:
    """Colours, and the verdict below the board."""
    terminal = Terminal(log, "--speed", 50)
    terminal.until(lambda text: "verified: 8 whole decisions" in text)
    assert "\x1b[" in terminal.text
    assert terminal.wait() == 0


def test_the_command_runs_as_a_program(log: Path) -> None:
    """Into a pipe that closes early, too."""
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(log)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "verified: 8" in done.stdout
