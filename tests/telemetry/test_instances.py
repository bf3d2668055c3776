"""When an instance may ask and push: a model of Kafka's ClientMetricsInstance."""

from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol.errors import ErrorCode
from odradek.telemetry.instances import ClientInstance
from odradek.telemetry.subscriptions import ClientFacts, Requested

INTERVAL_MS = 100
CLIENT = ClientFacts("app", "java", "4.3", "10.0.0.1", 4711)
ACTIONS = st.lists(st.tuples(st.sampled_from(["get", "push", "last"]), st.sampled_from([1, 60, 100, 250])), max_size=30)


def push(instance: ClientInstance, now_ms: float, *, is_last: bool = False) -> ErrorCode:
    return instance.check_push(
        now_ms, subscription_id=7, is_terminating=is_last, compression=0, size_bytes=1, most_bytes=10
    )


@given(ACTIONS)
def test_requests_are_accepted_as_kafka_accepts_them(actions: list[tuple[str, int]]) -> None:
    instance = ClientInstance(CLIENT, Requested(("a",), INTERVAL_MS, 7), 0)
    now = 1_000_000
    last_get = last_push = 0
    was_last = False
    for action, pause_ms in actions:
        now += pause_ms
        if action == "get":
            accepted = now - max(last_get, last_push) >= INTERVAL_MS
            last_get = now if accepted else last_get
            assert instance.check_get(now) == (0 if accepted else ErrorCode.THROTTLING_QUOTA_EXCEEDED)
            continue
        is_last = action == "last"
        expected = ErrorCode.INVALID_REQUEST
        if not was_last:
            accepted = last_get > last_push or now - last_push >= INTERVAL_MS
            last_push = now if accepted else last_push
            expected = ErrorCode.NONE if accepted or is_last else ErrorCode.THROTTLING_QUOTA_EXCEEDED
        was_last = is_last
        assert push(instance, now, is_last=is_last) == expected
