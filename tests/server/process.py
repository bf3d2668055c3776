"""A broker's process as a service manager has it: arguments and environment in, exit code and two streams out.

It is a fork of a process that has imported its modules, unless the test needs an interpreter of its own.
"""

import contextlib
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence

from odradek.local.child_process import StartedProcess
from odradek.local.prepared import ForkedProcess, prepared_process
from tests.waiting import eventually

READY = re.compile(r"is ready on (.+) \(data in (.+?)(?:; metrics on \S+)?\)$", re.MULTILINE)
TIMEOUT_SECONDS = 60.0  # not how long it takes, but how long a busy machine may need


class BrokerProcess:
    def __init__(self, process: StartedProcess) -> None:
        self.process = process
        self.stdout = self.stderr = ""
        self._readers = [threading.Thread(target=self._read, args=(name,)) for name in ("stdout", "stderr")]
        for reader in self._readers:
            reader.start()

    def _read(self, name: str) -> None:
        stream = getattr(self.process, name)
        with stream:
            for line in stream:
                setattr(self, name, getattr(self, name) + line)

    def wait_until_ready(self) -> list[tuple[str, int]]:
        """The addresses that it tells."""

        def ready() -> re.Match[str] | None:
            assert self.process.poll() is None, f"it ended: {self.stderr}"
            return READY.search(self.stdout)

        match = eventually(ready, "the start of a broker", seconds=TIMEOUT_SECONDS)
        assert match is not None
        addresses = [address.rpartition(":") for address in match[1].split(", ")]
        return [(host, int(port)) for host, _, port in addresses]

    def wait(self) -> int:
        """Its exit code; the streams are complete then."""
        code = self.process.wait(TIMEOUT_SECONDS)
        for reader in self._readers:
            reader.join(TIMEOUT_SECONDS)
        return code


@contextlib.contextmanager
def broker_process(
    *arguments: str,
    environment: Mapping[str, str] | None = None,
    prefix: Sequence[str] = (),
    directory: str | None = None,
    is_fork: bool = True,
    **properties: str,
) -> Iterator[BrokerProcess]:
    """Properties as keywords, with underscores for dots; killed at the end if it still runs.

    With a `prefix`, such as a shell that sets limits, or without `is_fork`, it has an interpreter of its own.
    """
    overrides = [f"--override={name.replace('_', '.')}={value}" for name, value in properties.items()]
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("ODRADEK_")}
    whole = {**inherited, **(environment or {})}
    command = ["broker", *arguments, *overrides]
    if is_fork and not prefix:
        broker = BrokerProcess(_fork(command, whole, directory))
    else:
        broker = BrokerProcess(_start([*prefix, sys.executable, "-m", "odradek", *command], whole, directory))
    try:
        yield broker
    finally:
        if broker.process.poll() is None:
            broker.process.kill()
        broker.wait()


def _start(command: Sequence[str], environment: Mapping[str, str], directory: str | None) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True, env=environment, cwd=directory
    )


def _fork(arguments: Sequence[str], environment: Mapping[str, str], directory: str | None) -> ForkedProcess:
    (output, output_end), (errors, errors_end) = os.pipe(), os.pipe()
    with open(os.devnull, "rb") as null:
        streams = {0: null.fileno(), 1: output_end, 2: errors_end}
        process = prepared_process().start(arguments, environment, streams, directory=directory)
    os.close(output_end)
    os.close(errors_end)
    process.stdout, process.stderr = open(output), open(errors)  # noqa: SIM115 - closed by the threads that read them
    return process
