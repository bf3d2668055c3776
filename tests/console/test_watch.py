"""The watch of a cluster: when it reads again, and what it reports of brokers that do not answer."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from contextlib import ExitStack, contextmanager
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from odradek.admin.broker_requests import BrokerRequests
from odradek.admin.cluster_state import MinInSync
from odradek.admin.groups import ListedGroup
from odradek.console import server as console_app
from odradek.console.cluster import groups
from odradek.console.cluster import watch as watching
from odradek.console.cluster.watch import ClusterWatch, PollingShare
from odradek.console.models import Samples, Series
from odradek.console.pages import groups as pages
from odradek.console.pages import overview as overview_page
from odradek.console.pages import requests
from odradek.console.views.figures import DASH
from odradek.console.views.overview import CHARTS, columns, overview
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_cluster import DescribeClusterRequest
from odradek.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from odradek.protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from odradek.protocol.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
from odradek.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from odradek.protocol.messages.metadata import MetadataRequest
from tests.console.conftest import Visitor, running_console
from tests.console.fake_cluster import TOPIC, fake_cluster
from tests.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from odradek.protocol.schema import Response
    from tests.console.fake_cluster import FakeBroker, FakeCluster

INTERVAL_S = 0.1
TIMEOUT_S = 0.5
LONG_TIMEOUT_S = 3.0  # so long that a busy machine does not take another one for its own work


@pytest.fixture(autouse=True)
def short_timeouts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "REQUEST_TIMEOUT_S", TIMEOUT_S)


@pytest.fixture(autouse=True)
def no_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fake brokers do not list groups."""
    monkeypatch.setattr("odradek.admin.groups.list_groups", lambda _requests: ([], {}))


@contextmanager
def watched(cluster: FakeCluster, **options: Any) -> Iterator[ClusterWatch]:
    watch = ClusterWatch(cluster.client(), INTERVAL_S, **options)
    watch.start()
    try:
        yield watch
    finally:
        watch.stop()


def shows(visitor: Visitor, path: str, text: str) -> bool:
    return text in visitor.get(path).text


@pytest.fixture
def long_timeouts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "REQUEST_TIMEOUT_S", LONG_TIMEOUT_S)


@pytest.mark.usefixtures("long_timeouts")
def test_a_broker_that_hangs_delays_the_next_state_by_one_timeout() -> None:
    with fake_cluster() as cluster, watched(cluster) as watch:
        assert watch.snapshot().ends[TOPIC, 2] == 100
        cluster.brokers[2].goes_on.clear()
        eventually(lambda: (TOPIC, 2) not in watch.snapshot().ends)
        cluster.ends, changed_at = 200, time.monotonic()
        eventually(lambda: watch.snapshot().ends[TOPIC, 0] == 200)
        # Two rounds at most: the one that runs, and the next.
        assert time.monotonic() - changed_at < 3 * LONG_TIMEOUT_S


@pytest.mark.usefixtures("long_timeouts")
def test_a_broker_that_hangs_is_asked_once_in_a_round() -> None:
    with fake_cluster() as cluster:
        cluster.serves_metrics = True
        cluster.brokers[2].goes_on.clear()
        with watched(cluster) as watch:
            snapshot = watch.snapshot()
            assert snapshot.silent == (3,)
            assert watch._last_round.took_s < 2 * LONG_TIMEOUT_S
            cluster.brokers[2].goes_on.set()
            eventually(lambda: watch.snapshot().silent == ())


def test_pages_say_that_a_broker_does_not_answer_and_how_old_their_state_is() -> None:
    with fake_cluster() as cluster, running_console(cluster.client().bootstrap_servers) as address:
        visitor = Visitor(address)
        assert "does not answer" not in visitor.get("/topics").text
        cluster.brokers[2].goes_on.clear()
        for path in ("/", "/topics", f"/topics/{TOPIC}", "/brokers"):
            eventually(partial(shows, visitor, path, "Broker 3 does not answer"))
        for broker in cluster.brokers:
            broker.close()
        for path in ("/", "/topics", "/brokers"):
            eventually(partial(shows, visitor, path, "no broker answers"))
            assert re.search(r"Shown is the state of [\d.]+ m?s ago", visitor.get(path).text)


def test_the_controller_of_a_kraft_cluster_is_the_leader_of_its_quorum() -> None:
    with fake_cluster() as cluster:
        cluster.quorum_leader = 2
        cluster.overrides[DescribeClusterRequest] = with_changing_controller(cluster)
        with watched(cluster) as watch:
            for _ in range(3):
                assert watch.look_again().state.cluster.controller_id == 2


def test_a_controller_that_a_kraft_cluster_does_not_report_is_not_shown() -> None:
    with fake_cluster() as cluster:
        cluster.quorum_leader = 2
        cluster.overrides[DescribeClusterRequest] = with_changing_controller(cluster)
        cluster.overrides[DescribeQuorumRequest] = lambda _broker, _request: DescribeQuorumResponse(
            error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        )
        with watched(cluster) as watch:
            for _ in range(3):
                snapshot = watch.look_again()
                assert snapshot.state.cluster.controller_id not in snapshot.state.brokers
                tiles = {each.title: each for each in overview(snapshot, Samples(2), Series(2)).tiles}
                assert tiles["Controller"][1:4] == (DASH, "not reported", "")
        asked = [api_key for broker in cluster.brokers for api_key in broker.requests]
        assert asked.count(DescribeQuorumRequest.api_key) == 1  # a refusal holds for a minute


def test_a_kraft_cluster_without_a_quorum_has_a_state_and_brokers_that_answer() -> None:
    with fake_cluster() as cluster:
        cluster.quorum_leader, cluster.has_controller = 2, False
        with watched(cluster) as watch:
            for _ in range(2):
                snapshot = watch.look_again()
                assert snapshot.silent == ()
                assert not snapshot.state.cluster.knows_controller
                assert not snapshot.state.knows_reassignments
                assert snapshot.ends[TOPIC, 2] == 100


def with_changing_controller(cluster: FakeCluster) -> Callable[[FakeBroker, Any], Response]:
    """As KRaft brokers answer: any live broker."""

    def answer(broker: FakeBroker, request: Any) -> Response:
        cluster.controller_id = cluster.controller_id % 3 + 1
        return cluster.usual_answer(broker, request)

    return answer


def test_rounds_use_one_connection_to_each_broker() -> None:
    with fake_cluster() as cluster:
        cluster.serves_metrics = True
        with watched(cluster) as watch:
            for _ in range(3):
                watch.look_again()
            assert [broker.accepted for broker in cluster.brokers] == [2, 1, 1]  # one tells whether a broker runs
            for broker in cluster.brokers:
                broker.close_connections()
            assert watch.look_again().silent == ()
            assert not watch.trouble


def test_rounds_of_lags_use_one_connection_to_each_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = []

    def read_offsets() -> dict[tuple[str, int], int]:
        rounds.append(1)
        return dict.fromkeys(((TOPIC, index) for index in range(3)), 1)

    with_group(monkeypatch, read_offsets)
    with fake_cluster() as cluster, watched(cluster) as watch:
        eventually(lambda: len(rounds) >= 5)
        assert watch.group_lags.has("readers")
        # As above, and one more for each broker.
        assert [broker.accepted for broker in cluster.brokers] == [3, 2, 2]


def with_group(monkeypatch: pytest.MonkeyPatch, read_offsets: Callable[[], dict[tuple[str, int], int]]) -> None:
    """The fake cluster has one group, of which lags are read again and again."""
    monkeypatch.setattr(watching, "LAGS_S", 0.05)
    listed = [ListedGroup("readers", "Stable", "")]
    monkeypatch.setattr("odradek.admin.groups.list_groups", lambda _requests: (listed, {}))
    monkeypatch.setattr(
        "odradek.admin.groups.read_committed_offsets_of", lambda *_arguments: {"readers": read_offsets()}
    )


def test_the_list_of_groups_has_lags_after_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    watches: list[ClusterWatch] = []

    def pausing_watch(*arguments: Any) -> ClusterWatch:
        watches.append(ClusterWatch(*arguments, unwatched_s=0.3))
        return watches[-1]

    with_group(monkeypatch, lambda: {(TOPIC, 0): 58})
    monkeypatch.setattr(console_app, "ClusterWatch", pausing_watch)
    monkeypatch.setattr(pages, "list_groups", lambda _requests: ([ListedGroup("readers", "Stable", "")], {}))
    monkeypatch.setattr(groups, "count_members", lambda _cluster, _names: {"readers": 1})
    with fake_cluster(1) as cluster, running_console(cluster.client().bootstrap_servers) as address:
        (watch,) = watches
        for _ in range(2):
            assert '<td class="n">42</td>' in Visitor(address).get("/groups").text
            eventually(lambda: watch._is_paused and watch._lags_read_at_s is None)
            watch.group_lags.forget("readers")  # as after a minute


def test_the_list_of_groups_says_how_old_its_lags_are(monkeypatch: pytest.MonkeyPatch) -> None:
    with_group(monkeypatch, lambda: {(TOPIC, 0): 58})
    monkeypatch.setattr(watching, "LAGS_S", 600.0)  # one reading
    monkeypatch.setattr(pages, "list_groups", lambda _requests: ([ListedGroup("readers", "Stable", "")], {}))
    monkeypatch.setattr(groups, "count_members", lambda _cluster, _names: {"readers": 1})
    with fake_cluster(1) as cluster, running_console(cluster.client().bootstrap_servers) as address:
        page = Visitor(address).get("/groups").text
        assert '<td class="n">42</td>' in page
        assert "The lags were read" not in page
        monkeypatch.setattr(ClusterWatch, "lags_age_s", lambda _watch: 80.0)
        later = SimpleNamespace(time=lambda: time.time() + 80)
        monkeypatch.setattr("odradek.console.pages.groups.time", later)
        page = Visitor(address).get("/groups").text
        assert '<td class="n">42</td>' in page
        assert "The lags were read 1.3 min ago." in page


def test_a_page_does_not_wait_long_for_lags(monkeypatch: pytest.MonkeyPatch) -> None:
    goes_on = threading.Event()

    def read_offsets() -> dict[tuple[str, int], int]:
        goes_on.wait(60)
        return {}

    with_group(monkeypatch, read_offsets)
    monkeypatch.setattr(watching, "FIRST_LAGS_S", 0.2)
    with fake_cluster(1) as cluster, watched(cluster) as watch:
        assert not watch.wait_for_lags()
        goes_on.set()
        eventually(watch.wait_for_lags)


def test_no_page_calls_brokers_running_while_the_cluster_does_not_answer() -> None:
    with ExitStack() as opened:
        cluster = opened.enter_context(fake_cluster(1))
        with running_console(cluster.client().bootstrap_servers) as address:
            visitor = Visitor(address)
            for path in ("/", "/brokers"):
                assert ">running</span>" in visitor.get(path).source
            opened.close()
            eventually(lambda: "The cluster does not answer" in visitor.get("/").text)
            for path in ("/", "/brokers"):
                assert ">running</span>" not in visitor.get(path).source


def test_the_watch_of_a_user_makes_no_rounds_while_nobody_looks() -> None:
    with fake_cluster(1) as cluster, watched(cluster, unwatched_s=0.3) as watch:
        (broker,) = cluster.brokers
        first = watch.snapshot()
        eventually(lambda: watch._is_paused)
        asked = len(broker.requests)
        with fake_cluster(1) as other, watched(other):
            eventually(lambda: other.brokers[0].requests.count(MetadataRequest.api_key) >= 5)
        assert len(broker.requests) == asked
        assert watch._snapshot is None
        second = watch.snapshot()
        assert second.time_s > first.time_s
        assert watch.look_again().time_s > second.time_s


def test_an_open_stream_of_samples_keeps_the_watch_from_pausing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The panel of the overview is not polled while it has the focus; the charts are drawn nevertheless."""
    monkeypatch.setattr(requests, "POLL_S", 0.02)

    async def is_disconnected() -> bool:
        return False

    async def read_samples(watch: ClusterWatch, wanted: int) -> None:
        console = SimpleNamespace(
            is_stopping=False, watch=watch, update_page=lambda events: events, pause=asyncio.sleep
        )
        request: Any = SimpleNamespace(is_disconnected=is_disconnected, console=console)
        response: Any = await overview_page.stream(request)
        async with asyncio.timeout(20):
            async for _event in response.body_iterator:
                if watch.samples.count >= wanted:
                    return

    with fake_cluster(1) as cluster, watched(cluster, unwatched_s=0.5) as watch:
        asyncio.run(read_samples(watch, 15))


def test_a_pause_is_a_gap_in_the_charts_and_leaves_no_old_rate() -> None:
    with fake_cluster(1) as cluster, watched(cluster, unwatched_s=0.3) as watch:
        first = watch.snapshot()
        eventually(lambda: watch.snapshot() and watch.samples.count)
        eventually(lambda: watch._is_paused)
        *before, last = watch.samples.since(0)
        assert before[-1].values["records"] == 0.0
        assert set(columns([last], CHARTS)["records"]) == {None}
        tiles = {each.title: each.figure for each in overview(first, watch.samples, Series(2)).tiles}
        assert tiles["Records in"] == DASH


def test_a_paused_watch_stops() -> None:
    with fake_cluster(1) as cluster, watched(cluster, unwatched_s=0.0) as watch:
        eventually(lambda: watch._is_paused)
        watch.stop()
        assert not watch._threads[0].is_alive()


def test_a_watch_that_all_browsers_share_goes_on_for_its_history() -> None:
    with fake_cluster(1) as cluster, watched(cluster):
        eventually(lambda: cluster.brokers[0].requests.count(MetadataRequest.api_key) >= 10)


def test_watches_that_pause_take_no_share_of_the_processor() -> None:
    share = PollingShare()
    with fake_cluster(1) as cluster, watched(cluster, share=share), watched(cluster, share=share, unwatched_s=0.3):
        eventually(lambda: share.watches == 2)
        eventually(lambda: share.watches == 1)


def test_denied_requests_are_not_sent_again_within_a_minute() -> None:
    with fake_cluster(1) as cluster:
        denied = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        cluster.overrides[DescribeLogDirsRequest] = lambda _broker, _request: DescribeLogDirsResponse(error_code=denied)
        cluster.overrides[ListPartitionReassignmentsRequest] = lambda _broker, _request: (
            ListPartitionReassignmentsResponse(error_code=denied)
        )
        with watched(cluster) as watch:
            for _ in range(3):
                assert watch.look_again().disks.is_denied
        asked = cluster.brokers[0].requests
        assert asked.count(DescribeLogDirsRequest.api_key) == 1
        assert asked.count(ListPartitionReassignmentsRequest.api_key) == 1


def test_a_clock_that_is_set_back_does_not_stop_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    with fake_cluster(1) as cluster, watched(cluster) as watch:
        eventually(lambda: watch.samples.count >= 2)
        clock = SimpleNamespace(time=lambda: time.time() - 3600, monotonic=time.monotonic, thread_time=time.thread_time)
        monkeypatch.setattr(watching, "time", clock)
        before = watch.samples.count
        eventually(lambda: watch.samples.count >= before + 3)
        assert all(value >= 0 for sample in watch.samples.since(before) for value in sample.values.values())


def test_figures_without_a_broker_that_did_not_answer_are_marked() -> None:
    with fake_cluster() as cluster, watched(cluster) as watch:
        assert watch.snapshot().topics[TOPIC].unread_partitions == 0
        cluster.brokers[2].goes_on.clear()
        eventually(lambda: watch.snapshot().topics[TOPIC].unread_partitions == 1)


def test_settings_of_many_topics_are_asked_for_in_parts() -> None:
    """A request of more than 16,000 elements is malformed for brokers of Odradek."""
    asked: list[int] = []

    def answer(_broker: FakeBroker, request: DescribeConfigsRequest) -> Response:
        asked.append(len(request.resources))
        return DescribeConfigsResponse()

    with fake_cluster(1) as cluster:
        cluster.overrides[DescribeConfigsRequest] = answer
        MinInSync(BrokerRequests(cluster.client(), 20.0)).of(f"topic-{number}" for number in range(16_001))
    assert sum(asked) == 16_001
    assert max(asked) == 1_000
