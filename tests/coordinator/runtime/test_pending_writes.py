"""Which writes of a turn are the first, and what is collected. How a shard uses it is in `test_shard`."""

from collections.abc import Callable

from odradek.coordinator.runtime.pending_writes import HasPendingWrites, PendingWrite, PendingWrites, TurnOfWrites
from tests.coordinator.runtime.counter import record


class CountingShard:
    def __init__(self) -> None:
        self.appends = 0

    def append_pending(self) -> None:
        self.appends += 1


def test_each_shard_has_a_first_write_in_each_turn_and_one_callback_ends_the_turn() -> None:
    ends: list[Callable[[], None]] = []
    turn = TurnOfWrites(ends.append)
    one, other = CountingShard(), CountingShard()
    assert [turn.is_first(shard) for shard in (one, one, other, one)] == [True, False, True, False]
    (end,) = ends
    end()
    assert (one.appends, other.appends) == (1, 1)
    assert turn.is_first(one)
    assert len(ends) == 2


def test_a_shard_that_raises_leaves_the_others_of_the_turn_to_append() -> None:
    class FailingShard:
        def append_pending(self) -> None:
            raise ValueError("a defect")

    turn = TurnOfWrites(lambda _: None)
    shards = [CountingShard() for _ in range(10)]
    together: list[HasPendingWrites] = [*shards[:5], FailingShard(), *shards[5:]]
    for shard in together:
        turn.is_first(shard)
    turn.end()
    assert [shard.appends for shard in shards] == [1] * 10


def test_deferred_work_follows_the_writes_of_its_turn() -> None:
    ends: list[Callable[[], None]] = []
    turn = TurnOfWrites(ends.append)
    happened: list[str] = []

    class Shard:
        def append_pending(self) -> None:
            happened.append("append")
            turn.defer(lambda: happened.append("deferred by the append"))

    def fail() -> None:
        raise ValueError("a defect")

    turn.defer(lambda: happened.append("deferred"))
    turn.defer(fail)
    assert turn.is_first(Shard())
    ends.pop()()
    assert happened == ["append", "deferred", "deferred by the append"]


def test_a_write_in_the_end_of_a_turn_begins_a_turn_that_ends() -> None:
    ends: list[Callable[[], None]] = []
    turn = TurnOfWrites(ends.append)
    later = CountingShard()

    class Shard:
        def append_pending(self) -> None:
            assert turn.is_first(later)

    turn.defer(lambda: None)
    assert turn.is_first(Shard())
    while ends:
        ends.pop()()
    assert later.appends == 1


def test_writes_are_taken_once_in_their_order() -> None:
    pending = PendingWrites()
    writes = [PendingWrite([record("a", value)], lambda: None, lambda _: None) for value in range(3)]
    for write in writes:
        assert pending.has_room(10, 30)
        pending.add(write, 10)
    assert not pending.has_room(1, 30)
    assert pending.take() == writes
    assert not pending.take()
    assert pending.has_room(30, 30)
