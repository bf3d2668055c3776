"""Requests by API: counts, times by stage, errors with a bounded number of codes."""

from hypothesis import given
from hypothesis import strategies as st

from odradek.metrics.request_metrics import LARGEST_ERROR_SETS, OTHER_ERRORS, ApiMetrics, RequestMetrics
from odradek.metrics.samples import HistogramValue, Sample

MS = st.integers(0, 60_000).map(float)


def values(samples: list[Sample]) -> dict[tuple[str, tuple[str, ...]], float]:
    return {(each.name, each.labels): each.value for each in samples if not isinstance(each.value, HistogramValue)}


@given(st.lists(st.tuples(MS, MS, st.dictionaries(st.sampled_from(["log", "wait", "replication"]), MS))))
def test_stages_add_up_to_the_total(requests: list[tuple[float, float, dict[str, float]]]) -> None:
    metrics = ApiMetrics("Produce")
    for queue_ms, handler_ms, waits in requests:
        if waits:
            metrics.answered_later(queue_ms, handler_ms, waits)
        else:
            metrics.answered(queue_ms, handler_ms)
    samples = list(metrics.samples())
    if not requests:
        assert samples == []
        return
    found = values(samples)
    assert found["odradek_requests_total", ("Produce",)] == len(requests)
    (total,) = (each.value for each in samples if isinstance(each.value, HistogramValue))
    assert isinstance(total, HistogramValue)
    assert sum(total.counts) == len(requests)
    stages = [value for (name, _), value in found.items() if name == "odradek_request_stage_seconds_total"]
    assert abs(total.sum - sum(stages)) < 1e-6
    expected = sum(queue + handler + sum(waits.values()) for queue, handler, waits in requests) / 1000
    assert abs(total.sum - expected) < 1e-6


def test_throttling_is_a_stage_of_its_own_and_not_part_of_the_total() -> None:
    metrics = ApiMetrics("Produce")
    metrics.answered(0.0, 1.0)
    metrics.throttled(500)
    found = values(list(metrics.samples()))
    assert found["odradek_request_stage_seconds_total", ("Produce", "throttle")] == 0.5
    assert found["odradek_throttled_requests_total", ("Produce",)] == 1


def test_error_codes_are_bounded() -> None:
    metrics = ApiMetrics("Fetch")
    for number in range(LARGEST_ERROR_SETS + 10):
        metrics.failed(f"E{number}")
    metrics.failed("E0")
    assert len(metrics.errors) == LARGEST_ERROR_SETS + 1
    assert metrics.errors["E0"] == 2
    assert metrics.errors[OTHER_ERRORS] == 10


def test_an_api_has_one_set_of_metrics() -> None:
    requests = RequestMetrics()
    assert requests.of("Fetch") is requests.of("Fetch")
    assert list(requests.samples()) == []
