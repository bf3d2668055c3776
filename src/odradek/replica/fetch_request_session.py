"""The follower's side of a fetch session (KIP-227): a request names only the partitions that changed since the last.
Pure; `handlers/fetch_sessions` is the leader's side."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import FetchPartition, FetchTopic, ForgottenTopic

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from uuid import UUID

    from odradek.protocol.messages.fetch import FetchRequest, FetchResponse

NO_SESSION_ID = 0
INITIAL_EPOCH = 0
LARGEST_EPOCH = 2**31 - 1


class PartitionKey(NamedTuple):
    topic_id: UUID
    partition: int


class FetchPosition(NamedTuple):
    """The position of a follower in one partition."""

    fetch_offset: int
    leader_epoch: int
    last_fetched_epoch: int
    log_start_offset: int
    max_bytes: int


class FetchRequestSession:
    """One request is on its way at a time. `sent` are the partitions as the leader knows them."""

    __slots__ = ("_epoch", "_session_id", "sent")

    def __init__(self) -> None:
        self._session_id = NO_SESSION_ID
        self._epoch = INITIAL_EPOCH
        self.sent: dict[PartitionKey, FetchPosition] = {}

    def fill(self, request: FetchRequest, changes: Mapping[PartitionKey, FetchPosition | None]) -> None:
        """Set the session and the partitions of a request. `changes` are the partitions that may have another position
        than in the last request, with None for those that are not fetched any more."""
        sent = self.sent
        changed: dict[PartitionKey, FetchPosition] = {}
        forgotten: list[PartitionKey] = []
        for key, position in changes.items():
            if position is None:
                if sent.pop(key, None) is not None:
                    forgotten.append(key)
            elif sent.get(key) != position:
                sent[key] = changed[key] = position
        request.session_id, request.session_epoch = self._session_id, self._epoch
        if self._epoch == INITIAL_EPOCH:
            request.topics = _topics(sent.items())
        else:
            request.topics = _topics(changed.items())
            request.forgotten_topics_data = _forgotten(forgotten)

    def accept(self, response: FetchResponse) -> bool:
        """Whether the response has answers for partitions; if not, the next request names all of them."""
        if response.error_code != ErrorCode.NONE:
            if response.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
                self._session_id = NO_SESSION_ID
            self.reset()
            return False
        self._session_id = response.session_id
        if self._session_id == NO_SESSION_ID:
            self._epoch = INITIAL_EPOCH
        else:
            self._epoch = 1 if self._epoch == LARGEST_EPOCH else self._epoch + 1
        return True

    def reset(self) -> None:
        """After a request without a response. The next one closes the session and asks for another."""
        self._epoch = INITIAL_EPOCH


def _topics(positions: Iterable[tuple[PartitionKey, FetchPosition]]) -> list[FetchTopic]:
    topics: dict[UUID, FetchTopic] = {}
    for (topic_id, index), position in positions:
        topic = topics.get(topic_id)
        if topic is None:
            topic = topics[topic_id] = FetchTopic(topic_id=topic_id, partitions=[])
        topic.partitions.append(
            FetchPartition(
                partition=index,
                current_leader_epoch=position.leader_epoch,
                fetch_offset=position.fetch_offset,
                last_fetched_epoch=position.last_fetched_epoch,
                log_start_offset=position.log_start_offset,
                partition_max_bytes=position.max_bytes,
            )
        )
    return list(topics.values())


def _forgotten(keys: Iterable[PartitionKey]) -> list[ForgottenTopic]:
    topics: dict[UUID, ForgottenTopic] = {}
    for topic_id, index in keys:
        topic = topics.get(topic_id)
        if topic is None:
            topic = topics[topic_id] = ForgottenTopic(topic_id=topic_id, partitions=[])
        topic.partitions.append(index)
    return list(topics.values())
