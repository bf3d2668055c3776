"""One page of a long list. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

T = TypeVar("T")
PAGE_ROWS = 50


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    rows: Sequence[T]
    number: int  # the first page is 1
    pages: int
    total: int

    @property
    def first(self) -> int:
        return (self.number - 1) * PAGE_ROWS + 1 if self.rows else 0

    @property
    def last(self) -> int:
        return self.first + len(self.rows) - 1 if self.rows else 0


def page_of(rows: Sequence[T], number: int) -> Page[T]:
    """The page with this number, or the nearest that exists."""
    pages = max(1, -(-len(rows) // PAGE_ROWS))
    number = min(max(number, 1), pages)
    return Page(rows[(number - 1) * PAGE_ROWS : number * PAGE_ROWS], number, pages, len(rows))
