"""Series by label, of which there are at most a fixed number; all further labels share one series, `other`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

T = TypeVar("T")
OTHER = "other"


class BoundedSeries(Generic[T]):
    """A label gets a series of its own when it is first used, while there is room. `OTHER` is the name of the shared
    series; a label that has this name itself shares it."""

    __slots__ = ("_largest", "_make", "by_label", "other")

    def __init__(self, largest: int, make: Callable[[], T]) -> None:
        self._largest = largest
        self._make = make
        self.by_label: dict[str, T] = {}
        """The series that exist, for look-ups without a call."""
        self.other = make()

    @property
    def largest(self) -> int:
        """The largest number of labels with a series of their own."""
        return self._largest

    def __len__(self) -> int:
        return len(self.by_label)

    def __contains__(self, label: str) -> bool:
        return label in self.by_label

    def get(self, label: str) -> T:
        series = self.by_label.get(label)
        return self._admit(label) if series is None else series

    def _admit(self, label: str) -> T:
        if len(self.by_label) >= self._largest or label == OTHER:
            return self.other
        series = self.by_label[label] = self._make()
        return series

    def retain(self, labels: Collection[str]) -> None:
        """Forgets the series of all other labels, so that new ones find room."""
        for label in [each for each in self.by_label if each not in labels]:
            del self.by_label[label]

    def items(self) -> Iterator[tuple[str, T]]:
        yield from self.by_label.items()
        yield OTHER, self.other
