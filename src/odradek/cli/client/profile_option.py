"""`odradek --profile NAME`: the profile for the commands below the main command."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import click

PROFILE = "odradek.connection_profile"  # of the main command, in the context's meta


def remember_profile(context: click.Context, _parameter: click.Parameter, name: str | None) -> None:
    """`odradek --profile NAME`, for the commands below it."""
    if name is not None:
        context.meta[PROFILE] = name
