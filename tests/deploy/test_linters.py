"""The files under deploy/ pass the linters of their formats, and keep the rules that no linter knows."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import kubernetes_validate
import pytest
import yaml

import odradek
from tests.deploy.deploy_files import (
    BASE,
    COMPOSE,
    DEPLOY,
    DOCKERFILE,
    ROOT,
    UNITS,
    compose,
    instruction,
    instructions,
    manifest,
    manifests,
    pod_templates,
    unit_values,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

OLDEST_KUBERNETES, NEWEST_KUBERNETES = "1.32", "1.37"
HIGHEST_EXPOSURE = 2.0  # of systemd-analyze security: 0 is the least, 10 the most


def lint(*command: str | Path) -> str:
    done = subprocess.run([str(each) for each in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def script(name: str) -> str:
    """The program that a package has installed beside this Python."""
    return str(Path(sys.executable).parent / name)


def test_hadolint_accepts_the_dockerfile() -> None:
    assert lint(script("hadolint"), "--failure-threshold", "style", DOCKERFILE) == ""


def test_yamllint_accepts_every_yaml_file() -> None:
    files = sorted(DEPLOY.rglob("*.yaml"))
    assert len(files) >= 7
    lint(sys.executable, "-m", "yamllint", "--strict", "-c", DEPLOY / ".yamllint", *files)


def test_the_compose_file_follows_the_schema_of_compose() -> None:
    lint(sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", COMPOSE)


@pytest.mark.parametrize("version", [OLDEST_KUBERNETES, NEWEST_KUBERNETES])
def test_the_manifests_follow_the_schemas_of_kubernetes(version: str) -> None:
    for each in manifests():
        kubernetes_validate.validate(each, version, strict=True)


def built(directory: str) -> list[dict[str, Any]]:
    if shutil.which("kubectl") is None:
        pytest.skip("needs kubectl on the PATH, which builds with Kustomize")
    return list(yaml.safe_load_all(lint("kubectl", "kustomize", DEPLOY / "kubernetes" / directory)))


@pytest.mark.parametrize("directory", ["base", "single-node"])
def test_kustomize_builds_the_manifests(directory: str) -> None:
    objects = built(directory)
    assert len(objects) == len(manifests())
    for each in objects:
        kubernetes_validate.validate(each, NEWEST_KUBERNETES, strict=True)
        assert each["metadata"]["namespace"] == "odradek"
    (brokers,) = [each for each in objects if (each["kind"], each["metadata"]["name"]) == ("StatefulSet", "odradek")]
    assert brokers["spec"]["template"]["spec"]["containers"][0]["image"] == image_of_compose()
    assert ("affinity" in brokers["spec"]["template"]["spec"]) == (directory == "base")


def image_of_compose() -> str:
    return str(compose()["services"]["odradek-1"]["image"])


def test_images_have_the_version_of_the_package() -> None:
    assert image_of_compose() == f"odradek:{odradek.__version__}"
    assert f"newTag: {odradek.__version__}\n" in (BASE / "kustomization.yaml").read_text()
    assert f"odradek:{odradek.__version__} " in DOCKERFILE.read_text()


def test_the_image_has_no_root_and_stops_by_sigterm() -> None:
    assert instruction("USER") == "10001:10001"
    assert instruction("STOPSIGNAL") == "SIGTERM"
    text = DOCKERFILE.read_text()
    assert text.count("--require-hashes --only-binary=:all:") == 2
    assert [value for name, value in instructions() if name == "VOLUME"] == ['["/var/lib/odradek"]']


def test_what_the_dockerfile_copies_exists_and_is_not_ignored() -> None:
    listed = (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
    kept = {line[1:] for line in listed if line.startswith("!")}
    copies = re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE.read_text(), re.MULTILINE)
    copied = {path for line in copies for path in line.split()}
    assert copied == kept
    assert [path for path in copied if not (ROOT / path).exists()] == []


def test_every_pod_is_restricted_and_gets_no_variables_of_services() -> None:
    """A service `odradek` would set ODRADEK_PORT, which a broker takes for a property."""
    assert set(pod_templates()) == {"odradek", "odradek-console", "zookeeper"}
    for pod in pod_templates().values():
        assert pod["enableServiceLinks"] is False
        assert pod["automountServiceAccountToken"] is False
        assert pod["securityContext"]["runAsNonRoot"] is True
        for container in pod["containers"]:
            assert container["securityContext"]["allowPrivilegeEscalation"] is False
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
            assert container["resources"]["limits"]["memory"]
            if container["image"] == "odradek":
                assert container["securityContext"]["readOnlyRootFilesystem"] is True


@pytest.mark.parametrize("name", ["odradek", "zookeeper"])
def test_selectors_services_and_budgets_belong_together(name: str) -> None:
    stateful_set = manifest("StatefulSet", name)["spec"]
    labels = stateful_set["template"]["metadata"]["labels"]
    service = manifest("Service", stateful_set["serviceName"])["spec"]
    budget = manifest("PodDisruptionBudget", name)["spec"]
    assert stateful_set["selector"]["matchLabels"] == service["selector"] == budget["selector"]["matchLabels"] == labels
    assert service["clusterIP"] == "None"
    assert service["publishNotReadyAddresses"] is True
    assert budget["maxUnavailable"] == 1
    anti_affinity = stateful_set["template"]["spec"]["affinity"]["podAntiAffinity"]
    (rule,) = anti_affinity["requiredDuringSchedulingIgnoredDuringExecution"]
    assert rule["labelSelector"]["matchLabels"] == labels
    (container,) = stateful_set["template"]["spec"]["containers"]
    claimed = {each["metadata"]["name"] for each in stateful_set["volumeClaimTemplates"]}
    volumes = {each["name"] for each in stateful_set["template"]["spec"].get("volumes", [])} | claimed
    assert {each["name"] for each in container["volumeMounts"]} == volumes
    assert {"startupProbe", "readinessProbe", "livenessProbe"} <= set(container)


def analyze(*arguments: str | Path) -> str:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("needs systemd-analyze on the PATH")
    return lint("systemd-analyze", *arguments)


def installed_units(directory: Path) -> Sequence[Path]:
    """Copies of the units whose program exists here."""
    shutil.copy(DEPLOY / "systemd" / "odradek.target", directory)
    for unit in UNITS:
        text = unit.read_text().replace("/opt/odradek/bin/odradek", sys.executable)
        (directory / unit.name).write_text(text.replace("User=odradek", "User=root"))
    return [directory / "odradek.service", directory / "odradek@1.service"]


def test_a_policy_keeps_pods_from_the_metrics_of_brokers() -> None:
    """They have no authentication. Every other port of a broker is for all pods."""
    spec = manifest("NetworkPolicy", "odradek")["spec"]
    assert spec["podSelector"]["matchLabels"] == {"app.kubernetes.io/name": "odradek"}
    (broker,) = pod_templates()["odradek"]["containers"]
    ports = {each["name"]: each["containerPort"] for each in broker["ports"]}
    restricted = {port["port"] for rule in spec["ingress"] if "from" in rule for port in rule["ports"]}
    open_to_all = {port["port"] for rule in spec["ingress"] if "from" not in rule for port in rule["ports"]}
    assert restricted == {ports.pop("metrics")}
    assert open_to_all == set(ports.values())


def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    output = analyze("verify", "--recursive-errors=no", "--man=no", *installed_units(tmp_path))
    assert [line for line in output.splitlines() if "odradek" in line] == []


@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.name)
def test_units_are_hardened(unit: Path) -> None:
    analyze("security", "--offline=yes", f"--threshold={int(HIGHEST_EXPOSURE * 10)}", "--no-pager", unit)


def test_both_units_differ_only_in_what_is_theirs() -> None:
    alone, templated = map(unit_values, UNITS)
    own = {"Description", "PartOf", "ExecStart", "StateDirectory", "WorkingDirectory", "EnvironmentFile", "WantedBy"}
    assert {name: alone[name] for name in alone if name not in own} == {
        name: templated[name] for name in templated if name not in own
    }
    assert alone["LimitNOFILE"] == ["100000"]
    assert alone["Restart"] == ["on-failure"]
