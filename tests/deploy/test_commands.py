"""Every command line under deploy/ is one that the command line takes, and every property one that a broker takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import pytest

from odradek.cli.main import root
from odradek.configuration.broker_configs import BrokerConfig, known_names
from odradek.conventions.properties_file import PropertiesError
from odradek.server.main import OTHER_VARIABLES
from odradek.server.properties import broker_config, load_properties
from tests.deploy.deploy_files import (
    Invocation,
    all_invocations,
    compose,
    compose_invocations,
    image_healthcheck,
    image_properties,
    kubernetes_invocations,
    manifest,
    pod_templates,
)

if TYPE_CHECKING:
    from pathlib import Path

INVOCATIONS = all_invocations()


def parse(arguments: tuple[str, ...]) -> click.Context:
    """Parses a command line without running the command."""
    context = root.make_context("odradek", list(arguments))
    command: click.Command = root
    while isinstance(command, click.Group):
        rest = [*context._protected_args, *context.args]
        name, found, rest = command.resolve_command(context, rest)
        assert found is not None
        command = found
        context = command.make_context(name, rest, parent=context)
    return context


def with_files(each: Invocation, directory: Path) -> tuple[str, ...]:
    """The arguments, with files that exist in place of those in /etc."""
    path = directory / "server.properties"
    path.write_text(each.properties or "")
    return tuple(str(path) if argument.startswith("/etc/") else argument for argument in each.arguments)


def config_of(each: Invocation) -> BrokerConfig:
    settings = load_properties(each.properties, each.environment, (), other_variables=OTHER_VARIABLES)
    assert [name for name in settings if name not in known_names()] == [], "properties without an effect"
    return broker_config(settings)


@pytest.mark.parametrize("each", INVOCATIONS, ids=lambda each: each.origin)
def test_the_command_line_takes_the_command(each: Invocation, tmp_path: Path) -> None:
    context = parse(with_files(each, tmp_path))
    assert context.info_name == next(word for word in each.arguments if word in ("broker", "console"))


@pytest.mark.parametrize("each", [each for each in INVOCATIONS if each.is_broker], ids=lambda each: each.origin)
def test_a_broker_takes_the_properties(each: Invocation) -> None:
    config = config_of(each)
    (directory,) = config.log_dirs
    assert directory == "/var/lib/odradek"


def test_a_command_that_does_not_exist_is_noticed() -> None:
    with pytest.raises(click.UsageError):
        parse(("broker", "--no-such-option"))


@pytest.mark.parametrize("found", [compose_invocations(), kubernetes_invocations()], ids=["compose", "kubernetes"])
def test_three_brokers_form_one_cluster(found: list[Invocation]) -> None:
    configs = [config_of(each) for each in found if each.is_broker]
    assert [config.node_id for config in configs] == [1, 2, 3]
    assert len({config.advertised_listeners for config in configs}) == 3
    (connect,) = {config.zookeeper_connect for config in configs}
    assert connect is not None
    assert connect.endswith("/odradek")
    for config in configs:
        assert {each.name for each in config.advertised_listeners} == {each.name for each in config.listeners}


def test_compose_publishes_the_ports_that_its_brokers_advertise() -> None:
    services = compose()["services"]
    bootstrap = services["console"]["command"][2].split(",")
    for each in compose_invocations():
        if not each.is_broker:
            continue
        name = each.origin.removeprefix("compose.yaml: ")
        inside, outside = config_of(each).advertised_listeners
        assert (inside.name, inside.host, inside.port) == ("INTERNAL", services[name]["hostname"], 9092)
        (published,) = services[name]["ports"]
        assert published == f"127.0.0.1:{outside.port}:19092"
        assert f"{outside.host}:{outside.port}" in bootstrap
        assert services[name]["volumes"] == [f"{name}:/var/lib/odradek"]
        assert name in compose()["volumes"]


def test_pods_advertise_names_of_the_headless_service() -> None:
    service = manifest("StatefulSet", "odradek")["spec"]["serviceName"]
    for each in kubernetes_invocations():
        if each.is_broker:
            pod = each.origin.removeprefix("kubernetes: ")
            (listener,) = config_of(each).advertised_listeners
            assert (listener.host, listener.port) == (f"{pod}.{service}", 9092)
            assert f"zookeeper-3.{manifest('StatefulSet', 'zookeeper')['spec']['serviceName']}:2181" in str(
                config_of(each).zookeeper_connect
            )


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("ODRADEK_PORT", "tcp://10.0.0.1:9092", "environment variable ODRADEK_PORT"),
        ("ODRADEK_NODE_ID", "first", "environment variable ODRADEK_NODE_ID"),
        ("ODRADEK_LOG_DIRECTORY", "/data", "did you mean log.dir"),
        ("ODRADEK_ADVERTISED_LISTENERS", "HOST://localhost:9092", "HOST is not one of the listeners"),
    ],
)
def test_a_wrong_variable_of_a_container_is_named(variable: str, value: str, words: str) -> None:
    with pytest.raises(PropertiesError) as refused:
        broker_config(load_properties(image_properties(), {variable: value}, (), other_variables=OTHER_VARIABLES))
    assert words in str(refused.value)


def test_probes_ask_where_the_broker_answers() -> None:
    pod = next(each for each in kubernetes_invocations() if each.is_broker)
    image = next(each for each in INVOCATIONS if each.origin == "Dockerfile: CMD")
    assert config_of(pod).metrics_listener == config_of(image).metrics_listener == "0.0.0.0:9644"
    assert "http://127.0.0.1:9644/ready" in image_healthcheck()[1]
    (container,) = pod_templates()["odradek"]["containers"]
    assert {"name": "metrics", "containerPort": 9644} in container["ports"]
    for name, path in (("startupProbe", "/ready"), ("readinessProbe", "/ready"), ("livenessProbe", "/healthy")):
        assert container[name]["httpGet"] == {"path": path, "port": "metrics"}


def test_the_probes_in_python_compile() -> None:
    console = pod_templates()["odradek-console"]["containers"][0]["readinessProbe"]["exec"]["command"]
    assert ["CMD", *console] == compose()["services"]["console"]["healthcheck"]["test"]
    program, option, code = console
    assert (program, option) == ("python", "-c")
    compile(code, "probe", "exec")
