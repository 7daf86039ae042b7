"""The real `openai` client and plain curl against the real small model: the calls that `run` and `call` make."""

from __future__ import annotations

import contextlib
import io
import json
import re
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import openai
import pytest
from typer.testing import CliRunner

from dispatch.cli import app
from dispatch.cli import call as call_module
from dispatch.loading.registry import load
from dispatch.serve.app import make_app
from dispatch.serve.limits import Limits
from dispatch.serve.place import Place
from dispatch.serve.queue import KernelQueue
from dispatch.serve.server import Server, bind
from dispatch.serve.services import Services
from dispatch.session.model_player import ModelPlayer
from dispatch.session.session import Session
from dispatch.wire.wire import Wire
from kernel.api import Kernel
from kernel.choose.rule import Rule, RuleName
from tests.serve.conftest import until

pytestmark = pytest.mark.model

EXACT = Rule(RuleName.EXACT)
"""Reads one head of the guide; `calibrated` reads four, and a null prompt for each command, which takes a while."""

AT_HOME = (
    "I'm freezing",
    "turn on the kitchen light",
    "lock the front door",
    "play some music",
    "it is too dark in the hall",
)
SURE = ("turn on the kitchen light", "lock the front door", "it is too dark in the hall")
"""Decided by more than TOLERANCE, with three answers. "I'm freezing" is not: the second is nearer than what lines that
other tests have stored can move a score of these weights."""
WITH_TOOLS = (
    "how warm will it be in Paris?",
    "set an alarm at 7",
    "weather in Oslo for three days",
    "note: buy milk",
    "is it raining in Rome",
)

LISTED = [
    {"type": "function", "function": {"name": name, "description": told, "parameters": parameters}}
    for name, told, parameters in (
        (
            "getWeather",
            "The weather of a city.",
            {
                "properties": {"city": {"enum": ["Paris", "Oslo", "Rome"]}, "days": {"enum": [1, 2, 3]}},
                "required": ["city", "days"],
            },
        ),
        ("set-alarm", "Set an alarm.", {"properties": {"hour": {"type": "integer", "minimum": 0, "maximum": 23}}}),
        ("note", "Write a note.", {"properties": {"text": {"type": "string", "maxLength": 12}}, "required": ["text"]}),
    )
]
"""Names that are no methods, values that can be listed, one that may be missing, and a text."""


@pytest.fixture(scope="module")
def served(smollm2_path: Path) -> Iterator[SimpleNamespace]:
    """A server with the real model in a thread, and its kernel, which `call` may use in the same process."""
    kernel = Kernel.load(str(smollm2_path), threads=1)
    limits = Limits()
    queue = KernelQueue(lambda: kernel, limits)
    made = Services(
        queue,
        "smollm2",
        lambda name: kernel,
        rule=EXACT,
        cartridges=(load("home"),),
        specs=("home",),
        limits=limits,
    )
    with bind("127.0.0.1", 0) as listening:
        server = Server(make_app(made), made)
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        base = f"http://127.0.0.1:{listening.getsockname()[1]}"
        with openai.OpenAI(base_url=f"{base}/v1", api_key="none", max_retries=0) as client:
            names = made.commands["home"].names.values()
            yield SimpleNamespace(base=base, client=client, kernel=kernel, queue=queue, services=made, names=names)
        server.stop()
        thread.join(10)
        assert queue.close(10)


@pytest.fixture
def call(served: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Give what `python -m kernel call --dry --json` says; it loads no second model."""
    monkeypatch.setattr(call_module, "load_kernel", lambda *_, **__: contextlib.nullcontext(served.kernel))

    def run(name: str, request: str) -> tuple[str, Any]:
        done = CliRunner().invoke(app, ["call", name, request, "--rule", "exact", "--dry", "--json"])
        assert done.exit_code == 0, done.output
        found = json.loads(done.stdout)
        return found["method"], found["arguments"]

    return run


def answered(client: openai.OpenAI, stream: bool, **fields: Any) -> tuple[str, Any]:
    """Return name and arguments of the call that answers, put together from its pieces where it is a stream."""
    if not stream:
        answer = client.chat.completions.create(**fields)
        assert answer.choices[0].finish_reason == "tool_calls"
        (made,) = answer.choices[0].message.tool_calls or ()
        return made.function.name, json.loads(made.function.arguments)
    name, arguments, finished = "", "", []
    for chunk in client.chat.completions.create(**fields, stream=True):
        choice = chunk.choices[0]
        finished.append(choice.finish_reason)
        for piece in choice.delta.tool_calls or ():
            name += piece.function.name or ""
            arguments += piece.function.arguments or ""
    assert finished[-1] == "tool_calls"
    assert set(finished[:-1]) == {None}
    return name, json.loads(arguments)


def user(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


@pytest.mark.parametrize("requests", [AT_HOME[1:3], pytest.param(AT_HOME, marks=pytest.mark.slow)], ids=["two", "five"])
def test_calls_of_a_cartridge_are_those_of_its_session(served: SimpleNamespace, requests: tuple[str, ...]) -> None:
    """Requests to `home`, whole and as a stream, and a session of it that carries them out; of two, one each."""
    home = load("home")
    session = Session([home], ModelPlayer(served.kernel, Wire([home]), [home], EXACT), seed=0)
    seen = set()
    for number, request in enumerate(requests):
        turn = session.turn(request)
        expected = turn.instruction.method, turn.instruction.args
        for stream in (False, True) if len(requests) > 2 else (number == 1,):
            assert answered(served.client, stream, model="home", messages=user(request)) == expected
        seen.add(repr(turn.instruction))
    assert len(seen) > 1
    light = {"type": "function", "function": {"name": "light"}}
    fields: dict[str, Any] = {"model": "home", "messages": user(AT_HOME[0]), "tool_choice": light}
    answer = served.client.chat.completions.create(**fields, logprobs=True, top_logprobs=3)
    assert answer.choices[0].message.tool_calls[0].function.name == "light"
    (token,) = answer.choices[0].logprobs.content
    assert [each.token.split()[0] for each in token.top_logprobs] == ["light"] * 3
    assert token.token == token.top_logprobs[0].token


@pytest.mark.parametrize(
    "requests",
    [WITH_TOOLS[::3], pytest.param(WITH_TOOLS, marks=pytest.mark.slow)],
    ids=["two", "five"],
)
def test_calls_of_a_tool_list_are_those_of_the_command_call(
    served: SimpleNamespace, call: Any, requests: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requests with tools, whole and as a stream (of two, one each); `import` has made a cartridge for the command."""
    monkeypatch.chdir(tmp_path)
    Path("tools.json").write_text(json.dumps(LISTED))
    name = f"tools{len(requests)}"  # a module that was imported in this process keeps its name
    assert CliRunner().invoke(app, ["import", "tools.json", "-o", name]).exit_code == 0
    methods = {"getweather": "getWeather", "set-alarm": "set-alarm", "note": "note"}
    seen = set()
    for number, request in enumerate(requests):
        method, arguments = call(f"./{name}", request)
        for stream in (False, True) if len(requests) > 2 else (number == 1,):
            fields = {"model": "smollm2", "messages": user(request), "tools": LISTED}
            assert answered(served.client, stream, **fields) == (methods[method], arguments)
        seen.add((method, *arguments.values()))
    assert len(seen) >= min(3, len(requests))


def test_a_named_tool_is_the_one_that_is_called(served: SimpleNamespace, weather_tools: Any) -> None:
    """Whatever the model would rather call."""
    fields = {"model": "smollm2", "messages": user("how warm will it be in Paris?"), "tools": weather_tools}
    alarm, weather = ({"type": "function", "function": {"name": name}} for name in ("set_alarm", "getWeather"))
    assert answered(served.client, False, **fields, tool_choice=weather)[0] == "getWeather"
    assert answered(served.client, True, **fields, tool_choice=alarm)[0] == "set_alarm"
    allowed = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [alarm]}}
    assert answered(served.client, False, **fields, tool_choice=allowed)[0] == "set_alarm"


def test_a_value_of_a_schema_through_the_clients_own_helper(served: SimpleNamespace) -> None:
    """`parse` with a pydantic class: the schema that the client writes of it is held."""
    from pydantic import BaseModel

    class Person(BaseModel):
        name: str
        age: int

    answer = served.client.chat.completions.parse(
        model="smollm2", messages=user("a lighthouse keeper"), response_format=Person, max_tokens=60
    )
    assert isinstance(answer.choices[0].message.parsed, Person)


def test_errors_are_those_of_the_client(served: SimpleNamespace, weather_tools: Any) -> None:
    """Typed, with the field at fault; the model that a client asks for by habit is not there."""
    ask = served.client.chat.completions.create
    with pytest.raises(openai.BadRequestError) as plain:
        ask(model="smollm2", messages=user("hello"))
    assert (plain.value.param, plain.value.code) == ("tools", "unconstrained")
    with pytest.raises(openai.NotFoundError) as missing:
        ask(model="gpt-4o", messages=user("hello"), tools=weather_tools)
    assert missing.value.param == "model"
    with pytest.raises(openai.BadRequestError) as both:
        ask(model="home", messages=user("hello"), tools=weather_tools)
    assert both.value.param == "tools"
    with pytest.raises(openai.BadRequestError) as told:
        ask(model="home", messages=[{"role": "system", "content": "be kind"}, *user("hello")])
    assert told.value.param == "messages[0].role"
    with pytest.raises(openai.BadRequestError) as hot:
        ask(model="home", messages=user("hello"), temperature=0.5)
    assert hot.value.param == "temperature"
    with pytest.raises(openai.BadRequestError) as long:
        ask(model="smollm2", messages=user("so long " * 3000), tools=weather_tools)
    assert long.value.code == "context_length_exceeded"


README = (Path(__file__).resolve().parents[2] / "README.md").read_text("utf-8")


def example(served: SimpleNamespace) -> tuple[str, str]:
    """Run the lines of README against the server; return what they print and what README says that they print."""
    (program,) = re.findall(r"```python\n(from openai .*?)```", README, re.DOTALL)
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(program.replace("http://127.0.0.1:8117", served.base), {})
    return said.getvalue().strip(), program.rpartition("  # ")[2].strip()


def test_the_lines_of_readme_run(served: SimpleNamespace) -> None:
    """Five of them; they print the name of a command and its arguments. What the default rule says is tested below."""
    printed, shown = example(served)
    name, _, arguments = printed.partition(" ")
    assert name in served.names
    assert json.loads(arguments)
    assert shown.startswith("heater {")


@pytest.mark.slow
def test_the_lines_of_readme_print_what_it_says(served: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the default rule, which reads the whole guide."""
    home = served.services.commands["home"]
    monkeypatch.setattr(home, "_rule", None)
    monkeypatch.setattr(home, "_player", None)
    printed, shown = example(served)
    assert printed == shown
    monkeypatch.setattr(home, "_player", None)


def test_the_models_are_listed(served: SimpleNamespace) -> None:
    """The model, and the cartridges that take requests."""
    assert [model.id for model in served.client.models.list()] == ["smollm2", "home"]
    assert served.client.models.retrieve("home").owned_by == "cartridge"
    with pytest.raises(openai.NotFoundError):
        served.client.models.retrieve("hom")


def curl(*arguments: str) -> str:
    done = subprocess.run(["curl", "-sS", "--max-time", "60", *arguments], capture_output=True, text=True, check=True)
    return done.stdout


def test_curl_reaches_everything(served: SimpleNamespace) -> None:
    """The lines of docs/serve.md, and what `choose` says of the same options."""
    body = json.dumps({"prompt": "The opposite of open is", "options": ["shut", "opener"]})
    found = json.loads(curl(f"{served.base}/v1/choose", "-H", "Content-Type: application/json", "-d", body))
    decision = served.kernel.choose("The opposite of open is", ["shut", "opener"])
    assert found["text"] == decision.text == "shut"
    assert found["probability"] == pytest.approx(decision.probability)
    assert {option["text"] for option in found["options"]} == {"shut", "opener"}
    assert "outcome" not in found
    body = json.dumps({"prompt": "The opposite of open is", "options": ["shut", "opener"], "listed": True})
    found = json.loads(curl(f"{served.base}/v1/choose", "-H", "Content-Type: application/json", "-d", body))
    decision = served.kernel.choose("The opposite of open is", ["shut", "opener"], listed=True)
    assert (found["text"], found["probability"]) == (decision.text, pytest.approx(decision.probability))
    asked = {
        "prompt": "Request: what is the capital of France\nCommand:",
        "options": ["heater warmer", "heater cooler", "music play"],
        "null": "Request: N/A\nCommand:",
        "rule": "calibrated",
        "outcome": {"top": 99.0},
    }
    said = curl(f"{served.base}/v1/choose", "-H", "Content-Type: application/json", "-d", json.dumps(asked))
    assert json.loads(said)["outcome"] == "none"
    asked["outcome"] = {"top": None, "margin": 99.0}
    said = curl(f"{served.base}/v1/choose", "-H", "Content-Type: application/json", "-d", json.dumps(asked))
    assert json.loads(said)["outcome"] == "unsure"
    assert len(json.loads(said)["close"]) == 2
    asked["outcome"] = True
    said = curl(f"{served.base}/v1/choose", "-H", "Content-Type: application/json", "-d", json.dumps(asked))
    assert json.loads(said)["outcome"] in ("none", "chosen")
    asked["outcome"] = {"height": 1.0}
    said = curl(f"{served.base}/v1/choose", "-H", "Content-Type: application/json", "-d", json.dumps(asked))
    assert json.loads(said)["error"]["param"] == "outcome"
    assert json.loads(curl(f"{served.base}/healthz"))["status"] == "ok"
    assert "# TYPE kernel_requests_total counter\n" in curl(f"{served.base}/metrics")
    stream = curl(
        f"{served.base}/v1/chat/completions",
        "-N",
        "-H",
        "Content-Type: application/json",
        "-d",
        json.dumps({"model": "home", "messages": user("I'm freezing"), "stream": True}),
    )
    assert stream.rstrip().endswith("data: [DONE]")


def many(served: SimpleNamespace, clients: int, seconds: float, least: int) -> list[int]:
    """Let clients ask at once, each `least` times and on until the time is over; return how often each was answered.

    The kernel is held until all of them wait.
    """
    expected = {request: answered(served.client, False, model="home", messages=user(request)) for request in SURE}
    assert len(set(map(repr, expected.values()))) == 3, "else answers that were mixed up would look right"
    wrong: list[Any] = []
    counts = [0] * clients
    all_wait = threading.Event()
    end = time.monotonic() + seconds

    def ask(number: int) -> None:
        with openai.OpenAI(base_url=f"{served.base}/v1", api_key="none", max_retries=0) as client:
            turn = number
            while counts[number] < least or time.monotonic() < end:
                request = SURE[turn % 3]
                turn += 1
                try:
                    found = answered(client, turn % 2 == 0, model="home", messages=user(request))
                except openai.OpenAIError as error:
                    wrong.append(error)
                    return
                if found != expected[request]:
                    wrong.append((request, found))
                counts[number] += 1

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(clients)]
    with served.queue.place() as place:
        held = place.submit(lambda kernel: all_wait.wait(90))
        for thread in threads:
            thread.start()
        try:
            until(lambda: len(served.queue._jobs) == clients, 60)
        finally:
            all_wait.set()
        held.result(90)
    for thread in threads:
        thread.join(600)
    assert wrong == []
    return counts


def test_many_clients_at_once_get_right_answers_in_turn(
    served: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four clients with two requests each: no error, no wrong answer, shared passes, and nobody is passed over.

    The first requests of all wait before one is answered, and the order is that in which the server is done with them:
    when a client sends and reads is a matter of the machine.
    """
    queue = served.queue
    before, leave = queue.shared, queue._leave
    left: list[int] = []

    def leaving(place: Place) -> None:
        left.append(place.number)
        leave(place)

    monkeypatch.setattr(queue, "_leave", leaving)
    counts = many(served, 4, 0, 2)
    assert counts == [2] * 4
    assert queue.shared > before
    came = sorted(left)[-8:]
    went = [number for number in left if number in came]
    assert set(went[:4]) == set(came[:4]), "nobody had both answers before another one had its first"


@pytest.mark.slow
def test_sixteen_clients_for_a_minute(served: SimpleNamespace) -> None:
    """No error, no wrong answer, and each client was answered as often as the others."""
    before = served.queue.shared
    counts = sorted(many(served, 16, 60, 1))
    assert counts[0] >= 2
    assert counts[-1] - counts[0] <= 2, counts
    assert served.queue.shared > before
