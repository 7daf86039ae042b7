"""Cartridges are found by name, module and folder; what is wrong with one is said of that one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dispatch.loading.registry import Registry, Source, load, load_all
from kernel.errors import CartridgeError, UnknownCartridgeError, UsageError

ROOT = Path(__file__).parents[2]
ECHO = ROOT / "tests" / "data" / "echo_package"
OURS = Source("home", None, "cartridges.home:make", "ours 1")

Write = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Give what writes a module into an importable folder; its modules are forgotten afterwards."""
    known = set(sys.modules)
    monkeypatch.syspath_prepend(str(tmp_path))

    def file(path: str, text: str) -> Path:
        target = tmp_path / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        return target

    yield file
    for name in set(sys.modules) - known:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def small(name: str = "small", version: str = "1", parameters: str = "") -> str:
    """Return the source of a module that makes a cartridge out of the parts of echo."""
    return (
        "from cartridges.home import make as home\n"
        "from dataclasses import replace\n"
        f"def make({parameters}):\n"
        f"    return replace(home(), name={name!r}, version={version!r})\n"
    )


def sources(*targets: str) -> list[Source]:
    """Return a source for each `name=target`, the origin counted."""
    found = []
    for number, text in enumerate(targets, 1):
        name, _, target = text.partition("=")
        name, at, version = name.partition("@")
        found.append(Source(name, version if at else None, target, f"package-{number} 1.0"))
    return found


# -- what is installed ---------------------------------------------------------------------------------------------


def test_ours_are_advertised_like_anybody_s() -> None:
    """The entry points of the installed project name them; nothing else does."""
    advertised = {source.name: source.origin.split()[0] for source in Registry().sources}
    assert {name: advertised.get(name) for name in ("home", "robot", "scavenger", "tetris")} == dict.fromkeys(
        ("home", "robot", "scavenger", "tetris"), "cartridge-kernel"
    )


def test_a_name_and_a_version_find_the_same_cartridge() -> None:
    """`home` is version 1 today."""
    assert load("home").name == load("home@1").name == "home"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("tetriss", r"no cartridge 'tetriss'; did you mean 'tetris'\?"),
        ("home@2", r"no cartridge 'home@2'; cartridge-kernel \S+ advertises home@1"),
        ("No Name", "'No Name' names no cartridge; give a name such as 'chess'"),
        ("home@", "'home@' names no cartridge"),
        ("no_such.module", "there is no module 'no_such'"),
        ("cartridges.no_such:make", r"there is no module 'cartridges\.no_such'"),
        ("./no/such/folder", "there is no folder or file '.*/no/such/folder'"),
    ],
)
def test_an_unknown_one_is_misuse_and_says_what_would_do(spec: str, message: str) -> None:
    """The command exits with 2 for it, since it is a UsageError too."""
    with pytest.raises(UnknownCartridgeError, match=message) as caught:
        load(spec)
    assert isinstance(caught.value, UsageError)


def test_without_any_source_the_way_out_is_named() -> None:
    """Nothing is installed when set-up did not run."""
    with pytest.raises(UnknownCartridgeError, match=r"no cartridge 'home'; no installed package advertises any"):
        Registry([]).load("home")


# -- versions and clashes ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pair", [("home=a", "home=b"), ("home@1=a", "home@1=b"), ("home@1=a", "home=b")])
def test_two_that_cannot_be_told_apart_are_refused_with_both_origins(pair: tuple[str, str]) -> None:
    """A name without a version could be any version."""
    registry = Registry(sources(*pair))
    with pytest.raises(CartridgeError, match=r"package-1 1\.0 \(a\).*package-2 1\.0 \(b\); uninstall one"):
        registry.load("home")
    assert [found.error is not None for found in registry.scan()] == [True, True]


def test_two_versions_stand_side_by_side_and_the_bare_name_asks_which() -> None:
    """`small@2` is found; `small` alone is refused with both."""
    registry = Registry(sources("small@1=cartridges.home:make", "small@2=cartridges.robot:make"))
    assert registry.find("small@2").target == "cartridges.robot:make"
    with pytest.raises(CartridgeError, match=r"name the version, 'small@1' or 'small@2'"):
        registry.find("small")


def test_a_cartridge_that_is_not_what_its_source_says_is_refused(write: Write) -> None:
    """The source says small@2, the cartridge version 1."""
    write("says_one.py", small())
    with pytest.raises(CartridgeError, match=r"is made as small@1; make the two agree"):
        Registry(sources("small@2=says_one:make")).load("small@2")


def test_a_session_holds_one_of_a_name() -> None:
    """The same cartridge by name and by module."""
    with pytest.raises(
        CartridgeError, match=r"two cartridges are named 'home': home of ours 1 .* and cartridges\.home"
    ):
        Registry([OURS]).load_all(["home", "cartridges.home"])


# -- one that is broken --------------------------------------------------------------------------------------------

BROKEN = {
    "import no_such_thing_at_all\n": r"cannot be imported: ModuleNotFoundError: No module .*broken\.py:1\)",
    "def make(:\n": r"cannot be imported: SyntaxError: .*broken\.py:1\)",
    "raise SystemExit(3)\n": r"cannot be imported: SystemExit: 3 \(.*broken\.py:1\)",
    "x = 1\n": r"broken has no 'make'; a cartridge has make\(\)",
    "make = 3\n": r"broken\.make is 3, no function",
    "def make():\n    return 1 / 0\n": r"cannot be made: ZeroDivisionError: division by zero \(.*broken\.py:2\)",
    "def make():\n    return 'home'\n": r"made 'home', no kernel\.contract\.Cartridge",
    small("Small Name"): r"name 'Small Name' and version '1' must match",
}


@pytest.mark.parametrize(("source", "message"), BROKEN.items())
def test_a_broken_one_is_named_alone_and_the_others_load(source: str, message: str, write: Write) -> None:
    """Eight ways to be broken; `home` beside it is found each time."""
    write("broken.py", source)
    registry = Registry([*sources("broken=broken:make"), OURS])
    broken, home = registry.scan()
    assert home.cartridge is not None
    assert broken.cartridge is None
    with pytest.raises(CartridgeError, match=message) as caught:
        registry.load("broken")
    assert str(caught.value).startswith("cartridge 'broken' of package-1 1.0")
    assert str(caught.value) == str(broken.error)


def test_only_what_is_asked_for_is_imported(write: Write) -> None:
    """Loading one leaves the module of the other alone."""
    write("first_one.py", small("first"))
    write("second_one.py", small("second"))
    Registry(sources("first=first_one:make", "second=second_one:make")).load("first")
    assert "first_one" in sys.modules
    assert "second_one" not in sys.modules


# -- modules and folders -------------------------------------------------------------------------------------------


def test_a_module_is_a_cartridge(write: Write) -> None:
    """With `make`, or with the function that is named."""
    write("parts/__init__.py", "")
    write("parts/small_module.py", small() + "other = make\n")
    assert load("parts.small_module").name == "small"
    assert load("parts.small_module:other").name == "small"


def test_a_folder_is_a_cartridge_without_being_on_the_path(write: Write, tmp_path: Path) -> None:
    """Imports within it, relative and by its own name, work."""
    write("deep/down/vessel/__init__.py", "from .parts import make\nfrom vessel.parts import make as same\n")
    write("deep/down/vessel/parts.py", small("vessel"))
    assert load(str(tmp_path / "deep" / "down" / "vessel")).name == "vessel"
    assert load(f"{tmp_path}/deep/down/vessel:same").name == "vessel"


def test_a_file_is_a_cartridge(write: Write) -> None:
    """One .py file."""
    assert load(str(write("deep/single.py", small("single")))).name == "single"


def test_a_folder_inside_a_package_is_part_of_that_package() -> None:
    """Ours by folder is the very same module as ours by name."""
    before = sys.modules.get("cartridges.home.engine")
    made = load(str(ROOT / "cartridges" / "home"))
    assert type(made.engine()).__module__ == "cartridges.home.engine"
    assert before is None or sys.modules["cartridges.home.engine"] is before


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("json/__init__.py", "Python knows another module 'json'"),
        ("not-a-name/__init__.py", "'not-a-name' is no name that Python can import; rename it"),
        ("plain/readme.md", r"there is no __init__\.py in '.*plain'"),
        ("outer/inner/__init__.py", r"there is no __init__\.py in '.*outer'; did you mean '.*inner'\?"),
    ],
)
def test_a_folder_that_cannot_be_imported_says_why(path: str, message: str, write: Write, tmp_path: Path) -> None:
    """Four folders, none of them a cartridge."""
    write(f"deep/{path}", small())
    with pytest.raises(CartridgeError, match=message):
        load(str(tmp_path / "deep" / path.partition("/")[0]))


ODD = """
class Odd(BaseException):
    def __str__(self):
        raise ValueError
class Mute:
    def __repr__(self):
        raise ValueError
"""


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (ODD + "raise Odd()\n", r"odd\.py' cannot be imported: Odd \("),
        (ODD + "def make(): raise Odd()\n", r"odd\.py' cannot be made: Odd \("),
        (ODD + "def make(): return Mute()\n", r"made <Mute instance at 0x\w+>, no kernel\.contract\.Cartridge"),
        (ODD + "make = Mute()\n", r"odd\.make is <Mute instance at 0x\w+>, no function"),
        ("def make(): return 'x' * 10_000_000\n", r"made 'xxxx.*\.\.\..*', no kernel\.contract\.Cartridge"),
        ("def make(): raise ValueError('x' * 10_000_000)\n", r"cannot be made: ValueError: x{1000} \("),
        ("raise SystemExit(3)\n", r"cannot be imported: SystemExit: 3 \("),
    ],
)
def test_code_that_cannot_even_be_told_is_an_error_in_one_line(write: Write, source: str, message: str) -> None:
    """An exception without a text, an object without a repr, one of ten megabytes: bounded, and with the place."""
    file = write("odd.py", source)
    with pytest.raises(CartridgeError, match=message) as caught:
        load(str(file))
    assert len(str(caught.value)) < 2000


def test_an_interrupt_while_a_cartridge_is_loaded_is_an_interrupt(write: Write) -> None:
    """Nothing of the module is left, so it can be loaded again."""
    file = write("halfway.py", "raise KeyboardInterrupt\n")
    with pytest.raises(KeyboardInterrupt):
        load(str(file))
    assert "halfway" not in sys.modules


def test_a_path_that_no_system_takes_is_misuse(tmp_path: Path) -> None:
    """Too long, a loop of links, the home of nobody, a NUL: one line, which is not as long as the path."""
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    for path in ("./" + "x" * 5000, str(tmp_path / "a"), "~nobody-of-that-name/x", "./x\0y"):
        with pytest.raises(UnknownCartridgeError) as caught:
            load(path)
        assert len(str(caught.value)) < 1000


def test_a_folder_that_fails_can_be_mended_and_loaded_again(write: Write) -> None:
    """The failed import leaves no half of a module behind."""
    path = write("deep/mended.py", "import no_such_thing_at_all\n")
    with pytest.raises(CartridgeError, match="no_such_thing_at_all"):
        load(str(path))
    path.write_text(small("mended") + "# longer than before\n", encoding="utf-8")
    assert load(str(path)).name == "mended"


# -- options -------------------------------------------------------------------------------------------------------


def test_options_reach_make_as_they_are_annotated_and_are_kept(write: Write) -> None:
    """Text becomes a number; a replay finds it in `options`."""
    write("opted.py", small(parameters="size: int, loud: bool = False").replace("home(), ", "home(), offered=size, "))
    made = load("opted:make", size="4")
    assert (made.offered, dict(made.options)) == (4, {"size": 4})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"sise": "4"}, r"has no option 'sise'; did you mean 'size'\?"),
        ({"size": "many"}, "option size='many': Input should be a valid integer"),
        ({}, "needs the option 'size'"),
    ],
)
def test_a_wrong_option_is_misuse(given: dict[str, str], message: str, write: Write) -> None:
    """Unknown, of the wrong kind, missing."""
    write("opted.py", small(parameters="size: int, loud: bool = False"))
    with pytest.raises(UsageError, match=message):
        load("opted:make", **given)


def test_tetris_takes_its_opcode_set() -> None:
    """`load("tetris", opcodes="place")`, and another name is refused with a suggestion."""
    assert [opcode.method for opcode in load("tetris", opcodes="place").opcodes] == ["place"]
    with pytest.raises(UsageError, match=r"did you mean 'opcodes'\?"):
        load("tetris", opcode="place")


def test_several_cartridges_share_the_options_of_a_command() -> None:
    """An option goes to those that take its value, the others keep their defaults; one that none takes is refused."""
    home, tetris, scavenger = load_all(["home", "tetris", "scavenger"], opcodes="place")
    assert (dict(home.options), dict(tetris.options)) == ({}, {"opcodes": "place"})
    assert dict(scavenger.options) == {}
    home, tetris = load_all(["home", "tetris"], opcodes="typed")
    assert (dict(home.options), dict(tetris.options)) == ({"opcodes": "typed"}, {"opcodes": "syllables"})
    with pytest.raises(UsageError, match=r"'home'.*option opcodes 'moves-typed' is not there; did you mean 'typed'"):
        load_all(["home", "tetris"], opcodes="moves-typed")
    with pytest.raises(UsageError, match=r"home tetris: there is no option 'opcode'; did you mean 'opcodes'\?"):
        load_all(["home", "tetris"], opcode="place")


# -- an installed package ------------------------------------------------------------------------------------------


def wheel(folder: Path, name: str, files: dict[str, str], entry_points: str) -> Path:
    """Write a wheel: its files by path, its entry points as lines."""
    info = f"{name}-1.0.dist-info"
    files = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[cartridge_kernel.cartridges]\n{entry_points}\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in [*files, f"{info}/RECORD"])
    path = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for inside, text in files.items():
            archive.writestr(inside, text)
    return path


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install three wheels with pip: one that works, one that cannot be imported, one that takes the name of ours."""
    folder = tmp_path_factory.mktemp("wheels")
    echo = {str(p.relative_to(ECHO)): p.read_text("utf-8") for p in ECHO.rglob("*") if p.suffix in (".py", ".md")}
    wheels = [
        wheel(folder, "echo_cartridge", echo, "echo = echo_cartridge:make\necho quietly = echo_cartridge:make"),
        wheel(
            folder,
            "broken_cartridge",
            {"broken_cartridge.py": "import no_such_thing_at_all\n"},
            "broken = broken_cartridge:make",
        ),
        wheel(folder, "rival", {"rival.py": small("robot")}, "robot = rival:make"),
    ]
    target = folder / "site"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", str(target)]
    subprocess.run([*pip, *map(str, wheels)], check=True)
    return target


def kernel(site: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command with the installed packages in reach."""
    path = os.pathsep.join([str(site), str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.run(
        [sys.executable, "-m", "kernel", *words], env=environment, capture_output=True, text=True, cwd=site
    )


def test_an_installed_package_appears_in_the_list_and_a_broken_one_harms_nothing(site: Path) -> None:
    """Version, origin, count and line of the good one; the reasons of the three others; exit code 0."""
    done = kernel(site, "list", "--json")
    rows = {row["id"]: row for row in json.loads(done.stdout)}
    assert done.returncode == 0
    assert rows["echo"] == {
        "id": "echo",
        "origin": "echo-cartridge 1.0",
        "target": "echo_cartridge:make",
        "name": "echo",
        "version": "3",
        "opcodes": 3,
        "open_opcodes": 0,
        "summary": "Says words.",
        "error": None,
    }
    assert "No module named 'no_such_thing_at_all'" in rows["broken"]["error"]
    assert "rival 1.0 (rival:make)" in rows["robot"]["error"]
    assert "cartridge-kernel" in rows["robot"]["error"]
    assert "no name such as 'chess'" in rows["echo quietly"]["error"]
    assert rows["home"]["error"] is None


def test_the_list_for_people_names_the_broken_ones_on_stderr(site: Path) -> None:
    """One line each; the table is on stdout."""
    done = kernel(site, "list")
    assert [line.split()[:3] for line in done.stdout.splitlines() if line.startswith("echo")] == [
        ["echo", "3", "echo-cartridge"]
    ]
    broken = [line for line in done.stderr.splitlines() if line.startswith("broken: ")]
    assert len(broken) == 4
    assert "Traceback" not in done.stderr


def test_an_installed_cartridge_runs_and_passes_the_check(site: Path) -> None:
    """A random player says five words, and the session ends by the rules."""
    done = kernel(site, "run", "echo", "--player", "random", "--headless", "--json")
    document = json.loads(done.stdout)
    assert (document["decisions"], document["detail"], document["words"]) == (5, "all is said", 5)
    checked = kernel(site, "check", "echo", "--option", "limit=7", "--json", "--steps", "50")
    assert json.loads(checked.stdout)["ok"], checked.stdout


def test_the_others_cannot_be_run_and_say_why(site: Path) -> None:
    """One line, no traceback; 1 for a broken cartridge, 2 for a name that was typed wrong."""
    broken, clash, typo = (kernel(site, "run", name, "--player", "random") for name in ("broken", "robot", "ecko"))
    assert (broken.returncode, clash.returncode, typo.returncode) == (1, 1, 2)
    for done, words in (
        (broken, "cannot be imported"),
        (clash, "is advertised 2 times"),
        (typo, "did you mean 'echo'?"),
    ):
        assert words in done.stderr
        assert done.stderr.count("\n") == 1
