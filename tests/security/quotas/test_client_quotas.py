"""Rates that simulated clients reach under each quota, and the memory that they take."""

import pytest

from odradek.security.quotas.client_quotas import ClientQuotas
from odradek.security.quotas.connection_rate import LONGEST_WAIT_MS, ConnectionRates
from odradek.security.quotas.measurements import MOST_MEASUREMENTS, Measurements
from odradek.security.quotas.mutation_quota import LimitedMutations
from odradek.security.quotas.precedence import QuotaEntity
from odradek.security.quotas.rate import QuotaWindow, Rate
from tests.memory import memory_of

WINDOW = QuotaWindow()
START_MS = 1_000_000
ALICE: QuotaEntity = frozenset({("user", "alice")})


def with_quota(name: str, limit: float) -> ClientQuotas:
    quotas = ClientQuotas(WINDOW, WINDOW)
    quotas.update({ALICE: {name: limit}})
    return quotas


@pytest.mark.parametrize("request_bytes", [2_000, 16_384, 1_000_000])
def test_a_producer_that_waits_reaches_its_byte_rate(request_bytes: int) -> None:
    limit = 100_000
    quotas = with_quota("producer_byte_rate", limit)
    limits = quotas.limits_of("alice", "app")
    now_ms, sent = START_MS, 0
    while now_ms < START_MS + 300_000:
        sent += request_bytes
        now_ms += 1 + quotas.record_produce(limits, request_bytes, now_ms)
    assert sent / ((now_ms - START_MS) / 1000) == pytest.approx(limit, rel=0.1)


@pytest.mark.parametrize(
    ("available_bytes", "reached"), [(2_000, 1.0), (16_384, 1.0), (200_000, 0.83), (5_000_000, 0.5)]
)
def test_a_consumer_that_fetches_again_reaches_its_byte_rate(available_bytes: int, reached: float) -> None:
    """Less if each response holds much of what the quota allows in the windows: as with Kafka, the next one then has
    to wait until the whole of an earlier one has left them."""
    limit = 100_000
    quotas = with_quota("consumer_byte_rate", limit)
    limits = quotas.limits_of("alice", "app")
    now_ms, got = START_MS, 0
    while now_ms < START_MS + 300_000:
        size_bytes = min(available_bytes, quotas.largest_fetch_bytes(limits))
        fetched = quotas.record_fetch(limits, size_bytes, 0, now_ms)
        if not fetched.is_withheld:
            got += size_bytes
        now_ms += 1 + fetched.throttle_ms
    assert got / ((now_ms - START_MS) / 1000) == pytest.approx(limit * reached, rel=0.1)


def test_a_batch_that_is_larger_than_the_quota_of_all_windows_is_served_to_an_idle_consumer() -> None:
    quotas = with_quota("consumer_byte_rate", 1_000)
    limits = quotas.limits_of("alice", "app")
    served = quotas.record_fetch(limits, 1_000_000, 0, START_MS)
    assert not served.is_withheld
    assert served.throttle_ms == pytest.approx(990_000, rel=0.01)
    assert quotas.record_fetch(limits, 1_000_000, 0, START_MS + 1_000).is_withheld


def test_a_client_that_computes_all_the_time_gets_its_percentage() -> None:
    quotas = with_quota("request_percentage", 20)
    limits = quotas.limits_of("alice", "app")
    now_ms, spent_ms = float(START_MS), 0.0
    while now_ms < START_MS + 300_000:
        now_ms += 2.5
        spent_ms += 2.5
        now_ms += quotas.record_request_time(limits, 2.5, int(now_ms))
    assert spent_ms / (now_ms - START_MS) == pytest.approx(0.2, rel=0.1)


@pytest.mark.parametrize("is_strict", [True, False])
def test_an_admin_reaches_its_rate_of_topic_changes(is_strict: bool) -> None:
    quotas = with_quota("controller_mutation_rate", 2)
    limits = quotas.limits_of("alice", "app")
    now_ms, changed = START_MS, 0
    while now_ms < START_MS + 600_000:
        found = quotas.mutation_bucket(limits, now_ms)
        assert found is not None
        moment = now_ms
        mutations = LimitedMutations(*found, lambda moment=moment: moment, is_strict=is_strict)  # type: ignore[misc]  # a default
        if mutations.allows(5):
            changed += 5
        now_ms += 1 + mutations.throttle_ms
    assert changed / 600 == pytest.approx(2, rel=0.1)


@pytest.mark.parametrize("is_strict", [True, False])
def test_changes_that_are_given_back_do_not_count(is_strict: bool) -> None:
    quotas = with_quota("controller_mutation_rate", 1)
    found = quotas.mutation_bucket(quotas.limits_of("alice", "app"), START_MS)
    assert found is not None
    mutations = LimitedMutations(*found, lambda: START_MS, is_strict=is_strict)
    before = found[0].tokens(1, START_MS)
    for _ in range(3):
        assert mutations.allows(100)
        mutations.allows(100)  # refused if the quota is strict
        assert mutations.throttle_ms > 0
        mutations.give_back()
        mutations.give_back()
        assert (found[0].tokens(1, START_MS), mutations.throttle_ms) == (before, 0)


def test_all_client_ids_of_a_user_share_the_quota_of_the_user() -> None:
    quotas = with_quota("producer_byte_rate", 1_000)
    assert quotas.record_produce(quotas.limits_of("alice", "a"), 10_000, START_MS) == 0
    assert quotas.record_produce(quotas.limits_of("alice", "b"), 10_000, START_MS) > 0
    assert quotas.record_produce(quotas.limits_of("bob", "a"), 10**9, START_MS) == 0


def test_a_changed_quota_applies_to_the_next_request_of_a_connection() -> None:
    quotas = with_quota("producer_byte_rate", 1_000)
    known = quotas.limits_of("alice", "a")
    assert quotas.limits_of("alice", "a", known) is known
    quotas.update({})
    assert not quotas.is_active
    assert quotas.limits_of("alice", "a", known).produce is None


def test_invented_client_ids_neither_take_memory_nor_escape_the_quota() -> None:
    quotas = ClientQuotas(WINDOW, WINDOW)
    quotas.update({frozenset({("client-id", None)}): {"producer_byte_rate": 1_000}})

    def produce() -> None:
        throttled = 0
        for number in range(MOST_MEASUREMENTS + 2_000):
            limits = quotas.limits_of("alice", f"{number}-" + "x" * 1_000)
            throttled += quotas.record_produce(limits, 5_000, START_MS) > 0
        assert throttled > 1_900

    assert memory_of(produce).kept_bytes < 16 << 20


def test_measurements_of_clients_that_left_make_room() -> None:
    rates: Measurements[Rate] = Measurements(lambda: Rate(WINDOW), limit=10)
    for number in range(20):
        rates.get(number, START_MS).record(1, START_MS)
    assert len(rates) == 10
    assert rates.get("late", START_MS) is rates.get("later", START_MS)
    after_ms = START_MS + WINDOW.total_ms
    assert rates.get("late", after_ms) is not rates.get("later", after_ms)
    assert len(rates) == 2


# --- connections


def test_connections_to_the_broker_come_at_the_rate_of_the_broker() -> None:
    rates = ConnectionRates(WINDOW)
    begun = []
    for number in range(1_200):
        admission = rates.admit("L", f"h{number}", START_MS, broker_limit=20, listener_limit=None)
        if not admission.is_refused:
            begun.append(admission.delay_ms)
    assert begun == sorted(begun)
    assert max(begun) >= LONGEST_WAIT_MS - 1_000
    assert 15 <= len(begun) / ((max(begun) + WINDOW.total_ms) / 1000) <= 20


def test_an_address_that_connects_too_fast_is_refused_and_others_are_not() -> None:
    rates = ConnectionRates(WINDOW)
    rates.update({frozenset({("ip", None)}): {"connection_creation_rate": 5}})
    outcomes = [rates.admit("L", "h", START_MS, broker_limit=None, listener_limit=None) for _ in range(100)]
    assert sum(not each.is_refused for each in outcomes) == 50
    assert all(0 < each.delay_ms <= WINDOW.window_ms for each in outcomes if each.is_refused)
    assert not rates.admit("L", "other", START_MS, broker_limit=None, listener_limit=None).is_refused


@pytest.mark.parametrize("connecting_ms", [0.2, 0.3, 0.5, 0.8, 1.5, 2.0, 4.0])
def test_a_client_that_connects_again_at_once_reaches_the_rate_that_it_reaches_on_kafka(connecting_ms: float) -> None:
    """Apache Kafka 4.3.0 admitted 9.62 of its connections per second in 44 s (tests/clients/test_quota_rates.py)."""
    rates = ConnectionRates(WINDOW)
    rates.update({frozenset({("ip", None)}): {"connection_creation_rate": 10}})
    now_ms, admitted = float(START_MS), 0
    while now_ms - START_MS < 44_000:
        admission = rates.admit("L", "h", int(now_ms), broker_limit=None, listener_limit=None)
        admitted += not admission.is_refused
        now_ms += connecting_ms + admission.delay_ms
    assert admitted / ((now_ms - START_MS) / 1000) == pytest.approx(9.62, rel=0.03)


def test_an_address_with_a_quota_of_its_own_is_not_subject_to_the_default() -> None:
    rates = ConnectionRates(WINDOW)
    rates.update({
        frozenset({("ip", None)}): {"connection_creation_rate": 1},
        frozenset({("ip", "10.0.0.1")}): {"connection_creation_rate": 100},
    })  # fmt: skip
    own = [rates.admit("L", "10.0.0.1", START_MS, broker_limit=None, listener_limit=None) for _ in range(500)]
    assert not any(each.is_refused for each in own)


def test_an_address_may_be_written_in_any_way() -> None:
    rates = ConnectionRates(WINDOW)
    rates.update({frozenset({("ip", "0:0:0:0:0:0:0:0001")}): {"connection_creation_rate": 1}})
    own = [rates.admit("L", "::1", START_MS, broker_limit=None, listener_limit=None) for _ in range(20)]
    assert any(each.is_refused for each in own)


def test_a_limit_of_zero_admits_one_connection_in_a_window() -> None:
    rates = ConnectionRates(WINDOW)
    first = rates.admit("L", "h", START_MS, broker_limit=0, listener_limit=None)
    assert first.delay_ms == WINDOW.window_ms
