"""`serve`: the page of sessions and the HTTP interface, on one port of this machine."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dispatch.cli.bundle import TETRIS, plan_of
from dispatch.cli.common import MOST_SEED, N_CTX, ContextSize, Model, RuleOption, Threads, extra, of_model
from dispatch.cli.model import load_kernel
from dispatch.cli.output import failing, note, say
from dispatch.loading.factory import PATH
from dispatch.loading.registry import Registry, load
from dispatch.loading.servers import each
from dispatch.session.rules import make_rule
from dispatch.tab.packing import pack
from kernel.api import Kernel
from kernel.contract import Cartridge
from kernel.errors import UsageError

if TYPE_CHECKING:
    from dispatch.serve.queue import KernelQueue
    from dispatch.serve.services import Services

PORT = 8117
CLOSE_SECONDS = 0.3
"""A decision that is being made when the server ends has so long to come to its end."""

MOST_SECONDS = 1e9

Things = Annotated[
    list[str] | None,
    typer.Argument(help="Session logs, a folder of them, cartridges.", metavar="LOG|FOLDER|CARTRIDGE"),
]
Host = Annotated[str, typer.Option(help="Address to bind. Beyond this machine it needs --token-file.")]
Port = Annotated[int, typer.Option(help="Port; 0 is any that is free.", min=0, max=65535)]
TokenFile = Annotated[
    Path | None,
    typer.Option(help="File with the bearer token that every request has to bring.", show_default="no token"),
]
AllowHost = Annotated[
    list[str] | None,
    typer.Option(help="A name that the server answers to, beside its address.", show_default="localhost"),
]
Seed = Annotated[int, of_model(min=0, max=MOST_SEED, help="Of engines.")]
Tab = Annotated[
    bool, typer.Option("--tab", help="Let the page play with the model in the visitor's tab; nothing is decided here.")
]
For = Annotated[
    float | None,
    typer.Option("--for", help="End after so many seconds.", min=0, max=MOST_SECONDS, show_default="Ctrl-C"),
]


def serve_command(
    things: Things = None,
    host: Host = "127.0.0.1",
    port: Port = PORT,
    token_file: TokenFile = None,
    allow_host: AllowHost = None,
    seconds: For = None,
    tab: Tab = False,
    model: Model = "smollm2",
    rule: RuleOption = None,
    seed: Seed = 0,
    n_ctx: ContextSize = N_CTX,
    threads: Threads = None,
) -> None:
    """Serve the page of sessions, and the HTTP interface for OpenAI's clients.

    A cartridge that takes requests is served as a model of its name: what is asked becomes a call of one of its
    commands, which the client carries out. Nothing that is asked through /v1 is carried out here.

    Example: serve home
    """
    with failing():
        made = make_rule(rule, seed=seed)
        with extra("serve"):
            from dispatch.serve import access, app, limits, server
            from dispatch.serve import queue as queues
            from dispatch.serve.services import Services
        bearer = None if token_file is None else access.read_token(token_file)
        who = access.Access(host, frozenset(name.lower() for name in allow_host or ()), bearer)
        given = sort_out(things or ())
        bounds = limits.Limits()

        def loaded(name: str) -> Kernel:
            return load_kernel(name, n_ctx=n_ctx, threads=threads)

        if tab and (rule or given.logs or given.folder is not None or len(given.specs) > 1):
            raise UsageError("serve --tab plays one cartridge, as in: serve --tab tetris; the page asks for the rule")
        with server.bind(host, port) as listening:
            queue = queues.KernelQueue(lambda: loaded(model), bounds)
            if not (given.only_logs or tab):  # a log is read without a model
                queue.load()
            services = Services(
                queue=queue,
                model=model,
                load=loaded,
                rule=made if rule else None,
                cartridges=tuple(given.cartridges),
                specs=tuple(given.specs),
                logs=tuple(given.logs),
                folder=given.folder,
                seed=seed,
                n_ctx=n_ctx,
                threads=threads,
                access=who,
                limits=bounds,
            )
            try:
                made_app = _tab_app(services) if tab else app.make_app(services)
                say(f"serving {server.address_of(listening)}")
                sys.stdout.flush()
                server.Server(made_app, services, seconds).run([listening])
            except KeyboardInterrupt:
                _close(queue, 130)
                raise
            _close(queue, 0)


@dataclass
class Given:
    """What is served, by its kind."""

    cartridges: list[Cartridge] = field(default_factory=list)
    specs: list[str] = field(default_factory=list)
    logs: list[Path] = field(default_factory=list)
    folder: Path | None = None

    @property
    def only_logs(self) -> bool:
        """Whether nothing but logs is served."""
        return not self.cartridges and (bool(self.logs) or self.folder is not None)


def sort_out(things: Sequence[str]) -> Given:
    """Return what was named: an existing file is a log, a folder without `__init__.py` holds logs, the rest cartridges.

    Raises UsageError for a second folder or a cartridge that is named twice, CartridgeError as `load`.
    """
    found = Given()
    for text in things:
        path = Path(text)
        if path.is_file() and not (path.suffix == ".py" and PATH.search(text)):
            found.logs.append(path)
        elif path.is_dir() and not (path / "__init__.py").is_file() and not _is_installed(text):
            if found.folder is not None:
                raise UsageError(f"serve shows one folder of logs, and {text!r} is the second")
            found.folder = path
        else:
            for spec in each(text):
                found.cartridges.append(load(spec))
                found.specs.append(spec)
                names = [cartridge.name for cartridge in found.cartridges]
                if names.count(names[-1]) > 1:
                    raise UsageError(f"serve: cartridge {names[-1]!r} is named twice")
    return found


def _tab_app(services: Services) -> Any:
    """Return the application that sends the files of a tab."""
    from dispatch.serve.tab import make_app

    (spec,) = services.specs or (TETRIS,)
    return make_app(services, pack(plan_of(spec, services.model, seed=services.seed, context=services.n_ctx)))


def _is_installed(text: str) -> bool:
    return any(source.name == text for source in Registry().sources)


def _close(queue: KernelQueue, code: int) -> None:
    """Free the model, or leave it to the end of the process where a pass still runs: nothing can stop one."""
    if not queue.close(CLOSE_SECONDS):
        note("note: a decision was being made; it was given up")
        sys.stdout.flush()
        os._exit(code)
