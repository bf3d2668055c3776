"""DescribeStreams, version 0: streams with their settings and the numbers of their topics. An API of Odradek's own.

A stream is described to those who may describe it by an access control list or by any of its permissions. Without
names, the others are left out. Permissions are shown to those who may change them.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from odradek.controller.decisions.streams import unknown
from odradek.handlers.cooperative_scheduling import each_in_turn
from odradek.handlers.stream_requests import may_administer
from odradek.metadata.streams import TOPIC_SEPARATOR, is_stream_topic, split_name
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_streams import StreamPermission, StreamSetting
from odradek.protocol.messages.describe_streams import (
    DescribedStream,
    DescribeStreamsRequest,
    DescribeStreamsResponse,
)
from odradek.security.authorizer import Operation

if TYPE_CHECKING:
    from odradek.handlers.context import RequestContext
    from odradek.metadata.streams import StreamImage


async def handle(request: DescribeStreamsRequest, context: RequestContext) -> DescribeStreamsResponse:
    image = context.services.image
    topics: Counter[str] = Counter()
    partitions: Counter[str] = Counter()
    wanted = image.streams if request.paths is None else image.streams.keys() & set(request.paths)
    async for topic in each_in_turn(image.topics.values() if wanted else ()):
        if is_stream_topic(topic.name) and (path := split_name(topic.name).path) in wanted:
            topics[path] += 1
            partitions[path] += len(topic.partitions)
    described = []
    for path in sorted(image.streams) if request.paths is None else dict.fromkeys(request.paths):
        stream = image.streams.get(path)
        if not context.allows_on_topic(Operation.DESCRIBE, path + TOPIC_SEPARATOR, logs=request.paths is not None):
            if request.paths is not None:
                described.append(DescribedStream(path=path, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED))
        elif stream is None:
            error, message = unknown(path)
            described.append(DescribedStream(path=path, error_code=error, error_message=message))
        else:
            described.append(_describe(stream, topics[path], partitions[path], context))
    return DescribeStreamsResponse(streams=described)


def _describe(stream: StreamImage, topics: int, partitions: int, context: RequestContext) -> DescribedStream:
    permissions = stream.permissions if may_administer(context, stream.path, logs=False) else {}
    return DescribedStream(
        path=stream.path,
        stream_id=stream.stream_id,
        owner=stream.owner,
        default_partitions=stream.default_partitions,
        creates_topics=stream.creates_topics,
        settings=[StreamSetting(name=name, value=value) for name, value in stream.settings.items()],
        permissions=[StreamPermission(name=name, expression=text) for name, text in permissions.items()],
        topic_count=topics,
        partition_count=partitions,
    )
