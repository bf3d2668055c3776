"""A Java program of these tests that answers one line of JSON with another, for as long as it is asked."""

import json
import selectors
import subprocess
from types import TracebackType
from typing import Any, Self

from tests.jvm.jars import java_command


class JsonSession:
    """`with JsonSession("odradek.MessageSession") as session: session.call({"class": …})`."""

    def __init__(self, main_class: str, heap: str = "256m") -> None:
        command = java_command(main_class, heap=heap)
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def call(self, question: Any, timeout_seconds: float = 60) -> Any:
        to_session, from_session = self._process.stdin, self._process.stdout
        assert to_session is not None
        assert from_session is not None
        to_session.write(json.dumps(question).encode() + b"\n")
        to_session.flush()
        with selectors.DefaultSelector() as selector:
            selector.register(from_session, selectors.EVENT_READ)
            if not selector.select(timeout_seconds):
                self._process.kill()
                raise TimeoutError(f"no answer in {timeout_seconds} s to {question}")
        line = from_session.readline()
        if not line:
            raise RuntimeError(f"the session ended over {question}; its standard error says why")
        answer = json.loads(line)
        if "problem" in answer:
            raise RuntimeError(f"{answer['problem']} over {question}")
        return answer

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
