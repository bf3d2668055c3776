"""`odradek pipeline graph`: the lineage of a pipeline as text, SVG or JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from odradek.cli.framework.commands import command
from odradek.cli.framework.options import format_option
from odradek.cli.framework.output import print_json, say
from odradek.cli.framework.parameter_types import TEXT
from odradek.cli.pipeline.definition_options import definition_options
from odradek.cli.pipeline.loading import choose, load

if TYPE_CHECKING:
    from odradek.pipelines.definition.model import Pipeline


@command(
    examples=[
        ("as text", "odradek pipeline graph pipeline.yml"),
        ("as an SVG drawing", "odradek pipeline graph pipeline.yml --svg lineage.svg"),
        ("the order in which steps run", "odradek pipeline graph p.yml --format json | jq '.nodes[].name'"),
    ]
)
@click.argument("file", metavar="FILE", type=click.Path())
@click.option(
    "--svg",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="Write an SVG drawing to this file; - for standard output.",
)
@click.option(
    "--pipeline", "name", metavar="NAME", type=TEXT, help="Name of the pipeline, if a Python file defines several."
)
@definition_options
@format_option
def graph(file: str, svg: str | None, name: str | None, as_json: bool) -> None:
    """Draw the lineage of a pipeline, from its sources to its sinks and views.

    In JSON, every node comes after the nodes that it reads.
    """
    found = choose(file, load(file, None), name)
    if svg is not None:
        from odradek.pipelines.definition.drawing_svg import draw_svg

        with click.open_file(svg, "w", encoding="utf-8") as output:
            output.write(draw_svg(found))
        if svg != "-" and not as_json:
            say(f"drew {found.name} to {svg}")
    if as_json:
        print_json(graph_object(found))
    elif svg is None:
        from odradek.pipelines.definition.drawing import draw_text

        say(draw_text(found))


def graph_object(found: Pipeline) -> dict[str, Any]:
    from odradek.pipelines.definition.lineage import lineage_of

    nodes = lineage_of(found)
    return {
        "pipeline": found.name,
        "engine": str(found.engine),
        "delivery": str(found.delivery),
        "nodes": [
            {
                "id": node.id,
                "kind": str(node.kind),
                "name": node.name,
                "detail": node.detail,
                "inputs": list(node.inputs),
            }
            for node in nodes
        ],
    }
