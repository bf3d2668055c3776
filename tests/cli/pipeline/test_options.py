"""`--set` of the pipeline commands, and secrets that no command prints."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click
import pytest

from odradek.cli.pipeline import pipeline
from odradek.cli.pipeline.options import (
    child_arguments,
    chosen,
    chosen_arguments,
    chosen_pipeline,
    definition_options,
    pipeline_options,
    remember_secrets,
)
from odradek.cli.pipeline.sql import sql
from odradek.conventions.failures import Failure
from odradek.pipelines.planning.loading import Choices

if TYPE_CHECKING:
    from pathlib import Path

    from tests.commands import Run

DEFINITION = """
pipeline: p
parameters: {topic: in}
sources: {s: {topic: "${topic}", format: text}}
sinks: {o: {from: s, topic: out}}
"""
COMMANDS = ("validate", "graph", "run", "start", "test", "checkpoints", "reset", "backfill", "rebuild")


@pytest.fixture
def file(tmp_path: Path) -> str:
    (tmp_path / "p.yml").write_text(DEFINITION)
    return str(tmp_path / "p.yml")


def topic_of(ran_output: str) -> str:
    return str(json.loads(ran_output)["nodes"][0]["detail"])


def test_the_command_line_chooses(offline: Run, file: str) -> None:
    for arguments, expected in (((), "topic in"), (("--set", "topic=other"), "topic other")):
        ran = offline("pipeline", "graph", file, "--format", "json", *arguments)
        assert (ran.code, ran.errors) == (0, "")
        assert topic_of(ran.output) == expected


def test_what_does_not_exist_is_reported(offline: Run, file: str) -> None:
    ran = offline("pipeline", "validate", file, "--set", "topik=x")
    assert ran.code == 1
    assert "'topik' is not a parameter of the pipeline; did you mean 'topic'?" in ran.output
    assert "'x' is not key=value" in offline("pipeline", "validate", file, "--set", "x").errors


def test_every_command_with_a_definition_has_the_options() -> None:
    context = click.Context(pipeline)
    for each in (*(pipeline.get_command(context, name) for name in COMMANDS), sql):
        assert each is not None
        options = {option for parameter in each.params for option in parameter.opts}
        assert "--set" in options, each.name


def test_children_get_the_same_choices() -> None:
    seen: list[object] = []

    @click.command
    @definition_options
    def command() -> None:
        seen.extend([chosen(), chosen_arguments()])

    command.main(["--set", "a=1", "--set", "b="], standalone_mode=False)
    assert seen == [Choices({"a": "1", "b": ""}), ["--set=a=1", "--set=b="]]


def test_failures_do_not_show_secrets() -> None:
    @click.command
    @definition_options
    def command() -> None:
        remember_secrets({"geheim"})
        raise Failure("cannot connect to postgresql://u:geheim@host")

    with pytest.raises(Failure, match=r"cannot connect to postgresql://u:\*\*\*@host"):
        command.main([], standalone_mode=False)


def test_no_command_prints_a_secret(offline: Run, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("geheim\n")
    (tmp_path / "p.yml").write_text(
        DEFINITION.replace("pipeline: p\n", "pipeline: p\nengine: ${file:secret}\n")
        .replace('"${topic}"', "'a-${file:secret}'")
    )  # fmt: skip
    for command in ("validate", "graph", "run"):
        ran = offline("pipeline", command, str(tmp_path / "p.yml"))
        assert ran.code == 1
        assert "***" in ran.output + ran.errors
        assert "geheim" not in ran.output + ran.errors


def test_credentials_of_a_file_are_hidden_and_passed_on_by_its_name(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    jaas = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="hush-now";'
    (tmp_path / "client.properties").write_text(f"bootstrap.servers=kafka:9093\nsasl.jaas.config={jaas}\n")
    seen: list[tuple[str, str, list[str]]] = []

    @click.command
    @pipeline_options
    def show() -> None:
        found = chosen_pipeline(file)
        message = found.without_secrets(f"refused hush-now with {found.kafka['sasl.jaas.config']}")
        seen.append((found.bootstrap_servers, message, child_arguments(None, found.name)))

    show.main(["--command-config", "client.properties"], standalone_mode=False)
    servers, message, arguments = seen[0]
    assert servers == "kafka:9093"
    assert message == "refused *** with ***"
    assert f"--command-config={tmp_path / 'client.properties'}" in arguments
    assert not any("hush-now" in argument for argument in arguments)
    show.main(["--command-config", "client.properties", "-b", "other:9092"], standalone_mode=False)
    assert seen[1][0] == "other:9092"
