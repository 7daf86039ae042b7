"""`POST /v1/choose`: one of some texts, with all that says why. It is no part of OpenAI's interface."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from dispatch.serve.errors import RequestError
from dispatch.serve.form import MOST_SEED
from dispatch.serve.patience import while_here, within
from dispatch.serve.reading import Form, read
from dispatch.serve.services import Services
from dispatch.session.rules import make_rule
from dispatch.wire.decided import document
from kernel.api import Kernel
from kernel.choose.decision import Decision
from kernel.choose.outcome import Judge, Thresholds
from kernel.choose.question import Question
from kernel.choose.rule import Rule
from kernel.errors import BuildError, UsageError, did_you_mean, short

MOST_OPTIONS = 10_000


class ChooseForm(Form):
    """The fields; all but `prompt` and `options` may be left out."""

    prompt: str
    options: Annotated[list[str], Field(min_length=1, max_length=MOST_OPTIONS)]
    null: str | list[str] | None = None
    """The same prompt asking for nothing; several are averaged."""
    listed: bool | None = None
    """Whether the options are shown before the prompt, as a set."""
    rule: str | None = None
    """As `--rule`: `calibrated`, `exact`, `greedy`, `sample`, with a parameter such as `sample:0.7`."""
    seed: Annotated[int, Field(ge=0, le=MOST_SEED)] | None = None
    """Of the rule `sample`."""
    outcome: bool | dict[str, float | None] | None = None
    """Whether it may end without a choice; thresholds by name instead of true say when."""
    model: str | None = None


async def choose(request: Request) -> Response:
    """Choose one of some texts."""
    services: Services = request.app.state.services
    form = await read(request, ChooseForm)
    if form.model not in (None, services.model):
        raise RequestError(
            f"there is no model {short(form.model)} here{did_you_mean(form.model or '', [services.model])}",
            status=404,
            param="model",
            code="model_not_found",
        )
    rule, judge = _rule(form, services), _judge(form)

    def asks(kernel: Kernel) -> Question:
        listed = bool(form.listed)
        return kernel.question(form.prompt, form.options, form.null or (), rule, listed=listed, judge=judge)

    async def decided() -> Decision:
        async with within(services.limits.answer_seconds):
            with services.queue.place() as place:
                return await place.decide(asks)

    try:
        decision = await while_here(request, decided())
    except BuildError as error:
        raise RequestError(str(error), param="options", code="BuildError") from error
    return JSONResponse({**document(decision), **_ending(decision, judge)})


def _rule(form: ChooseForm, services: Services) -> Rule | None:
    if form.rule is None:
        return services.rule if form.null else None
    try:
        return make_rule(form.rule, seed=form.seed or 0, where="rule")
    except UsageError as error:
        raise RequestError(str(error), param="rule", code="invalid_value") from error


def _judge(form: ChooseForm) -> Judge | None:
    if not form.outcome:
        return None
    try:
        return Thresholds() if form.outcome is True else Thresholds.of(form.outcome)
    except UsageError as error:
        raise RequestError(str(error), param="outcome", code="invalid_value") from error


def _ending(decision: Decision, judge: Judge | None) -> dict[str, Any]:
    return {} if judge is None else {"outcome": decision.outcome.value, "close": list(decision.close)}
