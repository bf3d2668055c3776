"""Errors of a Kafka client as one line: what happened, and what to do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.conventions.failures import Failure

if TYPE_CHECKING:
    from confluent_kafka import KafkaError


class NoSuchTopic(Failure):
    """`topic` is its name, where the failure has it."""

    def __init__(self, message: str, topic: str = "") -> None:
        super().__init__(message)
        self.topic = topic


class NoSuchGroup(Failure):
    pass


class NotAuthorized(Failure):
    """The access control lists do not allow the request to this user."""


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
    """The cluster and this client do not agree on security, or the client's properties for it cannot be used. Another
    broker of the cluster would be no better."""


class BadCredentials(RefusedConnection):
    """The broker does not accept the user with this secret."""


class SecurityMismatch(RefusedConnection):
    """The listener has another security protocol or mechanism, or a certificate of one side is not trusted."""


def unreachable(address: str, reason: str) -> Failure:
    return Failure(
        f"no broker answers at {address} ({reason}); start one with `odradek broker`, "
        "or give another address with --bootstrap-server"
    )


# librdkafka's error names -> text with advice. Other errors are shown with the broker's message.
ADVICE = {
    "TOPIC_ALREADY_EXISTS": "the topic already exists; --if-not-exists accepts that",
    "UNKNOWN_TOPIC_OR_PART": "there is no such topic or partition; `odradek topic list` shows those that exist",
    "_UNKNOWN_TOPIC": "there is no such topic; `odradek topic list` shows those that exist",
    "_UNKNOWN_PARTITION": "there is no such partition; `odradek topic describe` shows those that exist",
    "MSG_SIZE_TOO_LARGE": "a record is too large; raise the topic's max.message.bytes (`odradek config alter topic`)",
    "INVALID_TIMESTAMP": "a timestamp differs from the broker's clock by more than the topic allows "
    "(message.timestamp.before.max.ms and message.timestamp.after.max.ms)",
    "_MSG_TIMED_OUT": "the broker did not acknowledge in time; is it running?",
    "_TIMED_OUT": "the broker did not answer in time; is it running, and is the address that of a Kafka listener?",
    "_TRANSPORT": "the connection to the broker was lost; is it running, and is the address that of a Kafka listener?",
    "_ALL_BROKERS_DOWN": "no broker can be reached; is it running?",
    "_RESOLVE": "the broker's name cannot be resolved; check --bootstrap-server",
    "_SSL": "the TLS handshake failed; check the -X ssl.* properties",
    "_AUTHENTICATION": "the broker refused the credentials; check the -X sasl.* properties",
    "TOPIC_AUTHORIZATION_FAILED": "this user is not authorized for the topic",
    "CLUSTER_AUTHORIZATION_FAILED": "this user is not authorized for the cluster",
    "GROUP_ID_NOT_FOUND": "there is no such group; `odradek group list` shows those that exist",
    "NON_EMPTY_GROUP": "the group has active members; stop them first",
    "UNKNOWN_MEMBER_ID": "the group has active members; stop them first",
    "GROUP_AUTHORIZATION_FAILED": "this user is not authorized for the group",
    "_UNSUPPORTED_FEATURE": "the broker does not support this request",
}


def explain(error: KafkaError, subject: str = "") -> str:
    """One line for a Kafka error: the subject, and advice or the broker's message."""
    advice = ADVICE.get(error.name())
    if advice is not None:
        return f"{subject}: {advice}" if subject else advice
    words = error.str().strip().rstrip(".").removeprefix("Broker: ").removeprefix("Local: ")
    line = f"{subject}: {words}" if subject else words
    return f"{line} ({error.name().lstrip('_')})"
