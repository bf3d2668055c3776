"""The rules of moving a log, against a model: a copy that follows any appends, truncations and deletions."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from odradek.replica.moves.rules import (
    CatchUp,
    LogEnd,
    OffsetRange,
    StepKind,
    keeps_moved_copy,
    must_restart,
    next_step,
)


class Model:
    """Logs as records by offset. A record that is written after a truncation differs from the one that it replaces."""

    def __init__(self) -> None:
        self.log: dict[int, int] = {}
        self.copy: dict[int, int] = {}
        self.log_range = self.copy_range = OffsetRange(0, 0)
        self.truncated_to: int | None = None
        self.written = 0

    def append(self) -> None:
        start, end = self.log_range
        self.written += 1
        self.log[end] = self.written
        self.log_range = OffsetRange(start, end + 1)

    def truncate(self, offset: int) -> None:
        offset = min(max(offset, self.log_range.start_offset), self.log_range.end_offset)
        self.truncated_to = offset if self.truncated_to is None else min(self.truncated_to, offset)
        self.log = {each: value for each, value in self.log.items() if each < offset}
        self.log_range = OffsetRange(self.log_range.start_offset, offset)

    def delete(self, offset: int) -> None:
        offset = min(max(offset, self.log_range.start_offset), self.log_range.end_offset)
        self.log = {each: value for each, value in self.log.items() if each >= offset}
        self.log_range = OffsetRange(offset, self.log_range.end_offset)

    def step(self) -> StepKind:
        step = next_step(self.copy_range, self.log_range, self.truncated_to)
        self.truncated_to = None
        start, end = self.copy_range
        if step.kind is StepKind.TRUNCATE:
            self.copy = {each: value for each, value in self.copy.items() if each < step.offset}
            self.copy_range = OffsetRange(min(start, step.offset), step.offset)
        elif step.kind is StepKind.RESTART or (
            step.kind is StepKind.COPY and must_restart(self.copy_range, self.log_range, step.offset)
        ):
            self.copy, self.copy_range = {}, OffsetRange(step.offset, step.offset)
        elif step.kind is StepKind.COPY:
            self.copy[step.offset] = self.log[step.offset]
            self.copy_range = OffsetRange(start, step.offset + 1)
        elif step.kind is StepKind.ADVANCE_START:
            self.copy = {each: value for each, value in self.copy.items() if each >= step.offset}
            self.copy_range = OffsetRange(step.offset, end)
        return step.kind


ACTIONS = st.lists(
    st.one_of(
        st.just(("append", 0)),
        st.just(("step", 0)),
        st.tuples(st.sampled_from(["truncate", "delete"]), st.integers(0, 12)),
    ),
    max_size=60,
)


@given(ACTIONS)
def test_a_copy_that_is_exchanged_is_the_log(actions: Sequence[tuple[str, int]]) -> None:
    model = Model()
    for name, offset in actions:
        if name == "append":
            model.append()
        elif name == "step":
            if model.step() is StepKind.EXCHANGE:
                assert (model.copy, model.copy_range) == (model.log, model.log_range)
        else:
            getattr(model, name)(offset)
    for _ in range(100):
        if model.step() is StepKind.EXCHANGE:
            break
    assert (model.copy, model.copy_range) == (model.log, model.log_range)


def test_a_moved_copy_that_lost_records_is_not_kept() -> None:
    original = LogEnd(3, 10)
    assert keeps_moved_copy(LogEnd(3, 10), original)
    assert keeps_moved_copy(LogEnd(3, 11), original)
    assert not keeps_moved_copy(LogEnd(3, 9), original)


def test_a_moved_copy_that_followed_another_leader_is_kept() -> None:
    assert keeps_moved_copy(LogEnd(4, 9), LogEnd(3, 10))
    assert not keeps_moved_copy(LogEnd(2, 9), LogEnd(3, 10))


def test_a_copy_that_gets_closer_in_each_round_does_not_fall_behind() -> None:
    """The log grows by half of what is copied."""
    catch_up, copy_end, log_end, chunk = CatchUp(), 0, 1000, 10
    while not catch_up.is_near:
        before, copy_end = log_end, copy_end + min(chunk, log_end - copy_end)
        log_end += chunk // 2
        catch_up.note_chunk(copy_end, before, log_end)
        assert not catch_up.falls_behind
    assert copy_end < 2100


def test_a_copy_of_a_log_that_grows_as_fast_falls_behind() -> None:
    catch_up, copy_end, log_end, chunk = CatchUp(), 0, 1000, 10
    while not catch_up.falls_behind:
        before, copy_end, log_end = log_end, copy_end + chunk, log_end + chunk
        catch_up.note_chunk(copy_end, before, log_end)
        assert copy_end <= 2100
    assert not catch_up.is_near
