"""The form of `POST /v1/chat/completions`: what of OpenAI's fields is read, and which may only have their plain value.

A field that would change the answer and is not supported is an error that names it. After OpenAI's API reference,
"Create chat completion".
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from dispatch.serve.errors import RequestError
from dispatch.serve.reading import Form
from kernel.errors import short

MOST_TOKENS = 131_072
MOST_SEED = 2**63 - 1
MOST_TOP = 20
"""Alternatives of a token."""
HOTTEST = 2.0


class StreamOptions(Form):
    """How a stream is told."""

    include_usage: bool | None = None
    include_obfuscation: bool | None = None
    """Padding against who measures the size of packets; none is sent."""


class JsonSchema(Form):
    """The schema that an answer is held to."""

    name: str
    description: str | None = None
    schema_: Annotated[dict[str, Any], Field(alias="schema")]
    strict: bool | None = None
    """Whatever it says: the answer always fits the schema."""


class ResponseFormat(Form):
    """What kind of text answers."""

    type: str
    json_schema: JsonSchema | None = None


class ChatForm(Form):
    """The fields that are read, and those of `PLAIN`."""

    model: str
    messages: Annotated[list[dict[str, Any]], Field(min_length=1)]
    tools: list[Any] | None = None
    tool_choice: str | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    """Either way one tool is called at a time."""
    response_format: ResponseFormat | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=MOST_TOP)] | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    max_tokens: Annotated[int, Field(ge=1, le=MOST_TOKENS)] | None = None
    max_completion_tokens: Annotated[int, Field(ge=1, le=MOST_TOKENS)] | None = None
    temperature: Annotated[float, Field(ge=0, le=HOTTEST)] | None = None
    seed: Annotated[int, Field(ge=0, le=MOST_SEED)] | None = None
    # what says nothing about the answer
    user: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    prompt_cache_retention: str | None = None
    metadata: dict[str, str] | None = None
    # what would change the answer; see PLAIN
    n: Any = None
    top_p: Any = None
    frequency_penalty: Any = None
    presence_penalty: Any = None
    logit_bias: Any = None
    stop: Any = None
    store: Any = None
    service_tier: Any = None
    modalities: Any = None
    audio: Any = None
    prediction: Any = None
    reasoning_effort: Any = None
    verbosity: Any = None
    web_search_options: Any = None
    functions: Any = None
    function_call: Any = None

    @property
    def budget(self) -> int | None:
        """Tokens that the answer may have."""
        return self.max_completion_tokens or self.max_tokens

    @property
    def top(self) -> int | None:
        """How many alternatives each token of the answer is told with; None where no log-probabilities are told."""
        return (self.top_logprobs or 0) if self.logprobs else None


PLAIN: dict[str, tuple[tuple[Any, ...], str]] = {
    "n": ((1,), "there is one answer"),
    "top_p": ((1,), "all legal tokens stand for choice; temperature is supported"),
    "frequency_penalty": ((0,), "log-probabilities are compared as the model gives them"),
    "presence_penalty": ((0,), "log-probabilities are compared as the model gives them"),
    "logit_bias": (({},), "log-probabilities are compared as the model gives them"),
    "stop": (([],), "an answer ends where its schema ends"),
    "store": ((False,), "nothing is stored"),
    "service_tier": (("auto", "default"), "there is one queue"),
    "modalities": ((["text"],), "answers are text"),
    "audio": ((), "answers are text"),
    "prediction": ((), "answers are written token by token"),
    "reasoning_effort": (("none",), "the model answers at once"),
    "verbosity": (("medium",), "an answer is as long as its schema asks for"),
    "web_search_options": ((), "nothing is searched"),
    "functions": ((), "it was replaced by tools"),
    "function_call": ((), "it was replaced by tool_choice"),
}
"""Fields that are taken with these values only (null is always one), and why."""


def check_plain(form: ChatForm) -> None:
    """Raise RequestError for a field whose value would change the answer and is not supported."""
    for name, (values, why) in PLAIN.items():
        given = getattr(form, name)
        plain = any(given == value and isinstance(given, bool) == isinstance(value, bool) for value in values)
        if given is not None and not plain:
            raise RequestError(f"{name} {short(given)} is not supported: {why}", param=name, code="unsupported")
    if form.top_logprobs is not None and not form.logprobs:
        raise RequestError("top_logprobs needs logprobs: true", param="top_logprobs", code="invalid_value")
    if form.stream_options is not None and not form.stream:
        raise RequestError("stream_options needs stream: true", param="stream_options", code="invalid_value")
    if form.max_tokens is not None and form.max_completion_tokens not in (None, form.max_tokens):
        raise RequestError("max_tokens and max_completion_tokens differ; give one", param="max_tokens")
