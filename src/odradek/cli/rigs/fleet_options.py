"""Options of the commands that simulate a fleet of rigs."""

from __future__ import annotations

import click

from odradek.cli.framework.parameter_types import INT64_MAX, POSITIVE, NumberType
from odradek.pipelines.rigs.fleet import FleetSettings

FLEET = FleetSettings()

rate_option = click.option(
    "--rate", type=POSITIVE, default=1000, show_default=True, metavar="N", help="Records per second."
)
pumps_option = click.option(
    "--pumps",
    type=NumberType(1, 100_000),
    default=FLEET.pumps,
    show_default=True,
    metavar="N",
    help="Number of pumps.",
)
seed_option = click.option(
    "--seed",
    type=NumberType(-INT64_MAX, INT64_MAX),
    default=FLEET.seed,
    show_default=True,
    metavar="N",
    help="The same seed and start time give the same records.",
)
