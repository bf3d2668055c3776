"""`odradek example`: examples with a pipeline, a simulator of its records and a live view."""

from __future__ import annotations

from odradek.cli.framework.commands import group


@group(
    lazy={
        "list": ("odradek.cli.example.examples:list_examples", "List the examples of the package."),
        "copy": ("odradek.cli.example.examples:copy", "Copy an example into a folder."),
        "simulate": ("odradek.cli.example.examples:simulate", "Produce the simulated records of an example."),
        "watch": ("odradek.cli.example.examples:watch_example", "Show the live view of an example."),
    },
    examples=[
        ("everything at once", "odradek up rigs"),
        ("a copy to change and run", "odradek example copy rigs"),
        ("the parts alone: the records, and the live view", "odradek example simulate rigs"),
        ("", "odradek example watch rigs"),
    ],
)
def example() -> None:
    """Examples: a pipeline, a simulator of its records and a live view.

    An example is a folder with `pipeline.yml`, `simulator.yml` and `view.yml`. Where a command takes an example, it
    takes the name of one of the package or a folder. `odradek up` runs one.
    """
