"""The process for background work (see `background`): it runs the work that it reads from standard input."""

import os
import pickle
import signal
import sys
import threading
import time
from contextlib import suppress
from queue import SimpleQueue
from typing import IO, Any

from odradek.host.background import END, FAILURE, FRAME, ITEM, PROGRESS, real_background_context
from odradek.host.real_disk import RealDisk

NICENESS = 10
REPORT_S = 10.0


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(OSError):
        os.nice(NICENESS)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # printed text must not get between the answers
    requests: SimpleQueue[Any] = SimpleQueue()
    threading.Thread(target=_watch, args=(sys.stdin.buffer, requests), daemon=True).start()
    room = real_background_context(RealDisk(), _Progress(answers).report)
    while True:
        work, args, kwargs = requests.get()
        try:
            for item in work(room, *args, **kwargs):
                _answer(answers, ITEM, item)
        except Exception as problem:
            _answer(answers, FAILURE, problem)
        else:
            _answer(answers, END, None)


class _Progress:
    """Reports that work goes on, at most once in REPORT_S."""

    def __init__(self, answers: IO[bytes]) -> None:
        self._answers = answers
        self._reported_s = time.monotonic()

    def report(self) -> None:
        if time.monotonic() - self._reported_s >= REPORT_S:
            self._reported_s = time.monotonic()
            _answer(self._answers, PROGRESS, None)


def _watch(stream: IO[bytes], requests: "SimpleQueue[Any]") -> None:
    """Read requests until the broker has ended, and end the process then."""
    while prefix := stream.read(FRAME.size):
        requests.put(pickle.loads(stream.read(FRAME.unpack(prefix)[1])))
    os._exit(0)


def _answer(stream: IO[bytes], kind: int, value: object) -> None:
    data = pickle.dumps(value)
    stream.write(FRAME.pack(kind, len(data)) + data)
    stream.flush()


if __name__ == "__main__":
    main()
