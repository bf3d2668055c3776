"""Why a request is refused: one of Kafka's error codes and the sentence that goes with it.

An expected failure is a value, so decisions return a `Refusal`; they never raise one.
"""

from typing import NamedTuple

from odradek.protocol.errors import ErrorCode


class Refusal(NamedTuple):
    error: ErrorCode
    message: str | None = None
