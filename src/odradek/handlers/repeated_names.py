"""Answers to a request that names the same thing several times.

Kafka answers each time, so that a request of 1 MB can ask for gigabytes. Here a thing is described once for each
request, and its description is used again. All descriptions after the first of each name take `MOST_REPEATED_BYTES`
at most; a name that is repeated beyond that is answered with INVALID_REQUEST. No known client repeats names.
A request that is handled in parts (`turns`) has one `Repetitions` for all of them, in its context.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from odradek.protocol.schema import Struct

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

    from odradek.handlers.context import RequestContext

Name = TypeVar("Name", bound="Hashable")
Answer = TypeVar("Answer")

MOST_REPEATED_BYTES = 1 << 20
TOO_OFTEN = "The request names it too often."
_FIXED_SIZE_BYTES = 8


def repetitions_of(context: RequestContext) -> Repetitions:
    if context.repetitions is None:
        context.repetitions = Repetitions()
    return context.repetitions


class Repetitions:
    """The answers to the names of one request, and the bytes that it may get for names which it repeats."""

    __slots__ = ("_answers", "_left_bytes", "_refused", "_sizes", "described_bytes")

    def __init__(self) -> None:
        self._left_bytes = MOST_REPEATED_BYTES
        self._answers: dict[Any, Any] = {}
        self._refused: dict[Any, Any] = {}
        self._sizes: dict[Any, int] = {}
        self.described_bytes = 0  # of new names, for a handler that bounds them

    def new_names(self, names: Iterable[Name]) -> list[Name]:
        """The names that have no answer, in the order in which they first come."""
        return [name for name in dict.fromkeys(names) if name not in self._answers]

    def answer_each(
        self, names: Sequence[Name], new_answers: Iterable[Answer], refuse: Callable[[Name], Answer]
    ) -> list[Answer]:
        """One answer for each name. `new_answers` are those of `new_names`."""
        new = dict(zip(self.new_names(names), new_answers, strict=True))
        self._answers.update(new)
        if len(new) == len(names):
            return list(new.values())
        each: list[Answer] = []
        for name in names:
            answer: Answer = self._answers[name]
            if name in new:
                del new[name]
            elif not self._allow(name, answer):
                answer = self._refused.get(name) or self._refused.setdefault(name, refuse(name))
            each.append(answer)
        return each

    def known_answer(self, name: Hashable) -> Any:
        return self._answers.get(name)

    def accept(self, name: Hashable, answer: object) -> bool:
        """Whether a name may be answered with this: it is new, or there are bytes left for it."""
        if name in self._answers:
            return self._allow(name, answer)
        self._answers[name] = answer
        return True

    def _allow(self, name: Hashable, answer: object) -> bool:
        size_bytes = self._sizes.get(name)
        if size_bytes is None:
            size_bytes = self._sizes[name] = approximate_size_bytes(answer)
        if size_bytes > self._left_bytes:
            return False
        self._left_bytes -= size_bytes
        return True


def approximate_size_bytes(value: Any) -> int:
    """The size of a value of a message when it is encoded, as far as it does not depend on the version."""
    if isinstance(value, Struct):
        return sum(approximate_size_bytes(getattr(value, field.name)) for field in type(value).fields)
    if isinstance(value, list):
        return _FIXED_SIZE_BYTES + sum(approximate_size_bytes(each) for each in value)
    if isinstance(value, str | bytes):
        return _FIXED_SIZE_BYTES + len(value)
    return _FIXED_SIZE_BYTES
