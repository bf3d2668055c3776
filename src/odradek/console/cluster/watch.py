"""The threads that look at the cluster again and again. They own the present snapshot and the samples of the last hour.

The watches of a console use at most a tenth of a processor: with many partitions or many users, the rounds are further
apart (`pause_s`). The watch of a user makes no rounds while none of the user's pages is requested.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from odradek.admin.broker_requests import BrokerRequests, live
from odradek.admin.cluster_state import ControllerLookup, MinInSync, read_state
from odradek.admin.errors import AnswerTimeout, NoAnswer
from odradek.admin.log_directories import read_disks
from odradek.admin.offsets import EARLIEST, LATEST, read_offsets
from odradek.admin.wire import TIMEOUT_S, KeptConnections, SecuredAddress, Versions
from odradek.console.cluster import snapshot as snapshots
from odradek.console.cluster.groups import read_group_lags
from odradek.console.models import Sample, Samples, Series
from odradek.conventions.failures import Failure
from odradek.protocol.messages.describe_quorum import DescribeQuorumRequest
from odradek.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest

if TYPE_CHECKING:
    from odradek.admin.cluster import Cluster
    from odradek.protocol.schema import Request, Response

SHARE_OF_TIME = 10  # the watches of a console use at most one of so many parts of a processor together
LONGEST_INTERVAL_S = 60.0  # of a watch that is the only one
LONGEST_SHARED_INTERVAL_S = 300.0
OLD_AFTER = 3  # intervals
OLDEST_S = 180.0
FORWARDED = (DescribeQuorumRequest, ListPartitionReassignmentsRequest)  # to the controller

R = TypeVar("R", bound="Response")


class Round(NamedTuple):
    """`took_s` includes waiting for brokers, `used_s` is the processor time of the watch's thread."""

    took_s: float = 0.0
    used_s: float = 0.0


class Freshness(NamedTuple):
    """How old the last state is, None while there is none; why no later one was read; brokers that did not answer."""

    age_s: float | None = None
    is_old: bool = False
    trouble: str = ""
    silent: tuple[int, ...] = ()


def pause_s(last: Round, interval_s: float, watches: int = 1) -> float:
    """The time from the end of a round to the next one. A round that waits for a broker does not put the next one off;
    brokers rest as long as the round took, at most an interval."""
    return max(interval_s - last.took_s, min(last.took_s, interval_s), _share_s(last, watches))


def old_after_s(last: Round, interval_s: float, watches: int = 1) -> float:
    """The age from which on a page says how old its state is."""
    return min(OLD_AFTER * max(interval_s, _share_s(last, watches)), OLDEST_S)


def _share_s(last: Round, watches: int) -> float:
    """The pause after which a number of watches with rounds like this one have used their share."""
    longest_s = min(LONGEST_INTERVAL_S * watches, LONGEST_SHARED_INTERVAL_S)
    return min(last.used_s * SHARE_OF_TIME * watches, longest_s)


class PollingShare:
    """Counts the watches that make rounds at the same time, and so share the processor time of polling."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.watches = 0

    def join(self) -> None:
        with self._lock:
            self.watches += 1

    def leave(self) -> None:
        with self._lock:
            self.watches -= 1


class RoundCalls(KeptConnections):
    """The connections of one thread. A broker that does not answer is not asked again in the same round, unless it may
    have waited for the controller."""

    def __init__(self) -> None:
        super().__init__()
        self.silent: set[tuple[str, int]] = set()  # addresses

    def begin_round(self) -> None:
        self.silent.clear()

    def __call__(
        self, address: SecuredAddress, request: Request, response_type: type[R], version: Versions,
        timeout_s: float = TIMEOUT_S,
    ) -> R:  # fmt: skip
        host, port = address[:2]
        if (host, port) in self.silent:
            raise NoAnswer(f"no response from {host}:{port} a moment ago")
        try:
            return super().__call__(address, request, response_type, version, timeout_s)
        except NoAnswer as failure:
            if not (isinstance(failure, AnswerTimeout) and isinstance(request, FORWARDED)):
                self.silent.add((host, port))
            raise


REQUEST_TIMEOUT_S = 5.0
FIRST_SNAPSHOT_S = 10.0
SLOW_FACTS_S = 15.0  # first offsets and settings change slowly
DENIED_S = 60.0  # what the user may not know is not asked for again within this time
LAGS_S = 10.0
FIRST_LAGS_S = 5.0  # a page waits so long for them
TOPIC_SERIES = 2_000
GROUP_SERIES = 200


class ClusterWatch:
    """Started once. Readers get immutable snapshots; `look_again` after a change makes the next round immediate.

    With `unwatched_s`, the watch pauses when no page has asked for a snapshot for so long: it closes its connections
    and drops its snapshots. The next page waits for a round, as the first one does.
    """

    def __init__(
        self, cluster: Cluster, interval_s: float, *, share: PollingShare | None = None,
        unwatched_s: float | None = None,
    ) -> None:  # fmt: skip
        self.samples = Samples(interval_s)
        self.topic_rates = Series(TOPIC_SERIES)
        self.group_lags = Series(GROUP_SERIES)
        self.trouble = ""
        self._cluster = cluster
        self._interval_s = interval_s
        self._share = share or PollingShare()
        self._unwatched_s = unwatched_s
        self._looked_at = time.monotonic()
        self._is_paused = False
        self._calls = RoundCalls()
        self._requests: BrokerRequests | None = None
        self._traffic = snapshots.TrafficReader()
        self._min_in_sync: MinInSync | None = None
        self._controllers: ControllerLookup | None = None
        self._snapshot: snapshots.Snapshot | None = None
        self._sampled: snapshots.Snapshot | None = None  # the last one that is a sample; rounds after a change are none
        self._slow_read_at = self._denied_at = float("-inf")
        self._last_round = Round()
        self._is_stopped = threading.Event()
        self._is_due = threading.Event()
        self._begun = self._finished = 0  # rounds
        self._lags_read_at_s: float | None = None  # since the last pause
        self._has_round = threading.Condition()
        self._threads = (
            threading.Thread(target=self._run, name="cluster-watch", daemon=True),
            threading.Thread(target=self._run_lags, name="lag-watch", daemon=True),
        )

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self, *, wait: bool = True) -> None:
        self._is_stopped.set()
        self._is_due.set()
        with self._has_round:
            self._has_round.notify_all()
        if wait:
            self._threads[0].join(REQUEST_TIMEOUT_S)

    @property
    def latest(self) -> snapshots.Snapshot | None:
        """The last snapshot, without waiting; None before the first round, and after a pause."""
        self.note_look()
        return self._snapshot

    def snapshot(self) -> snapshots.Snapshot:
        """The last snapshot; waits for the first one. Failure while the cluster has never answered."""
        self.note_look()
        with self._has_round:
            self._has_round.wait_for(lambda: self._snapshot is not None or bool(self.trouble), FIRST_SNAPSHOT_S)
        if self._snapshot is None:
            raise Failure(self.trouble or "the cluster has not answered; is the address that of a Kafka listener?")
        return self._snapshot

    def wait_for_lags(self) -> bool:
        """Waits until the lags of groups were read since the last pause. False if they were not read in time."""
        self.note_look()
        with self._has_round:
            self._has_round.wait_for(lambda: self._lags_read_at_s is not None or bool(self.trouble), FIRST_LAGS_S)
            return self._lags_read_at_s is not None

    def lags_age_s(self) -> float:
        """The time since the lags of groups were read last; 0 if they were not read since the last pause."""
        read_at_s = self._lags_read_at_s
        return 0.0 if read_at_s is None else time.monotonic() - read_at_s

    def freshness(self) -> Freshness:
        """How old the last snapshot is, and why."""
        snapshot = self._snapshot
        if snapshot is None:
            return Freshness()
        age_s = time.monotonic() - snapshot.monotonic_s
        is_old = age_s > old_after_s(self._last_round, self._interval_s, self._share.watches)
        return Freshness(age_s, is_old, self.trouble, snapshot.silent)

    def look_again(self) -> snapshots.Snapshot:
        """A snapshot of a round that begins after this call: it shows a change that the caller has made."""
        with self._has_round:
            wanted = self._begun + 1
            self._looked_at = time.monotonic()
            self._is_due.set()
            self._has_round.wait_for(lambda: self._finished >= wanted, FIRST_SNAPSHOT_S)
        return self.snapshot()

    def note_look(self) -> None:
        """Call it while a page is open, so that the watch goes on, or resumes."""
        with self._has_round:
            self._looked_at = time.monotonic()
            if self._is_paused:
                self._is_due.set()

    def _run(self) -> None:
        self._share.join()
        while not self._is_stopped.is_set():
            self._make_round()
            self._is_due.wait(pause_s(self._last_round, self._interval_s, self._share.watches))
            self._pause_while_unwatched()
        self._share.leave()
        self._calls.close()

    def _pause_while_unwatched(self) -> None:
        with self._has_round:
            if self._unwatched_s is None or time.monotonic() - self._looked_at < self._unwatched_s:
                return
            self._is_due.clear()
            if self._is_stopped.is_set():
                return
            self.samples.add(Sample(time.time(), {}))  # a gap in the charts, and no present rate
            self._is_paused = True
            self._snapshot = self._sampled = None
            self.trouble = ""
        self._calls.close()
        self._share.leave()
        self._is_due.wait()
        self._share.join()
        self._is_paused = False

    def _make_round(self) -> None:
        with self._has_round:
            self._begun += 1
            self._is_due.clear()
        began_at, used_at = time.monotonic(), time.thread_time()
        self._calls.begin_round()
        try:
            self._look()
            trouble = ""
        except Failure as failure:
            trouble = failure.message
        except Exception as error:
            trouble = f"reading the cluster failed: {type(error).__name__}: {error}"
        with self._has_round:
            self.trouble = trouble
            self._finished = self._begun
            self._has_round.notify_all()
        self._last_round = Round(time.monotonic() - began_at, time.thread_time() - used_at)

    def _look(self) -> None:
        if self._requests is None:
            self._cluster.check_reachable()
            self._requests = BrokerRequests(self._cluster, REQUEST_TIMEOUT_S, self._calls)
            self._min_in_sync = MinInSync(self._requests)
            self._controllers = ControllerLookup(self._requests)
        before = self._snapshot
        now = time.monotonic()
        is_slow_due = now - self._slow_read_at > SLOW_FACTS_S or before is None
        if is_slow_due and self._min_in_sync is not None:
            self._min_in_sync.forget()
            self._slow_read_at = now
        is_denied = before is not None and before.disks.is_denied and now - self._denied_at < DENIED_S
        denied = before.disks if before is not None and is_denied else None
        state = read_state(
            self._requests, self._min_in_sync, self._controllers,
            may_lack_reassignments=True, asks_reassignments=denied is None,
        )  # fmt: skip
        time_s, monotonic_s = time.time(), time.monotonic()
        ends = read_offsets(self._requests, state, LATEST)
        if before is None or is_slow_due or len(before.starts) != len(ends):
            starts: Mapping[snapshots.Key, int] = read_offsets(self._requests, state, EARLIEST)
        else:
            starts = before.starts
        disks = denied or read_disks(self._requests, state)
        if disks.is_denied and denied is None:
            self._denied_at = now
        since = self._sampled
        is_sample = since is not None and monotonic_s - since.monotonic_s >= self._interval_s / 2
        if since is not None and is_sample:
            rates = snapshots.rates_by_topic(since.ends, ends, monotonic_s - since.monotonic_s)
        else:
            rates = {} if before is None else {name: topic.records_per_s for name, topic in before.topics.items()}
        traffic = self._traffic.read(self._requests, state)
        if since is not None and is_sample:
            loads: Mapping[int, snapshots.BrokerLoad] = snapshots.loads_between(since.traffic, traffic)
        else:
            loads = snapshots.loads_between({}, traffic) if before is None else before.loads
        topics = snapshots.summarize(state, starts, ends, disks, rates)
        silent = tuple(each.broker_id for each in live(state.brokers) if each.address in self._calls.silent)
        health = snapshots.examine(state)
        snapshot = snapshots.Snapshot(
            time_s, state, health, starts, ends, disks, topics, traffic, loads, silent, monotonic_s
        )
        self._snapshot = snapshot
        if since is None or is_sample:
            self._sampled = snapshot
        if since is not None and is_sample:
            self._record(since, snapshot, rates)

    def _run_lags(self) -> None:
        """Lags have their own thread and connections: a coordinator that is down delays the answer for seconds."""
        calls = RoundCalls()
        while not self._is_stopped.is_set():
            snapshot = self._snapshot
            if snapshot is None:
                calls.close()
                with self._has_round:
                    self._lags_read_at_s = None
                    self._has_round.wait_for(lambda: self._snapshot or self._is_stopped.is_set(), LAGS_S)
                continue
            calls.begin_round()
            began_at, used_at = time.monotonic(), time.thread_time()
            lags: dict[str, int] = {}
            with contextlib.suppress(Exception):  # the next round tries again
                requests = BrokerRequests(self._cluster, REQUEST_TIMEOUT_S, calls)
                lags = read_group_lags(requests, snapshot.state, GROUP_SERIES)
            read_at_s = time.monotonic()
            for group, lag in lags.items():
                self.group_lags.add(group, time.time(), lag)
            with self._has_round:
                self._lags_read_at_s = read_at_s
                self._has_round.notify_all()
            last = Round(time.monotonic() - began_at, time.thread_time() - used_at)
            self._is_stopped.wait(pause_s(last, LAGS_S, self._share.watches))
        calls.close()

    def _record(self, before: snapshots.Snapshot, snapshot: snapshots.Snapshot, rates: dict[str, float]) -> None:
        self.samples.add(Sample(snapshot.time_s, snapshots.sample_values(before, snapshot)))
        for name in [*self.topic_rates]:
            if name not in snapshot.topics:
                self.topic_rates.forget(name)
            elif name not in rates:
                self.topic_rates.add(name, snapshot.time_s, 0.0)
        for name, rate in rates.items():
            self.topic_rates.add(name, snapshot.time_s, rate)
