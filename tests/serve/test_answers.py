"""What is told of an answer: the text whole or in pieces, log-probabilities worked out again from the rows."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dispatch.serve.pieces import Argument
from kernel.opcode.tool_prompt import ToolPrompt
from kernel.opcode.tools import read_tools
from kernel.text.vocabulary import Vocabulary


@pytest.fixture(scope="module")
def live(running: Any) -> Any:
    with running() as made:
        yield made


def chunks(reply: Any) -> list[dict[str, Any]]:
    """Return the chunks of a stream, which ends as OpenAI's do."""
    assert reply.headers["content-type"].startswith("text/event-stream")
    events = [line for line in reply.body.decode().split("\n") if line.startswith("data: ")]
    assert events[-1] == "data: [DONE]"
    return [json.loads(event.removeprefix("data: ")) for event in events[:-1]]


def test_a_stream_says_what_the_whole_answer_says(live: Any, weather_tools: Any) -> None:
    """Role and name first, then the arguments in pieces, then why it ended, then the usage, as OpenAI sends them."""
    fields = {"tools": weather_tools, "tool_choice": "required", "logprobs": True, "top_logprobs": 2}
    whole = live.ask("POST", "/v1/chat/completions", live.chat(**fields)).json
    usage = {"stream": True, "stream_options": {"include_usage": True}}
    told = chunks(live.ask("POST", "/v1/chat/completions", live.chat(**fields, **usage)))
    assert {chunk["object"] for chunk in told} == {"chat.completion.chunk"}
    assert len({chunk["id"] for chunk in told}) == 1
    *said, last = told
    assert (last["choices"], last["usage"]) == ([], whole["usage"])
    assert {chunk["usage"] for chunk in said} == {None}
    first, *middle, end = [chunk["choices"][0] for chunk in said]
    call = whole["choices"][0]["message"]["tool_calls"][0]
    assert first["delta"]["role"] == "assistant"
    begun = first["delta"]["tool_calls"][0]
    assert (begun["function"], begun["type"]) == ({"name": call["function"]["name"], "arguments": ""}, "function")
    pieces = [choice["delta"]["tool_calls"][0]["function"]["arguments"] for choice in middle]
    assert "".join(pieces) == call["function"]["arguments"]
    assert len(pieces) > 3
    assert json.loads(call["function"]["arguments"])
    assert (end["delta"], end["finish_reason"]) == ({}, whole["choices"][0]["finish_reason"])
    tokens = [token for choice in middle for token in choice["logprobs"]["content"]]
    assert tokens == whole["choices"][0]["logprobs"]["content"]


def test_log_probabilities_are_those_among_the_legal_tokens(
    live: Any, weather_tools: Any, tools: SimpleNamespace
) -> None:
    """Worked out again from the row behind prompt and path; forced tokens have 0, the tool itself its share."""
    fields = {"tools": weather_tools, "logprobs": True, "top_logprobs": 20}
    asked = live.chat(**fields, tool_choice={"type": "function", "function": {"name": "set_alarm"}})
    choice = live.ask("POST", "/v1/chat/completions", asked).json["choices"][0]
    vocabulary: Vocabulary = live.services.queue.kernel.vocabulary
    row = tools.hashed_row(len(vocabulary))
    listed = vocabulary.prompt(ToolPrompt(read_tools(weather_tools).opcodes).asked("warm?").parts)
    path = listed + vocabulary.plain("<|call|>tools.set_alarm ")
    chosen = 0
    for token in choice["logprobs"]["content"]:
        data = bytes(token["bytes"])
        if token["top_logprobs"]:
            chosen += 1
            legal = [vocabulary.plain(bytes(each["bytes"]))[0] for each in token["top_logprobs"]]
            values = tools.log_softmax(row(tuple(path))[legal])
            assert len(legal) > 1
            np.testing.assert_allclose([each["logprob"] for each in token["top_logprobs"]], values, atol=1e-5)
            assert token["logprob"] == pytest.approx(values.max(), abs=1e-5), "the most probable one is taken"
        else:
            assert token["logprob"] == 0
        path += vocabulary.plain(data)
    assert chosen >= 1
    text = b"".join(bytes(token["bytes"]) for token in choice["logprobs"]["content"])
    assert choice["message"]["tool_calls"][0]["function"]["arguments"].encode() in text
    both = live.ask("POST", "/v1/chat/completions", live.chat(**fields, tool_choice="required")).json
    tool, *_ = both["choices"][0]["logprobs"]["content"]
    assert {each["token"] for each in tool["top_logprobs"]} == {"getWeather", "set_alarm"}
    assert sum(np.exp(each["logprob"]) for each in tool["top_logprobs"]) == pytest.approx(1)
    assert tool["token"] == both["choices"][0]["message"]["tool_calls"][0]["function"]["name"]
    assert both["kernel"]["choices"][tool["token"]] == pytest.approx(np.exp(tool["logprob"]), abs=1e-3)


def test_a_value_is_of_its_schema_whatever_the_budget(live: Any) -> None:
    """Where the budget ends it, it is closed, and `length` says so."""
    schema = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "tags": {"type": "array", "items": {"type": "boolean"}}},
        "required": ["name", "tags"],
        "additionalProperties": False,
    }
    form = {"type": "json_schema", "json_schema": {"name": "thing", "schema": schema, "strict": True}}
    ended: list[bool] = []
    for temperature, seed in ((0.0, 0), (1.5, 1), (1.5, 2)):
        asked = live.chat(response_format=form, max_tokens=26, temperature=temperature, seed=seed)
        reply = live.ask("POST", "/v1/chat/completions", asked)
        choice = reply.json["choices"][0]
        written = choice["message"]["content"]
        closed = reply.json["kernel"]["closed_tokens"]
        assert choice["finish_reason"] == ("length" if closed else "stop")
        ended += [closed > 0]
        assert reply.json["usage"]["completion_tokens"] <= 26
        found = json.loads(written)
        assert isinstance(found["name"], str)
        assert all(isinstance(tag, bool) for tag in found["tags"])
        assert "\n" not in written
        told = [
            chunk["choices"][0] for chunk in chunks(live.ask("POST", "/v1/chat/completions", asked | {"stream": True}))
        ]
        assert "".join(choice["delta"].get("content") or "" for choice in told) == written
        assert told[-1]["finish_reason"] == choice["finish_reason"]
    assert any(ended)


def test_what_was_said_before_stands_in_the_prompt(
    live: Any, weather_tools: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Data stays data: control tokens in a message are text. In the null prompt the last request asks for nothing."""
    seen: list[Any] = []
    kernel = live.services.queue.kernel
    ids = kernel.ids
    monkeypatch.setattr(kernel, "ids", lambda prompt: seen.append(prompt) or ids(prompt))
    call = {"id": "c", "type": "function", "function": {"name": "getWeather", "arguments": '{"city":"Oslo","days":1}'}}
    told = [
        {"role": "system", "content": "Be kind.<|end|>"},
        {"role": "user", "content": "Oslo?"},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "cold\nand wet"},
        {"role": "user", "content": "wake me"},
    ]
    assert live.ask("POST", "/v1/chat/completions", live.chat(messages=told, tools=weather_tools)).status == 200
    (prompt,) = seen
    text = "".join(part.text for part in prompt.parts)
    assert text.startswith("Be kind.<|end|>\n\nTools:\n- getweather(city, days): The weather of a city\n")
    assert text.endswith(
        "\nRequest: Oslo?"
        '\nCall: <|call|>tools.getweather {"city":"Oslo","days":1}<|/call|>'
        "\nResult: cold and wet"
        "\nRequest: wake me\nCall:"
    )
    (null,) = prompt.nulls
    assert "".join(part.text for part in null) == text.replace("wake me", "N/A")
    assert [part.text for part in prompt.parts if part.trusted and "<|" in part.text] == []
    end = len(kernel.vocabulary) - 1
    assert end not in kernel.vocabulary.prompt(prompt.parts)


def test_a_request_that_means_no_tool_is_answered_with_a_sentence(live: Any, weather_tools: Any) -> None:
    """As `call` does nothing then. `required` calls all the same."""
    held = set()
    for number in range(40):
        asked = live.chat(f"number {number}", tools=weather_tools)
        answer = live.ask("POST", "/v1/chat/completions", asked).json
        choice, outcome = answer["choices"][0], answer["kernel"]["outcome"]
        if outcome == "chosen":
            assert choice["finish_reason"] == "tool_calls"
            continue
        assert choice["finish_reason"] == "stop"
        assert "tool_calls" not in choice["message"]
        assert choice["message"]["content"].startswith("nothing was done: ")
        assert (outcome == "unsure") == (len(answer["kernel"]["close"]) == 2)
        if outcome not in held:
            told = [
                each["choices"][0]
                for each in chunks(live.ask("POST", "/v1/chat/completions", asked | {"stream": True}))
            ]
            text = "".join(each["delta"].get("content") or "" for each in told)
            assert (text, told[-1]["finish_reason"]) == (choice["message"]["content"], "stop")
            called = live.ask("POST", "/v1/chat/completions", asked | {"tool_choice": "required"}).json
            assert called["choices"][0]["message"]["tool_calls"]
        held.add(outcome)
    assert "none" in held


@pytest.mark.parametrize("cut", [1, 2, 3, 5, 99])
def test_arguments_are_cut_out_of_the_call_wherever_its_pieces_end(cut: int) -> None:
    """Brackets, quotes and marks inside of strings end nothing."""
    head, arguments = "<|call|>tools.say ", '{"text":"}<|/call|>\\"\\\\","deep":[{"a":[]}]}'
    text = f"{head}{arguments}<|/call|>\n"
    cutter = Argument(head)
    assert "".join(cutter.take(text[at : at + cut]) for at in range(0, len(text), cut)) == arguments


@pytest.mark.parametrize("count", [1, 2])
def test_a_request_that_means_no_tool_calls_none(live: Any, weather_tools: Any, count: int) -> None:
    """However few tools there are; where a call is required, one is made."""
    asked = live.chat("Who won the cup?", tools=weather_tools[:count])
    reply = live.ask("POST", "/v1/chat/completions", asked).json
    assert "tool_calls" not in reply["choices"][0]["message"]
    assert (reply["kernel"]["outcome"], reply["choices"][0]["finish_reason"]) == ("none", "stop")
    reply = live.ask("POST", "/v1/chat/completions", {**asked, "tool_choice": "required"}).json
    assert reply["choices"][0]["finish_reason"] == "tool_calls"
