"""The commands of docs/clusters.md that start three brokers on one machine work when they are pasted into a shell."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from odradek.local.ports import find_stable_port
from tests.docs.document import DOCS
from tests.waiting import eventually


def is_listening(port: int) -> bool:
    with socket.socket() as attempt:
        return attempt.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.more
@pytest.mark.timeout(180)
def test_a_cluster_on_one_machine_starts_when_its_commands_are_pasted(tmp_path: Path, jvm: None) -> None:
    text = (DOCS / "clusters.md").read_text()
    (block,) = re.findall(r"^On one machine, for a trial:\n\n```sh\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    zookeeper, *brokers = (str(find_stable_port()) for _ in range(4))
    for written, free in (
        ("odradek zookeeper ", f"odradek zookeeper --port {zookeeper} "),
        (":2181 ", f":{zookeeper} "),
        ("$((9091 + n))", f"$(echo {' '.join(brokers)} | cut -d ' ' -f $n)"),
    ):
        assert written in block
        block = block.replace(written, free)
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "ODRADEK_BOOTSTRAP_SERVER": f"127.0.0.1:{brokers[0]}",
    }
    output = tmp_path / "output"
    with output.open("w") as file:
        shell = subprocess.Popen(
            ["bash", "-e", "-c", block], cwd=tmp_path, env=environment, stdin=subprocess.DEVNULL, stdout=file,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        try:
            assert shell.wait(150) == 0, output.read_text()
            assert output.read_text().splitlines()[-1] == "created topic pump with 6 partitions"
        finally:
            os.killpg(shell.pid, signal.SIGTERM)
            eventually(
                lambda: not is_listening(int(zookeeper)), "the end of ZooKeeper"
            )  # its process is in a session of its own
            with suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)
