"""A Java program of these tests that answers one line of JSON with another, for as long as it is asked."""

import json
from types import TracebackType
from typing import Any, Self

from tests.clients.drivers.driver import LineDriver
from tests.jvm.jars import java_command


class JsonSession(LineDriver):
    """`with JsonSession("odradek.MessageSession") as session: session.call({"class": …})`."""

    def __init__(self, main_class: str, heap: str = "256m") -> None:
        super().__init__(java_command(main_class, heap=heap))

    def call(self, question: Any, timeout_seconds: float = 60) -> Any:
        answer = json.loads(self.exchange(question, timeout_seconds))
        if "problem" in answer:
            raise RuntimeError(f"{answer['problem']} over {question}")
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
