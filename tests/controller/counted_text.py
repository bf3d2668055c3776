"""Text that counts its comparisons, so that a test states how much work a decision does and not how long it takes."""

from __future__ import annotations

from collections.abc import Iterable


class CountedText(str):
    """A string whose comparisons, and those of its parts, are counted. A look-up by hash compares almost nothing."""

    __slots__ = ("_counter",)
    _counter: list[int]

    @classmethod
    def of(cls, texts: Iterable[str]) -> tuple[list[CountedText], list[int]]:
        """The texts, and a list with the number of their comparisons."""
        counter = [0]
        return [cls._new(text, counter) for text in texts], counter

    @classmethod
    def _new(cls, text: str, counter: list[int]) -> CountedText:
        made = cls(text)
        made._counter = counter
        return made

    def __eq__(self, other: object) -> bool:
        self._counter[0] += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__

    def split(self, *arguments: object) -> list[str]:
        return [self._new(part, self._counter) for part in str.split(self, *arguments)]  # type: ignore[arg-type]  # those of str.split
