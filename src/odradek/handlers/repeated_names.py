"""Answers to a request that names the same thing several times.

Kafka answers each time, so that a request of 1 MB can ask for gigabytes. Here a thing is described once for each
request, and its description is used again. All descriptions after the first of each name take `MOST_REPEATED_BYTES`
at most; a name that is repeated beyond that is answered with INVALID_REQUEST. No known client repeats names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from odradek.handlers.cooperative_scheduling import answer_in_turns
from odradek.protocol.schema import Struct

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence

Name = TypeVar("Name", bound="Hashable")
Answer = TypeVar("Answer")
R = TypeVar("R")

MOST_REPEATED_BYTES = 1 << 20
TOO_OFTEN = "The request names it too often."
_FIXED_SIZE_BYTES = 8


class Repetitions:
    """The bytes that one request may get for names which it repeats."""

    __slots__ = ("_left_bytes", "_sizes")

    def __init__(self) -> None:
        self._left_bytes = MOST_REPEATED_BYTES
        self._sizes: dict[Hashable, int] = {}

    def allow(self, name: Hashable, answer: object) -> bool:
        """Whether the answer to this name may be given once more; it is measured once."""
        size_bytes = self._sizes.get(name)
        if size_bytes is None:
            size_bytes = self._sizes[name] = approximate_size_bytes(answer)
        if size_bytes > self._left_bytes:
            return False
        self._left_bytes -= size_bytes
        return True


def answer_names(
    names: Sequence[Name],
    answer: Callable[[Name], Answer | Awaitable[Answer]],
    refuse: Callable[[Name], Answer],
    combine: Callable[[list[Answer]], R],
) -> R | Awaitable[R]:
    """One response out of an answer for each name, in turns. A name that is repeated too often is refused."""
    return answer_in_turns(distinct(names), answer, lambda answers: combine(answer_each(names, answers, refuse)))


def answer_each(names: Sequence[Name], answers: Iterable[Answer], refuse: Callable[[Name], Answer]) -> list[Answer]:
    """One answer for each name, out of those of the distinct names (`distinct`)."""
    by_name = dict(zip(distinct(names), answers, strict=True))
    if len(by_name) == len(names):
        return list(by_name.values())
    repetitions = Repetitions()
    refused: dict[Name, Answer] = {}
    answered: set[Name] = set()
    each = []
    for name in names:
        answer = by_name[name]
        if name not in answered:
            answered.add(name)
        elif not repetitions.allow(name, answer):
            answer = refused.get(name) or refused.setdefault(name, refuse(name))
        each.append(answer)
    return each


def distinct(names: Iterable[Name]) -> Mapping[Name, None]:
    """The names in the order in which they first come."""
    return dict.fromkeys(names)


def approximate_size_bytes(value: Any) -> int:
    """The size of a value of a message when it is encoded, as far as it does not depend on the version."""
    if isinstance(value, Struct):
        return sum(approximate_size_bytes(getattr(value, field.name)) for field in type(value).fields)
    if isinstance(value, list):
        return _FIXED_SIZE_BYTES + sum(approximate_size_bytes(each) for each in value)
    if isinstance(value, str | bytes):
        return _FIXED_SIZE_BYTES + len(value)
    return _FIXED_SIZE_BYTES
