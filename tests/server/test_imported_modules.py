"""What a broker has imported when it is ready: each module is paid by every start, every test and every fork."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

MOST_MODULES = 180  # of Odradek, that have run; 415 with all that requests need

READY = """
import asyncio, json, sys
from odradek.deferred import DeferredModule
from odradek.host.host import real_host
from odradek.host.network import run_on_fast_loop
from odradek.server.broker import Broker
from odradek.server.main import configure

async def start():
    broker = Broker(configure(None, sys.argv[1:]), real_host())
    await broker.start()
    has_run = lambda: {name: type(module) is not DeferredModule for name, module in sys.modules.items()}
    print(json.dumps(has_run()))
    await broker._loading
    print(json.dumps(has_run()))
    await broker.stop()

run_on_fast_loop(start)
"""


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, bool]]:
    return start(tmp_path_factory.mktemp("broker"))


@pytest.fixture(scope="module")
def imported(modules: list[dict[str, bool]]) -> list[str]:
    return [name for name, has_run in modules[0].items() if has_run]


def start(directory: Path) -> list[dict[str, bool]]:
    """Whether each module has run: when the broker is ready, and when it has loaded the others."""
    arguments = [f"log.dirs={directory}", "listeners=PLAINTEXT://127.0.0.1:0", "metrics.listener=127.0.0.1:0"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ODRADEK_")}
    done = subprocess.run(
        [sys.executable, "-c", READY, *arguments], capture_output=True, env=environment, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr.decode()
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_new_broker_imports_few_modules(imported: list[str]) -> None:
    """Defer an import (`odradek.deferred`) before raising the limit."""
    own = [name for name in imported if name.split(".")[0] == "odradek"]
    assert len(own) <= MOST_MODULES, own


@pytest.mark.parametrize(
    "name",
    [
        "argparse",
        "importlib.metadata",
        "cryptography",
        "kazoo",
        "re2",
        "urllib.request",
        "odradek.controller.requests",
        "odradek.coordinator",
        "odradek.handlers.create_topics",
        "odradek.handlers.produce",
        "odradek.handlers.sasl_listeners",
        "odradek.log.partition_log",
        "odradek.protocol.schema",
        "odradek.security.audit.log",
        "odradek.server.cluster_member",
        "odradek.server.migration",
        "odradek.telemetry",
    ],
)
def test_a_new_broker_does_not_import(imported: list[str], name: str) -> None:
    assert name not in imported


def test_a_broker_reads_no_module_later_that_it_has_imported(modules: list[dict[str, bool]]) -> None:
    """An upgrade may have replaced the files by then, and their disk may have failed."""
    assert [name for name, has_run in modules[1].items() if not has_run] == []
