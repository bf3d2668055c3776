"""A planted bug whose wrong rule nothing follows is an error of its test, whatever else the test has found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.cluster.planted_bugs import BUGS
from tests.planting import NotPlanted, Planting, planting
from tests.transactions.mutations import MUTATIONS

if TYPE_CHECKING:
    from collections.abc import Callable


class Rules:
    @property
    def is_right(self) -> bool:
        return True

    def answer(self) -> int:
        return 42


def test_a_wrong_rule_is_followed_until_the_end() -> None:
    with planting() as patch:
        patch.setattr(Rules, "is_right", property(lambda _: False))
        assert not Rules().is_right
    assert Rules().is_right


def test_a_bug_that_is_not_followed_is_an_error() -> None:
    with pytest.raises(NotPlanted), planting() as patch:
        patch.setattr(Rules, "answer", lambda _: 0)


@pytest.mark.parametrize("patches", BUGS.values(), ids=BUGS)
def test_every_bug_of_a_cluster_has_something_to_replace(patches: list[tuple[Any, str, Any]]) -> None:
    for target, name, _ in patches:
        assert hasattr(target, name)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_every_bug_of_transactions_has_something_to_replace(mutation: Callable[[Planting], None]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        mutation(Planting(patch))
