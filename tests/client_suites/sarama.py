"""sarama's functional tests: five brokers behind toxiproxy, of which tests stop one with `docker compose`.

A program named `docker` takes its place. With fewer brokers, several proxies lead to one broker. The tests create their
topics with three replicas, so that a single broker refuses them.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

from odradek.local.ports import find_stable_port
from tests.client_suites.brokers import ProxiedCluster
from tests.client_suites.go_suite import GoPackage, tool
from tests.client_suites.suite import Suite
from tests.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from odradek.local.running_broker import Property
    from tests.client_suites.suite import Outcome, Run

MODULE = "github.com/IBM/sarama"
PACKAGE = GoPackage(MODULE, MODULE, needs_broker="//go:build functional", tags="functional")
TOXIPROXY = "github.com/Shopify/toxiproxy/v2/cmd/server"
PROXIES = 5
PROPERTIES: dict[str, Property] = {  # of sarama's docker-compose.yml
    "default.replication.factor": 2,
    "min.insync.replicas": 1,
    "offsets.topic.replication.factor": 2,
    "transaction.state.log.replication.factor": 2,
    "transaction.state.log.min.isr": 1,
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
    "auto.create.topics.enable": False,
}
DOCKER = """#!{python}
import sys, urllib.request
command, service = sys.argv[2], sys.argv[-1]
print(urllib.request.urlopen(f"http://127.0.0.1:{port}/{{command}}/{{service}}").read().decode())
"""


def execute(run: Run) -> dict[str, Outcome]:
    with (
        ProxiedCluster(run.brokers, PROPERTIES) as cluster,
        toxiproxy(cluster, run.directory) as (address, ports),
        docker(cluster, run.directory) as path,
    ):
        environment = {"TOXIPROXY_ADDR": address, "KAFKA_VERSION": "4.3.1", "PATH": path}
        return PACKAGE.test(run, environment, {"29090+i": f"[]int{{0, {', '.join(map(str, ports))}}}[i]"})


@contextlib.contextmanager
def toxiproxy(cluster: ProxiedCluster, directory: Path) -> Iterator[tuple[str, list[int]]]:
    """Its address, and the ports of its proxies."""
    proxies, ports = [], []
    for number in range(1, PROXIES + 1):
        broker = (number - 1) % len(cluster.ports) + 1
        proxy_port, direct_port = cluster.ports[broker]
        ports.append(proxy_port if number == broker else find_stable_port())
        listen, upstream = f"127.0.0.1:{ports[-1]}", f"127.0.0.1:{direct_port}"
        proxies.append({"name": f"kafka{number}", "listen": listen, "upstream": upstream, "enabled": True})
    configuration = directory / "toxiproxy.json"
    configuration.write_text(json.dumps(proxies))
    port = find_stable_port()
    command = [str(tool(TOXIPROXY)), "-host", "127.0.0.1", "-port", str(port), "-config", str(configuration)]
    with (directory / "toxiproxy.txt").open("wb") as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
    try:
        eventually(lambda: process.poll() is None and accepts(port), "the start of toxiproxy")
        yield f"http://127.0.0.1:{port}", ports
    finally:
        process.kill()
        process.wait()


def accepts(port: int) -> bool:
    with socket.socket() as attempt:
        return attempt.connect_ex(("127.0.0.1", port)) == 0


@contextlib.contextmanager
def docker(cluster: ProxiedCluster, directory: Path) -> Iterator[str]:
    """A PATH on which `docker compose` starts and stops the brokers of this cluster, and prints their output."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            _, command, service = self.path.split("/")
            broker = cluster.brokers[int(service.removeprefix("kafka-"))]
            if command != "logs":
                {"start": broker.start, "stop": broker.stop}[command]()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(broker.output.encode())

        def log_message(self, *_values: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        program = directory / "docker"
        program.write_text(DOCKER.format(python=sys.executable, port=server.server_port))
        program.chmod(0o755)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"{directory}{os.pathsep}{os.environ['PATH']}"
        finally:
            server.shutdown()


LEFT_OUT = {"TestFuncAdminDescribeLogDirs@3": "expects five brokers"}
SUITE = Suite("sarama", (3, 5), execute, PACKAGE.names, 60, LEFT_OUT)
