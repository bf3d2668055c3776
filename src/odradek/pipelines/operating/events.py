"""Events of a running pipeline: small JSON objects with a `kind`, within a process or sent between two."""

from __future__ import annotations

import json
import os
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

Event = dict[str, Any]


def note(text: str) -> Event:
    """A message for the user, such as what the pipeline waits for while it starts."""
    return {"kind": "note", "text": text}


def runs(flows: list[str], uncounted: Collection[str] = ()) -> Event:
    """All flows have been started; Spark does not count the rows in the state of those that are `uncounted`."""
    return {"kind": "running", "flows": flows, "uncounted": sorted(uncounted)}


def failed(error: str, retry: str) -> Event:
    return {"kind": "failed", "error": error, "retry": retry}


class EventPipe:
    """Writes events to a descriptor, from any thread; a missing reader is not an error."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.Lock()

    def send(self, event: Event) -> None:
        line = json.dumps(event, separators=(",", ":")).encode() + b"\n"
        with self._lock:
            try:
                while line:
                    line = line[os.write(self._descriptor, line) :]
            except BrokenPipeError:
                return


class EventLines:
    """Parses events from a stream of bytes."""

    def __init__(self) -> None:
        self._rest = b""

    def take(self, data: bytes) -> Iterator[Event]:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            yield json.loads(line)
