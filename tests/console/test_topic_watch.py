"""Watches of topics: pages read the model while records are decoded, masked and parsed."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from odradek.admin.cluster import Cluster
from odradek.console import models
from odradek.console.cluster.topic_watches import ExampleWatch, PipelineWatch, TopicWatch, example_views
from odradek.console.records.masking import DecodeAndMask
from odradek.pipelines.operating.status_record import TOPIC

if TYPE_CHECKING:
    from odradek.testing import RunningBroker

WAIT_S = 30.0


class Pause:
    """A function that does not return until it is released."""

    def __init__(self) -> None:
        self.is_entered = threading.Event()
        self.is_released = threading.Event()

    def __call__(self, value: bytes) -> bytes:
        self.is_entered.set()
        assert self.is_released.wait(2 * WAIT_S)
        return value


@pytest.mark.parametrize("topic", ["rigs", TOPIC])
def test_a_page_does_not_wait_for_the_parsing_of_records(
    odradek_broker: RunningBroker, monkeypatch: pytest.MonkeyPatch, topic: str
) -> None:
    cluster = Cluster(odradek_broker.bootstrap_servers, {})
    assert cluster.create_topic(topic, 1)
    producer = cluster.producer({})
    producer.produce(topic, b"{}", b"1")
    assert producer.flush(30) == 0
    pause = Pause()
    watch: TopicWatch[object]
    if topic == TOPIC:
        monkeypatch.setattr(models, "parse", lambda value: pause(value) and None)
        watch = PipelineWatch(cluster)  # type: ignore[assignment]  # TopicWatch is invariant
    else:
        rigs = ExampleWatch(cluster, DecodeAndMask(decoders={topic: pause}), "rigs", example_views()["rigs"])
        watch = rigs  # type: ignore[assignment]
    has_read = threading.Event()

    def read() -> None:
        with watch.reading():
            has_read.set()

    try:
        with watch.reading():
            pass
        assert pause.is_entered.wait(WAIT_S)
        threading.Thread(target=read, daemon=True).start()
        assert has_read.wait(5.0)
    finally:
        pause.is_released.set()
        watch.stop()


class Idle(TopicWatch[object]):
    """Reads with a fetcher that the test hands over."""

    name = "idle-watch"
    unwatched_s = retry_s = 60.0

    def _new_model(self) -> object:
        return object()

    def _follow(self) -> None: ...

    def fetch(self, fetcher: Any) -> None:
        self._fetch(fetcher, 0.0)

    def is_caught_up(self) -> bool:
        return self._is_caught_up.is_set()


def test_trouble_stays_until_something_is_read() -> None:
    watch = Idle(Cluster("127.0.0.1:1", {}))
    watch.trouble = "the broker does not answer"
    fetcher = SimpleNamespace(poll=lambda _timeout_s: [], trouble="", keys=[("t", 0)], is_at_end=lambda _key: False)
    watch.fetch(fetcher)
    assert watch.trouble == "the broker does not answer"
    fetcher.is_at_end = lambda _key: True
    watch.fetch(fetcher)
    assert watch.trouble == ""


def test_pages_do_not_wait_less_than_the_model() -> None:
    """A page that waits for the end of a topic sees the records before it."""
    watch = Idle(Cluster("127.0.0.1:1", {}))
    records = ["r1", "r2"]
    fetcher = SimpleNamespace(
        poll=lambda _timeout_s: [records.pop()] if records else [], trouble="", keys=[("t", 0)],
        is_at_end=lambda _key: not records,
    )  # fmt: skip
    for is_caught_up in (False, False, True):
        watch.fetch(fetcher)
        assert watch.is_caught_up() == is_caught_up
