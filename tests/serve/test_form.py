"""What a chat may ask: every field that would change the answer and is not supported is an error that names it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dispatch.serve.messages import read_messages

USER = {"role": "user", "content": "warm?"}


@pytest.fixture(scope="module")
def live(running: Any) -> Any:
    with running() as made:
        yield made


@pytest.mark.parametrize(
    ("fields", "param", "code"),
    [
        ({}, "tools", "unconstrained"),
        ({"model": "gpt-4o"}, "model", "model_not_found"),
        ({"model": ...}, "model", "missing_field"),
        ({"messages": []}, "messages", "invalid_value"),
        ({"messages": "hi"}, "messages", "invalid_value"),
        ({"messages": [{"role": "wizard", "content": "x"}]}, "messages[0].role", "invalid_value"),
        ({"messages": [{"role": "user"}]}, "messages[0].content", "invalid_value"),
        ({"messages": [{"role": "system", "content": "x"}]}, "messages", "invalid_value"),
        ({"messages": [USER, {"role": "assistant", "content": "x"}]}, "messages[1].role", "invalid_value"),
        ({"messages": [{**USER, "mood": 1}]}, "messages[0].mood", "invalid_value"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]},
            "messages[0].content[0].type",
            "invalid_value",
        ),
        (
            {"messages": [USER, {"role": "assistant", "tool_calls": [{"id": "1"}]}, USER]},
            "messages[1].tool_calls[0].function",
            "invalid_value",
        ),
        ({"frob": 1}, "frob", "unknown_field"),
        ({"n": 2}, "n", "unsupported"),
        ({"n": True}, "n", "unsupported"),
        ({"top_p": 0.5}, "top_p", "unsupported"),
        ({"frequency_penalty": 0.1}, "frequency_penalty", "unsupported"),
        ({"presence_penalty": -1}, "presence_penalty", "unsupported"),
        ({"logit_bias": {"5": 1}}, "logit_bias", "unsupported"),
        ({"stop": ["x"]}, "stop", "unsupported"),
        ({"store": True}, "store", "unsupported"),
        ({"modalities": ["audio"]}, "modalities", "unsupported"),
        ({"audio": {}}, "audio", "unsupported"),
        ({"prediction": {}}, "prediction", "unsupported"),
        ({"reasoning_effort": "high"}, "reasoning_effort", "unsupported"),
        ({"web_search_options": {}}, "web_search_options", "unsupported"),
        ({"functions": []}, "functions", "unsupported"),
        ({"temperature": 2.5}, "temperature", "invalid_value"),
        ({"temperature": "1"}, "temperature", "invalid_value"),
        ({"seed": -1}, "seed", "invalid_value"),
        ({"max_tokens": 0}, "max_tokens", "invalid_value"),
        ({"max_tokens": 5, "max_completion_tokens": 6}, "max_tokens", None),
        ({"logprobs": True, "top_logprobs": 21}, "top_logprobs", "invalid_value"),
        ({"top_logprobs": 2}, "top_logprobs", "invalid_value"),
        ({"stream_options": {"include_usage": True}}, "stream_options", "invalid_value"),
        ({"tool_choice": "required"}, "tool_choice", "invalid_value"),
        ({"response_format": {"type": "json_object"}}, "response_format.type", "unsupported"),
        ({"response_format": {"type": "json_schema"}}, "response_format.json_schema", "missing_field"),
        ({"response_format": {"type": "text"}}, "tools", "unconstrained"),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"not": {}}}}},
            "response_format.json_schema.schema",
            "unsupported_schema",
        ),
        ({"tools": [{"type": "custom", "custom": {"name": "x"}}]}, "tools[0]", "unsupported_tool"),
    ],
)
def test_what_is_not_supported_is_named(live: Any, fields: dict[str, Any], param: str, code: str | None) -> None:
    """Alone, and where the answer was to be a stream: an error has its status before anything is sent."""
    before = live.gate.passes
    status = 404 if code == "model_not_found" else 400
    for stream in (False, True):
        if stream and "stream_options" in fields:
            continue
        reply = live.ask("POST", "/v1/chat/completions", live.chat(**fields, stream=stream))
        assert reply.fault == (status, param, code)
        assert reply.headers["content-type"] == "application/json"
    assert live.gate.passes == before


@pytest.mark.parametrize(
    ("fields", "param", "code"),
    [
        ({"tool_choice": "some"}, "tool_choice", "invalid_value"),
        ({"tool_choice": "none"}, "tool_choice", "unconstrained"),
        ({"tool_choice": {"type": "function", "function": {"name": "nowhere"}}}, "tool_choice", "unknown_tool"),
        ({"tool_choice": {"type": "function"}}, "tool_choice", "invalid_value"),
        ({"tool_choice": {"type": "allowed_tools", "allowed_tools": {"tools": []}}}, "tool_choice", "invalid_value"),
    ],
)
def test_a_choice_among_the_tools_is_one_of_them(
    live: Any, weather_tools: Any, fields: dict[str, Any], param: str, code: str | None
) -> None:
    """Or an error."""
    assert live.ask("POST", "/v1/chat/completions", live.chat(tools=weather_tools, **fields)).fault == (
        400,
        param,
        code,
    )


def test_a_tool_that_cannot_be_held_is_named_by_its_place(live: Any, weather_tools: Any) -> None:
    """It is not left out in silence, as that would change the answer."""
    odd = {
        "type": "function",
        "function": {"name": "odd", "parameters": {"properties": {"a": {"not": {"type": "null"}}}}},
    }
    reply = live.ask("POST", "/v1/chat/completions", live.chat(tools=[*weather_tools, odd]))
    assert reply.fault == (400, "tools[2]", "unsupported_tool")
    assert "not" in reply.json["error"]["message"]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "invalid_json"),
        (b"[]", "invalid_json"),
        (b"{", "invalid_json"),
        (b'{"model": NaN}', "invalid_json"),
        (b"[" * 100_000, "invalid_json"),
        (b"\xff\xfe", "invalid_json"),
        (b'{"model": "\\ud800"}', "invalid_json"),
        (b'{"model": ' + b"9" * 5000 + b"}", "invalid_json"),
    ],
)
def test_a_body_that_is_no_request_is_an_error(live: Any, body: bytes, code: str) -> None:
    """Never a traceback, whatever it is."""
    for path in ("/v1/chat/completions", "/v1/choose"):
        assert live.ask("POST", path, body).fault == (400, None, code)


def test_plain_values_of_other_fields_are_taken(live: Any, weather_tools: Any) -> None:
    """Clients send them although they mean nothing else than leaving them out."""
    plain: dict[str, Any] = {
        "n": 1,
        "top_p": 1.0,
        "frequency_penalty": 0.0,
        "presence_penalty": 0,
        "logit_bias": {},
        "stop": None,
        "store": False,
        "service_tier": "auto",
        "modalities": ["text"],
        "user": "me",
        "metadata": {"a": "b"},
        "parallel_tool_calls": True,
        "stream_options": None,
    }
    reply = live.ask(
        "POST", "/v1/chat/completions", live.chat("weather in Paris for 2 days?", tools=weather_tools, **plain)
    )
    assert reply.status == 200
    assert reply.json["choices"][0]["message"]["tool_calls"][0]["function"]["name"] in ("getWeather", "set_alarm")


def test_the_results_of_calls_answer_as_they_are(live: Any, weather_tools: Any) -> None:
    """So that a client's loop of calls ends; `required` goes on with another call."""
    call = {"id": "call_1", "type": "function", "function": {"name": "getWeather", "arguments": '{"city":"Oslo"}'}}
    told = [
        {"role": "system", "content": "You are terse."},
        USER,
        {"role": "assistant", "content": None, "tool_calls": [call, call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "-3 degrees"},
        {"role": "tool", "tool_call_id": "call_1", "content": [{"type": "text", "text": "wind"}]},
    ]
    before = live.gate.passes
    for stream in (False, True):
        asked = live.chat(messages=told, tools=weather_tools, stream=stream)
        reply = live.ask("POST", "/v1/chat/completions", asked)
        if not stream:
            choice = reply.json["choices"][0]
            assert (choice["message"]["content"], choice["finish_reason"]) == ("-3 degrees\nwind", "stop")
        else:
            lines = [line for line in reply.body.decode().split("\n") if line.startswith("data: {")]
            deltas = [json.loads(line.removeprefix("data: "))["choices"][0]["delta"] for line in lines]
            assert "".join(delta.get("content") or "" for delta in deltas) == "-3 degrees\nwind"
    assert live.gate.passes == before
    again = live.ask(
        "POST", "/v1/chat/completions", live.chat(messages=told, tools=weather_tools, tool_choice="required")
    )
    assert again.json["choices"][0]["message"]["tool_calls"]


def test_messages_become_turns() -> None:
    """What is told stands in front; calls, results and answers keep their order."""
    call = {"function": {"name": "f", "arguments": "{}"}}
    talk = read_messages(
        [
            {"role": "developer", "content": "A"},
            {"role": "user", "content": "one"},
            {"role": "assistant", "content": "said", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "x", "content": "R"},
            {"role": "system", "content": "B"},
            {"role": "user", "content": [{"type": "text", "text": "two"}, {"type": "text", "text": "three"}]},
        ]
    )
    assert talk.told == "A\nB"
    said = [(turn.said, turn.text) for turn in talk.turns]
    assert said == [
        ("Request", "one"),
        ("Answer", "said"),
        ("Call", "f {}"),
        ("Result", "R"),
        ("Request", "two\nthree"),
    ]
    assert talk.request == "two\nthree"
    assert talk.results == ()
    assert dict(talk.calls) == {2: ("f", "{}")}
