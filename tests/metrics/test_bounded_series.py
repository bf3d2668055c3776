"""Labels get series of their own while there is room; the rest share one. No count is lost."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from odradek.metrics.bounded_series import OTHER, BoundedSeries
from odradek.metrics.topic_traffic import TopicTraffic

LARGEST = 3
LABELS = st.sampled_from(["a", "b", "c", "d", "e", OTHER])


class Count:
    def __init__(self) -> None:
        self.value = 0


class SeriesMachine(RuleBasedStateMachine):
    """Against a model: first come, first served; a forgotten label loses its count and leaves room."""

    def __init__(self) -> None:
        super().__init__()
        self.series: BoundedSeries[Count] = BoundedSeries(LARGEST, Count)
        self.model: Counter[str] = Counter()
        self.admitted: list[str] = []

    @rule(label=LABELS, amount=st.integers(1, 9))
    def count(self, label: str, amount: int) -> None:
        self.series.get(label).value += amount
        if label not in self.admitted and len(self.admitted) < LARGEST and label != OTHER:
            self.admitted.append(label)
        self.model[label if label in self.admitted else OTHER] += amount

    @rule(kept=st.sets(LABELS))
    def retain(self, kept: set[str]) -> None:
        self.series.retain(kept)
        for label in [each for each in self.admitted if each not in kept]:
            self.admitted.remove(label)
            del self.model[label]

    @invariant()
    def agrees(self) -> None:
        assert len(self.series) <= LARGEST
        found = {label: count.value for label, count in self.series.items()}
        assert found == {OTHER: 0, **self.model}
        assert list(found)[-1] == OTHER


TestSeries = SeriesMachine.TestCase


@given(st.lists(st.tuples(st.text(max_size=5), st.integers(0, 1000), st.integers(0, 1000)), max_size=60))
def test_sums_over_all_topics_are_exact(batches: list[tuple[str, int, int]]) -> None:
    traffic = TopicTraffic(LARGEST)
    for topic, size_bytes, records in batches:
        traffic.produced(topic, size_bytes, records)
        traffic.fetched(topic, size_bytes, records)
    samples = list(traffic.samples())
    totals: Counter[str] = Counter()
    for sample in samples:
        assert isinstance(sample.value, int)
        totals[sample.name] += sample.value
    assert totals["odradek_topic_bytes_in_total"] == sum(size for _, size, _ in batches)
    assert totals["odradek_topic_records_in_total"] == sum(records for _, _, records in batches)
    assert totals["odradek_topic_bytes_out_total"] == sum(size for _, size, _ in batches)
    assert totals["odradek_topic_records_out_total"] == sum(records for _, _, records in batches)
    topics = {sample.labels for sample in samples if sample.labels}
    assert len(topics) <= LARGEST + 1
    assert len(samples) == len({(sample.name, sample.labels) for sample in samples}), "a series came twice"


@given(st.sets(st.text(max_size=3), max_size=8), st.dictionaries(st.text(max_size=3), st.integers(0, 1000)))
def test_sizes_have_labels_of_topics_with_traffic_first(used: set[str], sizes: dict[str, int]) -> None:
    traffic = TopicTraffic(LARGEST)
    for topic in sorted(used):
        traffic.produced(topic, 1, 1)
    counted = {sample.labels[0] for sample in traffic.samples() if sample.labels} - {OTHER}
    found = traffic.by_label(sizes)
    assert found.total() == sum(sizes.values())
    own = found.keys() - {OTHER}
    assert own >= counted & sizes.keys()
    assert len(own) <= LARGEST
    if len(sizes) <= LARGEST:
        assert found == sizes
