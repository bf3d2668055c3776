"""`odradek pipeline schema`: the JSON Schema of definitions, for editors."""

from __future__ import annotations

import json

from odradek.cli.framework.commands import command
from odradek.cli.framework.options import format_option
from odradek.cli.framework.output import say
from odradek.cli.pipeline.loading import require_packages


@command(examples=[("for an editor that takes a file", "odradek pipeline schema > odradek.schema.json")])
@format_option
def schema(as_json: bool) -> None:
    """Print the JSON Schema of definitions, for editors.

    Editors with a YAML language server complete keys and mark unknown ones. `odradek pipeline validate` checks more.
    With --format json it is one line.
    """
    require_packages()
    from odradek.pipelines.definition.editor_schema import definition_schema

    say(json.dumps(definition_schema(), indent=None if as_json else 2, ensure_ascii=False))
