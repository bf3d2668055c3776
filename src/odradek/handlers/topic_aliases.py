"""Clients may name a topic of a stream by its alias (`metadata/streams`): handlers see the full name, and the response
has the name that the client has used.

Aliases are replaced in the fields that the message tables declare as names of topics, and in names of resources that
are topics. In a cluster without streams nothing is looked at.
"""

from __future__ import annotations

import inspect
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from odradek.metadata.streams import split_alias, split_alias_prefix
from odradek.protocol.fields import Field, StructType
from odradek.protocol.schema import Response, Struct
from odradek.security.authorizer import ResourceType

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping
    from typing import TypeAlias

    from odradek.handlers.context import ClientConnection, RequestContext
    from odradek.metadata.streams import StreamImage

    Handle: TypeAlias = Callable[[Any, RequestContext], Any]

_RESOURCES = (("resource_type", "resource_name"), ("resource_type_filter", "resource_name_filter"))


class _Names(NamedTuple):
    """Where a struct has names of topics: in its own fields, in lists of names, and in the structs below it."""

    own: tuple[str, ...]
    lists: tuple[str, ...]
    below: tuple[tuple[str, _Names], ...]
    resource: tuple[str, str] | None


@cache  # one entry for each struct of the protocol
def _names_in(struct: StructType) -> _Names | None:
    own, lists, below = [], [], []
    for field in struct.fields:
        element = field.element
        if field.is_topic_name:
            own.append(field.name)
        elif isinstance(element, Field) and element.is_topic_name:
            lists.append(field.name)
        elif isinstance(element, StructType) and (names := _names_in(element)) is not None:
            below.append((field.name, names))
    declared = {field.name for field in struct.fields}
    resource = next((each for each in _RESOURCES if declared.issuperset(each)), None)
    found = _Names(tuple(own), tuple(lists), tuple(below), resource)
    return found if own or lists or below or resource else None


def _names_of(message: Struct) -> _Names | None:
    return _names_in(type(message))


def has_topic_names(message: StructType) -> bool:
    return _names_in(message) is not None


def _replace(value: Any, names: _Names, find: Callable[[str], str | None]) -> None:
    own = names.own
    if names.resource is not None and getattr(value, names.resource[0]) == ResourceType.TOPIC:
        own = (*own, names.resource[1])
    for name in own:
        if (text := getattr(value, name)) and (other := find(text)) is not None:
            setattr(value, name, other)
    for name in names.lists:
        if texts := getattr(value, name):
            setattr(value, name, [find(text) or text for text in texts])
    for name, below in names.below:
        part = getattr(value, name)
        for each in part if isinstance(part, list) else () if part is None else (part,):
            _replace(each, below, find)


def resolve_aliases(request: Any, streams: Mapping[str, StreamImage]) -> dict[str, str]:
    """Replaces aliases in the request. Returns them by the full names."""
    found: dict[str, str] = {}

    def find(name: str) -> str | None:
        if ".." not in name:
            return None
        topic = split_alias(name) or split_alias_prefix(name)
        if topic is None or topic.path not in streams:
            return None
        found[topic.name] = name
        return topic.name

    names = _names_of(request)
    if names is not None:
        _replace(request, names, find)
    return found


def restore_aliases(message: Any, aliases: Mapping[str, str]) -> None:
    names = _names_of(message)
    if names is not None:
        _replace(message, names, aliases.get)


def understanding_aliases(handle: Handle, *, has_sessions: bool = False) -> Handle:
    """With `has_sessions`, later requests of a connection do not name all topics that their responses name."""

    def handle_aliases(request: Any, context: RequestContext) -> Any:
        image = context.services.metadata.image
        if not image.streams:
            return handle(request, context)
        aliases: Mapping[str, str] = resolve_aliases(request, image.streams)
        if has_sessions:
            aliases = _remember(context.connection, aliases, image.topics)
        response = handle(request, context)
        if not aliases:
            return response
        if response is None or isinstance(response, Response):
            return _restored(request, response, aliases)
        return _restore_later(request, response, aliases)

    return handle_aliases


def _remember(connection: ClientConnection, aliases: Mapping[str, str], topics: Container[str]) -> Mapping[str, str]:
    """Names of topics that do not exist are not kept: there may be any number of them."""
    new = {name: alias for name, alias in aliases.items() if name in topics}
    if new:
        connection.fetched_aliases = {**connection.fetched_aliases, **new}
    return {**connection.fetched_aliases, **aliases} if aliases else connection.fetched_aliases


def _restored(request: Any, response: Any, aliases: Mapping[str, str]) -> Any:
    """A request without a response may be sent again, as the client has sent it."""
    restore_aliases(request if response is None else response, aliases)
    return response


async def _restore_later(request: Any, awaited: Any, aliases: Mapping[str, str]) -> Any:
    response = await awaited
    if inspect.isawaitable(response):  # it waited for a coordinator, and waits for something else
        response = await response
    return _restored(request, response, aliases)
