"""Reads `view.yml`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.examples.declared_files import load_declared
from odradek.examples.live_view.parsing import parse_view

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.examples.live_view.definition import ViewDefinition


def load_view(file: str, environment: Mapping[str, str]) -> ViewDefinition:
    return load_declared(file, environment, parse_view, "title: …")
