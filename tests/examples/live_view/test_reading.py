"""The topics of a live view are followed, with partitions that cannot be read for a while."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from odradek.examples.live_view.model import LiveViewModel
from odradek.examples.live_view.reading import TopicFollower
from tests.examples.live_view.seen import BEGAN_S, RIGS

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pytest

Key = tuple[str, int]


class Source:
    def __init__(self) -> None:
        self.assigned: list[tuple[Key, int]] = []
        self.failed: dict[Key, str] = {}

    def assign(self, offsets: Iterable[tuple[Key, int]]) -> None:
        self.assigned += offsets

    def poll(self, _timeout_s: float) -> list[Any]:
        return []


class Topics:
    """A cluster in which each topic has a partition with ten records."""

    def list_topics(self, timeout: float) -> Any:
        names = (*RIGS.topics, "warnings", "problems")
        return SimpleNamespace(topics={name: SimpleNamespace(partitions=[0], error=None) for name in names})

    def list_offsets(self, asked: Iterable[Any], request_timeout: float) -> dict[Any, Any]:
        return {each: SimpleNamespace(result=lambda: SimpleNamespace(offset=10)) for each in asked}


def test_a_partition_that_cannot_be_read_is_shown_and_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("odradek.examples.live_view.reading.REFRESH_S", 0.0)
    source, topics, model = Source(), Topics(), LiveViewModel(RIGS, BEGAN_S)
    follower = TopicFollower(source, topics, model)  # type: ignore[arg-type]  # stands for an admin client
    follower.poll(0.0)
    (key, _offset), *_others = source.assigned
    source.assigned.clear()
    source.failed[key] = "corrupt"
    follower.poll(0.0)
    assert (source.assigned, model.read_failure) == ([(key, 10)], "corrupt")
    follower.poll(0.0)
    assert (len(source.assigned), model.read_failure) == (1, "")
