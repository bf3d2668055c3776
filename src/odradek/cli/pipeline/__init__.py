"""`odradek pipeline`: check, draw, test, run and operate declared pipelines."""

from __future__ import annotations

from odradek.cli.framework.commands import group


@group(
    ("a new project", "odradek pipeline init shop"),
    ("check it", "odradek pipeline validate pipeline.yml"),
    ("show its lineage", "odradek pipeline graph pipeline.yml"),
    ("run it", "odradek pipeline run pipeline.yml"),
    ("run it in the background", "odradek pipeline start pipeline.yml"),
    lazy={
        "init": ("odradek.cli.pipeline.definitions:init", "Write a new project that runs at once."),
        "validate": (
            "odradek.cli.pipeline.definitions:validate",
            "Check definitions and report every error with its line.",
        ),
        "schema": ("odradek.cli.pipeline.definitions:schema", "Print the JSON Schema of definitions, for editors."),
        "graph": ("odradek.cli.pipeline.definitions:graph", "Draw the lineage of a pipeline."),
        "jars": ("odradek.cli.pipeline.definitions:jars", "Fetch the jars of Spark, for a machine without a registry."),
        "test": ("odradek.cli.pipeline.trial:test", "Test pipelines: given rows, expected rows, no broker."),
        "dev": ("odradek.cli.pipeline.dev:dev", "Check, show and test a definition whenever a file changes."),
        "preview": ("odradek.cli.pipeline.trial:preview", "Show rows of a step from the last records of its topics."),
        "run": ("odradek.cli.pipeline.run:run", "Run a pipeline until Ctrl-C."),
        "start": ("odradek.cli.pipeline.started:start", "Start pipelines in the background."),
        "stop": ("odradek.cli.pipeline.started:stop", "Stop started pipelines."),
        "status": ("odradek.cli.pipeline.started:status", "Show state, rates and lag of the started pipelines."),
        "forget": ("odradek.cli.pipeline.started:forget", "Remove ended pipelines from the status."),
        "logs": ("odradek.cli.pipeline.started:logs", "Show the log of a started pipeline."),
        "watch": ("odradek.cli.pipeline.started:watch", "Show a started pipeline live."),
        "checkpoints": ("odradek.cli.pipeline.reset:checkpoints", "Show the offsets that a pipeline has reached."),
        "reset": ("odradek.cli.pipeline.reset:reset", "Clear a pipeline's checkpoint so that it starts over."),
        "backfill": ("odradek.cli.pipeline.run:backfill", "Process a range of offsets or times as a batch."),
        "redrive": (
            "odradek.cli.pipeline.redrive:redrive",
            "Write dead letters back to the topics that they came from.",
        ),
        "rebuild": ("odradek.cli.pipeline.run:rebuild", "Rebuild views from the log."),
    },
)
def pipeline() -> None:
    """Declared pipelines: sources → steps → sinks, in YAML or in Python.

    `validate` and `graph` start nothing; `test` starts Spark and needs no broker.
    """
