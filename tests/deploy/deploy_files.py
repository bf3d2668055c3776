"""Reads the files under deploy/: which commands they run, with which environment and which files of properties."""

from __future__ import annotations

import functools
import json
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
DOCKERFILE = DEPLOY / "Dockerfile"
COMPOSE = DEPLOY / "compose.yaml"
BASE = DEPLOY / "kubernetes" / "base"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
PROPERTIES_PATH = "/etc/odradek/server.properties"
PROGRAM = "odradek"
INSTANCE = "1"  # of a templated unit

Values = dict[str, list[str]]


@dataclass(frozen=True)
class Invocation:
    """A command of Odradek that a file runs: `odradek ARGUMENTS`."""

    origin: str
    arguments: tuple[str, ...]
    environment: dict[str, str]
    properties: str | None = None  # the text of the file that a broker is given

    @property
    def is_broker(self) -> bool:
        return self.arguments[0] == "broker"


def instructions() -> list[tuple[str, str]]:
    """Instructions of the Dockerfile's last stage, continuation lines joined."""
    lines = [line for line in DOCKERFILE.read_text().splitlines() if not line.startswith("#")]
    found = [line.partition(" ") for line in re.sub(r"\\\n\s*", " ", "\n".join(lines)).splitlines() if line]
    last = max(number for number, (name, _, _) in enumerate(found) if name == "FROM")
    return [(name, value.strip()) for name, _, value in found[last:]]


def instruction(name: str) -> str:
    (value,) = [value for each, value in instructions() if each == name]
    return value


def image_command(arguments: list[str] | None) -> tuple[str, ...]:
    """Arguments of `odradek` in a container that is given these, or none."""
    assert json.loads(instruction("ENTRYPOINT")) == [PROGRAM]
    return tuple(arguments if arguments is not None else json.loads(instruction("CMD")))


def image_properties() -> str:
    copied = [value for name, value in instructions() if name == "COPY" and value.endswith(PROPERTIES_PATH)]
    return (ROOT / copied[0].split()[0]).read_text()


def image_healthcheck() -> list[str]:
    """The command, of Python."""
    program, *arguments = json.loads(instruction("HEALTHCHECK").partition("CMD ")[2])
    assert program == "python"
    return list(arguments)


def compose() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(COMPOSE.read_text())
    return loaded


def compose_invocations() -> list[Invocation]:
    """Services whose image is Odradek's, in the order of the file."""
    services = {name: each for name, each in compose()["services"].items() if each["image"].startswith(PROGRAM)}
    return [
        Invocation(
            f"compose.yaml: {name}",
            image_command(service.get("command")),
            service.get("environment", {}),
            image_properties(),
        )
        for name, service in services.items()
    ]


@functools.cache
def manifests() -> list[dict[str, Any]]:
    listed = yaml.safe_load((BASE / "kustomization.yaml").read_text())["resources"]
    return [each for name in listed for each in yaml.safe_load_all((BASE / name).read_text())]


def manifest(kind: str, name: str) -> dict[str, Any]:
    (found,) = [each for each in manifests() if (each["kind"], each["metadata"]["name"]) == (kind, name)]
    return found


def pod_templates() -> dict[str, dict[str, Any]]:
    """The specification of pods by the name of the object that makes them."""
    return {
        each["metadata"]["name"]: each["spec"]["template"]["spec"]
        for each in manifests()
        if "template" in each.get("spec", {})
    }


def pod_environment(container: dict[str, Any], pod_name: str) -> dict[str, str]:
    """The variables of a container as Kubernetes sets them for the pod of this name."""
    fields = {
        "metadata.name": pod_name,
        "metadata.labels['apps.kubernetes.io/pod-index']": pod_name.rpartition("-")[2],
    }
    found: dict[str, str] = {}
    for each in container.get("env", []):
        if "value" in each:
            found[each["name"]] = re.sub(r"\$\((\w+)\)", lambda name: found[name[1]], each["value"])
        else:
            found[each["name"]] = fields[each["valueFrom"]["fieldRef"]["fieldPath"]]
    return found


def kubernetes_invocations() -> list[Invocation]:
    found = []
    for each in manifests():
        for container in each.get("spec", {}).get("template", {}).get("spec", {}).get("containers", []):
            if container["image"] != PROGRAM:
                continue
            first = each["spec"].get("ordinals", {}).get("start", 0)
            for ordinal in range(first, first + each["spec"]["replicas"]):
                pod = f"{each['metadata']['name']}-{ordinal}"
                variables = pod_environment(container, pod)
                text = manifest("ConfigMap", PROGRAM)["data"]["server.properties"]
                found.append(Invocation(f"kubernetes: {pod}", image_command(container["args"]), variables, text))
    return found


def unit_values(path: Path) -> Values:
    """Values of all sections by name, in their order, with the instance of a template."""
    values: Values = {}
    for line in path.read_text().splitlines():
        if line and not line.startswith(("#", "[")):
            name, _, value = line.partition("=")
            values.setdefault(name, []).append(value.replace("%i", INSTANCE))
    return values


def unit_invocation(path: Path) -> Invocation:
    values = unit_values(path)
    program, *arguments = shlex.split(values["ExecStart"][0])
    assert program == "/opt/odradek/bin/odradek"
    text = (DEPLOY / "systemd" / "server.properties").read_text()
    return Invocation(path.name, tuple(arguments), dict(each.split("=", 1) for each in values["Environment"]), text)


def all_invocations() -> list[Invocation]:
    return [
        Invocation("Dockerfile: CMD", image_command(None), {}, image_properties()),
        *compose_invocations(),
        *kubernetes_invocations(),
        *map(unit_invocation, UNITS),
    ]
