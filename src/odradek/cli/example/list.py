"""`odradek example list`: the examples of the package."""

from __future__ import annotations

from odradek.cli.framework.commands import command
from odradek.cli.framework.options import format_option
from odradek.cli.framework.output import print_columns, print_json
from odradek.pipelines.examples.folders import packaged_examples


@command(
    "list",
    examples=[
        ("names and summaries", "odradek example list"),
        ("where the files are", "odradek example list --format json"),
    ],
)
@format_option
def list_examples(as_json: bool) -> None:
    """List the examples of the package."""
    found = packaged_examples()
    if as_json:
        for each in found:
            print_json({"name": each.name, "summary": each.summary, "folder": str(each.folder)})
    else:
        print_columns(["NAME", "SUMMARY"], [[each.name, each.summary] for each in found])
