"""A bound on open files: those that are not in use are closed first."""

from odradek.host.open_files import ENOUGH_TRIES, OpenFiles


class Holder:
    def __init__(self) -> None:
        self.is_open = True
        self.is_used = False

    def give_back(self, *, even_if_used: bool) -> bool:
        is_used, self.is_used = self.is_used, False
        if is_used and not even_if_used:
            return False
        self.is_open = False
        return True


def test_no_more_are_open_than_allowed() -> None:
    files = OpenFiles(3)
    holders = [Holder() for _ in range(10)]
    for holder in holders:
        files.opened(holder)
        assert sum(each.is_open for each in holders[: holders.index(holder) + 1]) <= 3
    assert [each.is_open for each in holders] == [False] * 7 + [True] * 3


def test_who_uses_its_file_keeps_it() -> None:
    files = OpenFiles(3)
    busy = Holder()
    files.opened(busy)
    idle = [Holder() for _ in range(10)]
    for holder in idle:
        busy.is_used = True
        files.opened(holder)
    assert busy.is_open
    assert sum(each.is_open for each in idle) == 2


def test_when_all_are_used_the_search_ends() -> None:
    limit = 10 * ENOUGH_TRIES
    files = OpenFiles(limit)
    holders = [Holder() for _ in range(limit + 1)]
    asked = 0
    for holder in holders:
        holder.is_used = True
        files.opened(holder)
    asked = sum(not each.is_used for each in holders)
    assert asked == ENOUGH_TRIES + 1
    assert sum(each.is_open for each in holders) == limit
