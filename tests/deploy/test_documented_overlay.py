"""The overlay of docs/deploying.md sets the image that its commands push, and its commands apply that overlay."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.deploy.deploy_files import DEPLOY, ROOT
from tests.deploy.test_linters import lint

if TYPE_CHECKING:
    from pathlib import Path

KUBERNETES = (ROOT / "docs" / "deploying.md").read_text().partition("\n## Kubernetes\n")[2].partition("\n## ")[0]
IMAGE = "registry.example/odradek:0.1.0"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", KUBERNETES, re.DOTALL)


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl on the PATH")
def test_the_overlay_names_the_image_that_is_pushed(tmp_path: Path) -> None:
    shutil.copytree(DEPLOY, tmp_path / "deploy")
    (tmp_path / "my-cluster").mkdir()
    (tmp_path / "my-cluster" / "kustomization.yaml").write_text("\n".join(blocks("yaml")))
    built = list(yaml.safe_load_all(lint("kubectl", "kustomize", tmp_path / "my-cluster")))
    images = {
        container["image"]
        for each in built
        if each["kind"] in ("StatefulSet", "Deployment")
        for container in each["spec"]["template"]["spec"]["containers"]
    }
    assert images == {IMAGE, "zookeeper:3.9"}


def test_the_image_is_in_reach_of_the_nodes_before_manifests_are_applied() -> None:
    pushed, loaded = blocks("sh")
    assert pushed.index(f"docker push {IMAGE}") < pushed.index("kubectl apply -k my-cluster")
    assert loaded.index("kind load docker-image odradek:0.1.0") < loaded.index("kubectl apply -k")
    assert "minikube image load odradek:0.1.0" in loaded
