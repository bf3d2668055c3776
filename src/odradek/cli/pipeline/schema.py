"""`odradek pipeline schema`: the JSON Schema of definitions, for editors."""

from __future__ import annotations

import json

from odradek.cli.framework.commands import command
from odradek.cli.framework.output import say
from odradek.cli.pipeline.loading import require_packages


@command(
    examples=[
        ("for an editor that takes a file", "odradek pipeline schema > odradek.schema.json"),
        ("then, as the first line of a definition", "# yaml-language-server: $schema=odradek.schema.json"),
    ]
)
def schema() -> None:
    """Print the JSON Schema of definitions, for editors.

    Editors with a YAML language server complete keys and mark unknown ones. `odradek pipeline validate` checks more.
    """
    require_packages()
    from odradek.pipelines.definition.editor_schema import definition_schema  # noqa: PLC0415 - help does not need it

    say(json.dumps(definition_schema(), indent=2, ensure_ascii=False))
