"""Options of the commands that simulate an example. Defaults are those of its `simulator.yml`."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import click

from odradek.cli.framework.parameter_types import POSITIVE, NumberType
from odradek.conventions.failures import Failure
from odradek.conventions.figures import INT64_MAX

if TYPE_CHECKING:
    from odradek.pipelines.examples.simulator.model import Simulation

DEFAULT_EXAMPLE = "rigs"

rate_option = click.option(
    "--rate", type=POSITIVE, metavar="N", help="Records per second. Default: that of the simulator."
)
entities_option = click.option(
    "--entities", type=NumberType(1, 100_000), metavar="N", help="Number of entities, such as pumps."
)
seed_option = click.option(
    "--seed",
    type=NumberType(-INT64_MAX, INT64_MAX),
    metavar="N",
    help="The same seed and start time give the same records.",
)


def overridden(
    simulation: Simulation,
    rate: float | None,
    entities: int | None,
    seed: int | None,
    late: float | None = None,
    malformed: float | None = None,
) -> Simulation:
    """The simulation with the values of the command line."""
    flaws = simulation.flaws
    flaws = dataclasses.replace(
        flaws,
        late_share=flaws.late_share if late is None else late,
        malformed_share=flaws.malformed_share if malformed is None else malformed,
    )
    if flaws.late_share and flaws.late_by is None:
        raise Failure("--late needs flaws: {late: {by: …}} in simulator.yml, which says how late")
    if flaws.malformed_share and not flaws.kinds:
        raise Failure("--malformed needs flaws: {malformed: {kinds: …}} in simulator.yml")
    if flaws.late_share + flaws.duplicate_share + flaws.malformed_share > 1:
        raise click.UsageError("the shares of late, duplicate and malformed records are more than 1 in all")
    return dataclasses.replace(
        simulation,
        rate=simulation.rate if rate is None else rate,
        count=simulation.count if entities is None else entities,
        seed=simulation.seed if seed is None else seed,
        flaws=flaws,
    )
