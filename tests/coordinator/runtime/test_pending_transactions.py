"""Records of open transactions, compared with a model that looks at every record."""

from hypothesis import given
from hypothesis import strategies as st

from odradek.coordinator.runtime.pending_transactions import PendingTransactions

PRODUCERS = st.integers(0, 3)
KEYS = st.sampled_from([b"a", b"b", b"c"])
OPERATIONS = st.one_of(
    st.tuples(st.just("add"), PRODUCERS, KEYS),
    st.tuples(st.just("overwrite"), PRODUCERS, KEYS),
    st.tuples(st.just("abort"), PRODUCERS, KEYS),
    st.tuples(st.just("commit"), PRODUCERS, KEYS),
)


class Model:
    """All pending records in the order in which they were appended: producer, key and value."""

    def __init__(self) -> None:
        self.records: list[tuple[int, bytes, bytes]] = []

    def add(self, producer_id: int, key: bytes, value: bytes) -> None:
        self.records = [each for each in self.records if each[:2] != (producer_id, key)]
        self.records.append((producer_id, key, value))

    def overwrite(self, key: bytes) -> None:
        self.records = [each for each in self.records if each[1] != key]

    def abort(self, producer_id: int) -> None:
        self.records = [each for each in self.records if each[0] != producer_id]

    def commit(self, producer_id: int) -> dict[bytes, bytes]:
        committed = {key: value for producer, key, value in self.records if producer == producer_id}
        last = {key: place for place, (producer, key, _) in enumerate(self.records) if producer == producer_id}
        self.records = [each for place, each in enumerate(self.records) if place > last.get(each[1], -1)]
        self.abort(producer_id)
        return committed


@given(st.lists(OPERATIONS, max_size=40))
def test_pending_records_are_those_of_the_model(operations: list[tuple[str, int, bytes]]) -> None:
    pending, model = PendingTransactions(), Model()
    for number, (operation, producer_id, key) in enumerate(operations):
        value = b"%d" % number
        match operation:
            case "add":
                pending.add(producer_id, [(key, value)])
                model.add(producer_id, key, value)
            case "overwrite":
                pending.overwrite([key])
                model.overwrite(key)
            case "abort":
                pending.abort(producer_id)
                model.abort(producer_id)
            case _:
                assert dict(pending.commit(producer_id)) == model.commit(producer_id)
        assert set(pending.all_keys()) == {each for _, each, _ in model.records}
        assert all(pending.has(each) == any(key == each for _, key, _ in model.records) for each in (b"a", b"b", b"c"))
