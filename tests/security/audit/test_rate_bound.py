"""The audit log takes a bounded number of lines, and counts the others."""

from odradek.security.audit.rate_bound import RateBound


def test_a_second_worth_of_lines_may_come_at_once() -> None:
    bound = RateBound(10, 0)
    assert [bound.take(0) for _ in range(12)] == [True] * 10 + [False] * 2
    assert bound.take_left_out() == 2
    assert bound.take_left_out() == 0


def test_lines_may_come_again_as_time_passes() -> None:
    bound = RateBound(10, 0)
    for _ in range(10):
        bound.take(0)
    assert not bound.take(99)
    assert bound.take(201)
    assert sum(bound.take(100_000) for _ in range(100)) == 10
