"""Entries of the audit log as values and as lines of JSON: who did what to which resource from where. Pure."""

from __future__ import annotations

import datetime
import json
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from odradek.security.authorizer import Operation, Resource

ANY_NAME = "(any)"  # of a resource of which only the type was asked for
LONGEST_TEXT = 300  # names come from clients: a line has a bounded size


class Actor(NamedTuple):
    """The client of a request. The listener shows which network the client used."""

    principal: str
    host: str
    listener: str
    client_id: str | None
    api: str


class Action(NamedTuple):
    """A change that a client has made, or tried to make. `error` is the name of the error that it was answered with.
    `is_open` when the change may have been made all the same."""

    operation: str
    resource_type: str
    resource_name: str
    error: str | None = None
    details: Mapping[str, object] | None = None
    is_open: bool = False

    @property
    def outcome(self) -> str:
        if self.error is None:
            return "done"
        return "unknown" if self.is_open else "failed"


class Audit(Protocol):
    is_on: bool

    def denied(self, actor: Actor, operation: Operation, resource: Resource) -> None:
        """The authorizer has refused an operation."""

    def performed(self, actor: Actor, action: Action) -> None:
        """A client has changed metadata, or its request to do so has failed for another reason than access."""

    def authenticated(self, actor: Actor, action: Action) -> None:
        """A client has authenticated, or has failed to. These lines have a bound of their own."""


class NoAudit:
    """A broker without an audit log."""

    is_on = False

    def denied(self, actor: Actor, operation: Operation, resource: Resource) -> None:
        pass

    def performed(self, actor: Actor, action: Action) -> None:
        pass

    def authenticated(self, actor: Actor, action: Action) -> None:
        pass


def denial_fields(actor: Actor, operation: Operation, resource: Resource) -> dict[str, object]:
    return {
        "outcome": "denied",
        **_actor_fields(actor),
        "operation": pascal_case(operation.name),
        "resource_type": pascal_case(resource.type.name),
        "resource": _shortened(resource.name),
    }


def action_fields(actor: Actor, action: Action) -> dict[str, object]:
    fields: dict[str, object] = {
        "outcome": action.outcome,
        **_actor_fields(actor),
        "operation": action.operation,
        "resource_type": action.resource_type,
        "resource": _shortened(action.resource_name),
    }
    if action.error is not None:
        fields["error"] = action.error
    if action.details:
        fields |= {name: _shortened(value) for name, value in action.details.items()}
    return fields


def as_line(fields: Mapping[str, object], time_ms: int) -> bytes:
    """One line of JSON in ASCII: texts of clients cannot contain a line break, or the escapes of a terminal."""
    moment = datetime.datetime.fromtimestamp(time_ms / 1000, datetime.UTC).isoformat(timespec="milliseconds")
    return json.dumps({"time": moment, **fields}).encode() + b"\n"


def pascal_case(name: str) -> str:
    """As Kafka writes operations and types of resources: `DescribeConfigs`."""
    return "".join(word.capitalize() for word in name.split("_"))


def joined_texts(texts: Iterable[str]) -> Iterator[str]:
    """The texts with commas between them, as few lines as can hold them without being shortened. At least one."""
    line = ""
    for text in texts:
        if line and len(line) + 1 + len(text) > LONGEST_TEXT:
            yield line
            line = text
        else:
            line = f"{line},{text}" if line else text
    yield line


def _actor_fields(actor: Actor) -> dict[str, object]:
    return {
        "principal": _shortened(actor.principal),
        "host": actor.host,
        "listener": actor.listener,
        "client_id": None if actor.client_id is None else _shortened(actor.client_id),
        "api": actor.api,
    }


def _shortened(value: object) -> object:
    if isinstance(value, str) and len(value) > LONGEST_TEXT:
        return value[:LONGEST_TEXT] + "…"
    return value
