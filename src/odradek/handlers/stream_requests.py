"""What the requests about streams have in common: who may change a stream, and the form of changes and results.

To access control lists, the stream `/streams/pump` is the topic name `/streams/pump:`, so that rules for its topics by
their common prefix are rules for it.
- AlterConfigs there allows changing defaults and settings.
- All operations there allow changing permissions, which give any right: a rule for AlterConfigs alone does not.
- Deleting a stream needs AlterConfigs and Delete there, and Delete on each of its topics.
The stream's permission `admin` has AlterConfigs and all operations there, `topic` has Delete.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.controller.decisions.streams import StreamRequest, refuse_streams
from odradek.metadata.streams import TOPIC_SEPARATOR
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_streams import StreamChange, StreamResult
from odradek.protocol.refusal import Refusal
from odradek.security.authorizer import Operation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from odradek.controller.decisions import streams
    from odradek.handlers.context import RequestContext

_DENIED = Refusal(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Authorization failed.")


def may_administer(context: RequestContext, path: str, *, logs: bool = True) -> bool:
    return context.allows_on_topic(Operation.ALTER_CONFIGS, path + TOPIC_SEPARATOR, logs=logs)


def may_change_permissions(context: RequestContext, path: str) -> bool:
    return context.allows_on_topic(Operation.ALL, path + TOPIC_SEPARATOR)


def may_delete(context: RequestContext, path: str) -> bool:
    own_name = path + TOPIC_SEPARATOR
    return may_administer(context, path) and all(
        context.allows_on_topic(Operation.DELETE, name)
        for name in (own_name, *(topic.name for topic in context.services.image.topics_of(path)))
    )


def split_by_access(
    context: RequestContext, paths: Iterable[str], may: Callable[[RequestContext, str], bool]
) -> tuple[set[str], list[streams.StreamResult]]:
    """The streams that the client may change, and the results of the others."""
    allowed = {path for path in paths if may(context, path)}
    return allowed, refuse_streams([path for path in paths if path not in allowed], _DENIED)


def read_change(change: StreamChange) -> StreamRequest:
    return StreamRequest(
        path=change.path,
        default_partitions=change.default_partitions or None,
        creates_topics=None if change.creates_topics < 0 else bool(change.creates_topics),
        settings={setting.name: setting.value for setting in change.settings},
        permissions={permission.name: permission.expression for permission in change.permissions},
    )


def describe_results(results: Iterable[streams.StreamResult]) -> list[StreamResult]:
    return [
        StreamResult(path=path)
        if refusal is None
        else StreamResult(path=path, error_code=refusal.error, error_message=refusal.message)
        for path, refusal in results
    ]
