"""The network of a test cluster as its test uses it: a process of `network_proxy`, and the commands to it."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from odradek.local.stable_ports import find_stable_port

if TYPE_CHECKING:
    from collections.abc import Iterable

ZOOKEEPER = "zookeeper"
STOP_TIMEOUT_S = 60.0


class ClusterNetwork:
    """Nodes are named by broker ids and `ZOOKEEPER`."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "odradek.local.network_proxy"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def open(self, name: str, target_port: int, *, source: str | None = None) -> int:
        """The port through which others reach the node. `source` is the one node that uses it, if there is only one."""
        port = find_stable_port()
        answer = self._execute(do="open", name=name, source=source, port=port, target_port=target_port)
        return int(answer["port"])

    def cut(self, links: Iterable[tuple[str, str]]) -> None:
        self._execute(do="cut", links=list(links))

    def heal(self) -> None:
        self._execute(do="heal")

    def shape(self, *, delay_ms: float, megabits_per_s: float, loss: float) -> None:
        self._execute(do="shape", delay_ms=delay_ms, megabits_per_s=megabits_per_s, loss=loss)

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(STOP_TIMEOUT_S)
        self._process.stdout.close()

    def _execute(self, **command: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline() or '{"error": "the process has ended"}')
        if "error" in answer:
            raise RuntimeError(f"the network of the cluster failed: {answer['error']}")
        return answer
