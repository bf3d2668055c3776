"""Creates, edits, describes, empties and deletes streams of topics, by requests that only Odradek has (10003 to 10006);
and maps options of MapR's `maprcli stream` to settings of topics."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from odradek.admin.broker_metrics import listed_apis
from odradek.admin.broker_requests import BrokerRequests, KnownBroker, by_topic, live
from odradek.admin.errors import UnsupportedRequest, check
from odradek.admin.groups import list_groups, read_committed_offsets
from odradek.admin.topics import delete_records
from odradek.conventions.failures import Failure
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages import offset_delete
from odradek.protocol.messages.create_streams import (
    CreateStreamsRequest,
    CreateStreamsResponse,
    StreamChange,
    StreamPermission,
    StreamSetting,
)
from odradek.protocol.messages.delete_streams import DeleteStreamsRequest, DeleteStreamsResponse
from odradek.protocol.messages.describe_streams import DescribeStreamsRequest, DescribeStreamsResponse
from odradek.protocol.messages.edit_streams import EditStreamsRequest, EditStreamsResponse

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from odradek.admin.cluster import Cluster
    from odradek.protocol.messages.create_streams import StreamResult
    from odradek.protocol.messages.describe_streams import DescribedStream

TTL_SETTING, COMPRESSION_SETTING = "retention.ms", "compression.type"
KEEPS_FOR_EVER = "-1"
_COMPRESSIONS = {"off": "uncompressed", "zlib": "gzip", "inherit": None}  # MapR's words that Kafka says otherwise
COMPRESSIONS = ("off", "lz4", "zlib", "zstd", "snappy", "gzip", "inherit")
_TIMESTAMP_TYPES = {"createtime": "CreateTime", "logappendtime": "LogAppendTime"}


class StreamEdit(NamedTuple):
    """None keeps what is there; a setting to None is removed from the stream."""

    default_partitions: int | None = None
    creates_topics: bool | None = None
    settings: Mapping[str, str | None] = {}
    permissions: Mapping[str, str] = {}


def compression_setting(word: str) -> str | None:
    """None leaves the choice to producers."""
    return _COMPRESSIONS.get(word, word)


def timestamp_setting(word: str) -> str:
    return _TIMESTAMP_TYPES.get(word.lower(), word)


def create_stream(cluster: Cluster, path: str, edit: StreamEdit) -> None:
    answer = _requests(cluster).ask_controller(
        CreateStreamsRequest(streams=[_change(path, edit)]), CreateStreamsResponse, 0
    )
    _check(answer.results)


def edit_stream(cluster: Cluster, path: str, edit: StreamEdit) -> None:
    answer = _requests(cluster).ask_controller(
        EditStreamsRequest(streams=[_change(path, edit)]), EditStreamsResponse, 0
    )
    _check(answer.results)


def delete_streams(cluster: Cluster, paths: Sequence[str]) -> None:
    answer = _requests(cluster).ask_controller(DeleteStreamsRequest(paths=list(paths)), DeleteStreamsResponse, 0)
    _check(answer.results)


def describe_streams(cluster: Cluster, paths: Sequence[str] | None = None) -> list[DescribedStream]:
    """The named streams, or all that this user may see."""
    request = DescribeStreamsRequest(paths=None if paths is None else list(paths))
    answer = _requests(cluster).ask_any(request, DescribeStreamsResponse, 0)
    _check(answer.streams)
    return answer.streams


def topics_of(cluster: Cluster, path: str) -> list[str]:
    """The full names of the stream's topics."""
    return sorted(name for name in cluster.topic_names() if name.startswith(f"{path}:"))


def purge_stream(cluster: Cluster, path: str) -> tuple[list[str], list[Failure]]:
    """Delete all records of the stream's topics. The topics that are empty now, and why others are not."""
    purged: list[str] = []
    failures: list[Failure] = []
    for name in topics_of(cluster, path):
        partitions = [partition.id for partition in cluster.describe_topic(name).partitions]
        refused = delete_records(cluster, name, dict.fromkeys(partitions, -1))
        failures += refused
        purged += [] if refused else [name]
    return purged, failures


class Cursor(NamedTuple):
    """The committed offset of a group in one partition: the next record that it reads. MapR shows the last one read."""

    group: str
    topic: str
    partition: int
    offset: int


def cursors_of(cluster: Cluster, path: str, group: str | None = None) -> Iterator[Cursor]:
    """Those of all groups, or of one."""
    requests = cluster.requests
    groups = [group] if group is not None else sorted(each.name for each in list_groups(requests)[0])
    for name in groups:
        for (topic, partition), offset in sorted(read_committed_offsets(requests, name).items()):
            if topic.startswith(f"{path}:"):
                yield Cursor(name, topic, partition, offset)


def delete_cursors(cluster: Cluster, group: str, cursors: Iterable[Cursor]) -> None:
    topics = by_topic((each.topic, each.partition) for each in cursors)
    new_topic, new_partition = offset_delete.OffsetDeleteRequestTopic, offset_delete.OffsetDeleteRequestPartition
    request = offset_delete.OffsetDeleteRequest(
        group_id=group,
        topics=[
            new_topic(name=topic, partitions=[new_partition(partition_index=index) for index in indexes])
            for topic, indexes in topics.items()
        ],
    )

    def ask(coordinator: KnownBroker, _names: list[str]) -> dict[str, int]:
        answer = cluster.requests.ask(coordinator, request, offset_delete.OffsetDeleteResponse, 0)
        partitions = [each for topic in answer.topics for each in topic.partitions]
        return {group: answer.error_code or next((each.error_code for each in partitions if each.error_code), 0)}

    check(cluster.requests.ask_coordinators([group], ask)[group], None, f"group {group}", "Delete")


def _requests(cluster: Cluster) -> BrokerRequests:
    requests = cluster.requests
    broker = live(requests.describe().brokers)[0]
    if DescribeStreamsRequest.api_key not in listed_apis(requests, broker):
        raise UnsupportedRequest(f"broker {broker.broker_id} has no streams: only brokers of Odradek do")
    return requests


def _change(path: str, edit: StreamEdit) -> StreamChange:
    return StreamChange(
        path=path,
        default_partitions=edit.default_partitions or 0,
        creates_topics=-1 if edit.creates_topics is None else int(edit.creates_topics),
        settings=[StreamSetting(name=name, value=value) for name, value in edit.settings.items()],
        permissions=[StreamPermission(name=name, expression=text) for name, text in edit.permissions.items()],
    )


def _check(results: Sequence[StreamResult | DescribedStream]) -> None:
    for each in results:
        if each.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise Failure(f"there is no stream {each.path}; `odradek stream list` shows those that you may see")
        check(each.error_code, each.error_message, f"stream {each.path}")
