"""The reason why a request is refused: one of Kafka's error codes and its message.

Expected failures are values, so decisions return a `Refusal` and never raise one.
"""

from typing import NamedTuple

from odradek.protocol.errors import ErrorCode


class Refusal(NamedTuple):
    error: ErrorCode
    message: str | None = None
