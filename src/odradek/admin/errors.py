"""Failures of requests to a cluster, and errors of brokers as one line: what happened, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from odradek.conventions.failures import Failure
from odradek.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from confluent_kafka import KafkaError


class NoSuchName(Failure):
    """`name` is that of the topic or group, where the failure has it."""

    def __init__(self, message: str, name: str = "") -> None:
        super().__init__(message)
        self.name = name


class NoSuchTopic(NoSuchName):
    pass


class NoSuchGroup(NoSuchName):
    pass


class NotAuthorized(Failure):
    """The access control lists do not allow the request to this user. `needed` is the right to the resource, such as
    `Read on topic orders`; empty if it is not known."""

    def __init__(self, message: str, needed: str = "") -> None:
        super().__init__(message)
        self.needed = needed


class UnsupportedRequest(Failure):
    """The broker does not have the request, or none of the versions that are needed."""


class NoAnswer(Failure):
    """A broker cannot be reached, or has not answered in time; `reason` does not name it."""

    def __init__(self, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason


def reason_of(failure: Failure) -> str:
    """Without the address, where that is named elsewhere."""
    return failure.reason if isinstance(failure, NoAnswer) else failure.message


class AnswerTimeout(NoAnswer):
    """A broker has accepted a connection, and has not answered a request in time."""


class LostConnection(Failure):
    """The connection broke before the response. Another one may be better."""


class RefusedConnection(Failure):
    """The cluster refuses this client's security, or its properties cannot be used. Another broker is no better."""


class BadCredentials(RefusedConnection):
    """The broker does not accept the user with this secret."""


class SecurityMismatch(RefusedConnection):
    """The listener has another security protocol or mechanism, or a certificate of one side is not trusted."""


# Names of Kafka's errors, and of librdkafka's own, which begin with _: text with advice. Other errors are shown with
# the broker's message and their name.
ADVICE = {
    "CLUSTER_AUTHORIZATION_FAILED": "this user is not authorized for the cluster",
    "GROUP_AUTHORIZATION_FAILED": "this user is not authorized for the group",
    "GROUP_ID_NOT_FOUND": "there is no such group; `odradek group list` shows those that exist",
    "INVALID_TIMESTAMP": "a timestamp differs from the broker's clock by more than the topic allows "
    "(message.timestamp.before.max.ms and message.timestamp.after.max.ms)",
    "MESSAGE_TOO_LARGE": "a record is too large; raise the topic's max.message.bytes (`odradek config alter topic`)",
    "NON_EMPTY_GROUP": "the group has active members; stop them first",
    "TOPIC_ALREADY_EXISTS": "the topic already exists; --if-not-exists accepts that",
    "TOPIC_AUTHORIZATION_FAILED": "this user is not authorized for the topic",
    "UNKNOWN_MEMBER_ID": "the group has active members; stop them first",
    "UNKNOWN_TOPIC_OR_PARTITION": "there is no such topic or partition; `odradek topic list` shows those that exist",
    "_ALL_BROKERS_DOWN": "no broker can be reached; is it running?",
    "_AUTHENTICATION": "the broker refused the credentials; check the -X sasl.* properties",
    "_MSG_TIMED_OUT": "the broker did not acknowledge in time; is it running?",
    "_RESOLVE": "the broker's name cannot be resolved; check --bootstrap-server",
    "_SSL": "the TLS handshake failed; check the -X ssl.* properties",
    "_TIMED_OUT": "the broker did not answer in time; is it running, and is the address that of a Kafka listener?",
    "_TRANSPORT": "the connection to the broker was lost; is it running, and is the address that of a Kafka listener?",
    "_UNKNOWN_PARTITION": "there is no such partition; `odradek topic describe` shows those that exist",
    "_UNKNOWN_TOPIC": "there is no such topic; `odradek topic list` shows those that exist",
    "_UNSUPPORTED_FEATURE": "the broker does not support this request",
}
# These mean something else in answers to a producer.
REQUEST_ADVICE = ADVICE | {
    "INVALID_PRODUCER_EPOCH": "the producer has begun another transaction since; run the command again",
    "INVALID_REGULAR_EXPRESSION": "the pattern is not a valid regular expression (RE2)",
    "NOT_CONTROLLER": "the controller has changed; run the command again",
    "REQUEST_TIMED_OUT": "no controller answered in time; `odradek cluster status` shows the brokers",
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": "this user is not authorized for the transactional id",
    "TRANSACTIONAL_ID_NOT_FOUND": "there is no such transactional id; `odradek transaction list` shows them",
    "TRANSACTION_COORDINATOR_FENCED": "the coordinator has written a later marker; run the command again",
}
KAFKA_NAMES = {"MSG_SIZE_TOO_LARGE": "MESSAGE_TOO_LARGE", "UNKNOWN_TOPIC_OR_PART": "UNKNOWN_TOPIC_OR_PARTITION"}
NO_SUCH_TOPIC = frozenset({"UNKNOWN_TOPIC_OR_PARTITION", "_UNKNOWN_TOPIC"})


def explain(error: KafkaError, subject: str = "") -> str:
    """One line for an error of the client library: the subject, and advice or its message."""
    words = error.str().strip().rstrip(".").removeprefix("Broker: ").removeprefix("Local: ")
    return _line(ADVICE, KAFKA_NAMES.get(error.name(), error.name()), words, subject)


def error_text(error_code: int, message: str | None, subject: str) -> str:
    """One line for an error of a broker: the subject, and advice or the broker's message."""
    words = (message or "the broker refused the request").rstrip(".")
    return _line(REQUEST_ADVICE, ErrorCode(error_code).name, words, subject)


def _line(advice: Mapping[str, str], name: str, words: str, subject: str) -> str:
    reason = advice.get(name) or f"{words} ({name.lstrip('_')})"
    return f"{subject}: {reason}" if subject else reason


def failure_of(name: str, line: str, subject: str, operation: str = "") -> Failure:
    """The failure for an error, of the kind that callers distinguish. A refusal names what the user lacks."""
    name = KAFKA_NAMES.get(name, name)
    kind, is_refused, _ = name.lower().replace("_", " ").partition(" authorization failed")
    if is_refused and not operation:
        return NotAuthorized(line)
    if is_refused:
        named = subject.removeprefix("settings of ").partition(",")[0]
        resource = named if named.startswith(f"{kind} ") else f"the {kind}"
        return NotAuthorized(f"{line}: it needs {operation}", f"{operation} on {resource}")
    if name in NO_SUCH_TOPIC and subject.startswith("topic "):
        return NoSuchTopic(line, subject.removeprefix("topic ").partition(",")[0])
    return NoSuchGroup(line, subject.removeprefix("group ")) if name == "GROUP_ID_NOT_FOUND" else Failure(line)


def broker_failure(error_code: int, message: str | None, subject: str, operation: str = "") -> Failure:
    """The failure for an error of a broker, which names the operation that the user lacks."""
    line = error_text(error_code, message, subject)
    return failure_of(ErrorCode(error_code).name, line, subject, operation)


def check(error_code: int, message: str | None, subject: str, operation: str = "") -> None:
    """Raises `broker_failure` unless there is no error."""
    if error_code:
        raise broker_failure(error_code, message, subject, operation)
