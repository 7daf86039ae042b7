"""Labelled completions with a surface trap, for `eval` only: there is no engine behind them."""

from __future__ import annotations

from cartridges.choose.cases import cases

__all__ = ["cases"]
