"""What is exposed is what an independent parser of the Prometheus format reads."""

import math

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from odradek.metrics.exposition import expose, number_text
from odradek.metrics.histogram import Histogram
from odradek.metrics.registry import MetricsRegistry
from odradek.metrics.samples import Definition, Kind, Sample

TEXT = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\x00\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029")
)
LABEL = TEXT | st.sampled_from(["\\", '"', "\n", '\\"', "\\n", "a,b", "{}", "x=y", " "])
CATALOG = {
    "things_total": Definition("things_total", Kind.COUNTER, ("first", "second"), 'help with \\ and "quotes"'),
    "level": Definition("level", Kind.GAUGE, (), "a level"),
    "time_seconds": Definition("time_seconds", Kind.HISTOGRAM, ("first",), "a time"),
}


def parse(text: str) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    found: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            series = found.setdefault(sample.name, {})
            key = tuple(sorted(sample.labels.items()))
            assert key not in series, "a series came twice"
            series[key] = sample.value
    return found


@given(
    counts=st.dictionaries(st.tuples(LABEL, LABEL), st.integers(0, 2**52), max_size=5),
    level=st.floats(allow_nan=False),
    times=st.lists(st.floats(0, 100), max_size=10),
)
def test_an_independent_parser_reads_the_same(
    counts: dict[tuple[str, str], int], level: float, times: list[float]
) -> None:
    registry = MetricsRegistry(CATALOG)
    histogram = Histogram((0.5, 1.0, 10.0))
    for time in times:
        histogram.observe(time)
    registry.add(lambda: [Sample("things_total", labels, count) for labels, count in counts.items()])
    registry.add(lambda: [Sample("level", (), level), Sample("time_seconds", ("x",), histogram.value())])
    found = parse(expose(registry.collect()))
    assert found.get("things_total", {}) == {
        (("first", first), ("second", second)): count for (first, second), count in counts.items()
    }
    assert found["level"] == {(): level}
    assert found["time_seconds_count"] == {(("first", "x"),): len(times)}
    assert found["time_seconds_bucket"][("first", "x"), ("le", "+Inf")] == len(times)
    assert found["time_seconds_bucket"][("first", "x"), ("le", "0.5")] == sum(time <= 0.5 for time in times)


def test_numbers() -> None:
    assert [number_text(value) for value in (0, 1, True, 2**60, 0.1, 3.0, 1e300, math.inf, -math.inf, math.nan)] == [
        "0", "1", "1", str(2**60), "0.1", "3", "1e+300", "+Inf", "-Inf", "NaN",
    ]  # fmt: skip


def test_prefixes_choose_metrics_and_the_catalog_their_order() -> None:
    registry = MetricsRegistry(CATALOG)
    registry.add(lambda: [Sample("level", (), 1), Sample("things_total", ("a", "b"), 1)])
    assert [family.definition.name for family in registry.collect()] == ["things_total", "level"]
    assert [family.definition.name for family in registry.collect(["le", "x"])] == ["level"]
    assert registry.collect(["x"]) == []
