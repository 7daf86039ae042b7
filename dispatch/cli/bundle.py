"""`bundle`: the page with the model in the visitor's tab, as a folder that any static server can serve."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dispatch.cli.common import MOST_SEED, N_CTX, ContextSize, Model, of_model
from dispatch.cli.model import tokenizable
from dispatch.cli.output import failing, note, say, working
from dispatch.tab.bundle import place_for, write
from dispatch.tab.choosing import WIRE
from dispatch.tab.packing import Plan, pack
from kernel.models import catalogue

TETRIS = "tetris"

Folder = Annotated[Path, typer.Argument(help="A new folder.", metavar="OUT", show_default=False)]
Played = Annotated[str, typer.Argument(help="What is played.", metavar="CARTRIDGE")]
WithModel = Annotated[bool, typer.Option("--with-model", help="Put the model's file into the folder as well.")]
Seed = Annotated[int, of_model(min=0, max=MOST_SEED, help="Of engines.")]


def bundle_command(
    folder: Folder,
    cartridge: Played = TETRIS,
    with_model: WithModel = False,
    model: Model = "smollm2",
    seed: Seed = 0,
    n_ctx: ContextSize = N_CTX,
) -> None:
    """Write the page with the model in the visitor's tab into a folder, for any static server.

    Without --with-model the visitor picks the model's file. `make browser` fetches what the tab needs first.

    Example: bundle site --with-model, then: python -m http.server --directory site
    """
    with failing():
        place_for(folder)
        with working("packing"):
            packed = pack(plan_of(cartridge, model, seed=seed, context=n_ctx, beside=with_model))
            size = write(packed, folder)
        say(f"{len(packed.files) + 1} files, {size / 1e6:.1f} MB, written to {folder}")
        if with_model:
            note(f"note: the file of {model} is in it; its licence is yours to keep")


def plan_of(cartridge: str, model: str, *, seed: int, context: int, beside: bool = True) -> Plan:
    """Return what is to be played with a model of the catalogue, or of a path; without the model beside only its
    vocabulary is read."""
    _, _, vocabulary = tokenizable(cartridge, None, WIRE, model)
    file = catalogue.resolve(model, pull=False) if beside else None
    return Plan(cartridge, Path(model).name, vocabulary, file, seed, context)
