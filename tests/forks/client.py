"""Starts `odradek` as forks of a process that has imported the modules of all commands."""

from __future__ import annotations

from pathlib import Path

from odradek.local.prepared import PreparedProcess, prepared_process

SOURCE = Path(__file__).parents[2] / "src"
WITH_SPARK = ("pipeline", "example")  # importing Spark takes longer than most commands


def command_modules(source: Path = SOURCE) -> tuple[str, ...]:
    """The modules of all commands, but of those with Spark."""
    commands = source / "odradek" / "cli"
    files = [file.relative_to(commands).with_suffix("") for file in sorted(commands.rglob("[a-z]*.py"))]
    return tuple(f"odradek.cli.{'.'.join(file.parts)}" for file in files if file.parts[0] not in WITH_SPARK)


# None of these modules starts a thread or reads the environment when it is imported.
OF_COMMANDS = (
    "confluent_kafka.admin",
    "importlib.metadata",
    *command_modules(),
    *(f"odradek.cli.pipeline.{name}" for name in ("definitions", "redrive", "started")),
    "odradek.pipelines.planning.plan",
    "sqlglot.dialects.databricks",
)


def fork_server() -> PreparedProcess:
    return prepared_process(OF_COMMANDS, "")
