"""Prometheus and promtool, as Debian's package `prometheus` installs them."""

import json
import shutil
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from odradek.cli.metrics import asset
from odradek.local.ports import find_stable_port
from tests.waiting import eventually

PROMETHEUS, PROMTOOL = shutil.which("prometheus"), shutil.which("promtool")
RULE_FILE = "odradek-rules.yml"
needs_prometheus = pytest.mark.skipif(
    PROMETHEUS is None or PROMTOOL is None, reason="needs prometheus and promtool on the PATH (apt install prometheus)"
)


def promtool(*arguments: str, given: str | None = None) -> str:
    """Standard output; fails with all output if promtool refuses."""
    assert PROMTOOL is not None
    done = subprocess.run([PROMTOOL, *arguments], input=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


class Prometheus:
    """The HTTP API of a Prometheus that runs."""

    def __init__(self, address: str) -> None:
        self._address = address

    def ask(self, path: str, **parameters: str) -> Any:
        """The data of an answer; AssertionError with Prometheus's words if it is an error."""
        url = f"{self._address}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=30) as response:
                return json.load(response)["data"]
        except urllib.error.HTTPError as refused:
            raise AssertionError(refused.read().decode()) from refused

    def query(self, expression: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.ask("query", query=expression)["result"]
        return found

    def is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self._address}/-/ready", timeout=30) as response:
                return bool(response.status == 200)
        except OSError:
            return False


@contextmanager
def running_prometheus(directory: Path, metrics_urls: Sequence[str]) -> Iterator[Prometheus]:
    """Prometheus with the alert rules; it scrapes the addresses of /metrics every second, as docs/metrics.md says."""
    targets = [url.removeprefix("http://").removesuffix("/metrics") for url in metrics_urls]
    settings = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "scrape_configs": [{"job_name": "odradek", "static_configs": [{"targets": targets}]}],
        "rule_files": [RULE_FILE],
    }
    (directory / RULE_FILE).write_text(asset("alerts.yml"))
    (directory / "prometheus.yml").write_text(yaml.safe_dump(settings))
    promtool("check", "config", str(directory / "prometheus.yml"))
    port = find_stable_port()
    assert PROMETHEUS is not None
    command = [
        PROMETHEUS,
        f"--config.file={directory / 'prometheus.yml'}",
        f"--storage.tsdb.path={directory / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with (directory / "prometheus.log").open("w") as log, subprocess.Popen(command, stderr=log) as process:
        try:
            server = Prometheus(f"http://127.0.0.1:{port}")
            eventually(server.is_ready)
            yield server
        finally:
            process.terminate()
