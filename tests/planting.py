"""Planted bugs: wrong rules that take the place of right ones while a test looks for what they break."""

from __future__ import annotations

import functools
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class NotPlanted(Exception):
    """No wrong rule was followed: what was found, or not found, says nothing about the bug."""


class Planting:
    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._patch = patch
        self.is_followed = False

    def setattr(self, target: object, name: str, wrong: Any, *, raising: bool = True) -> None:
        """Replace a function, method or property until the test ends. AttributeError if the target has none of that
        name, unless `raising` is False."""
        if isinstance(wrong, property):
            assert wrong.fget is not None
            counted: Any = property(self._counted(wrong.fget))
        else:
            counted = self._counted(wrong)
        self._patch.setattr(target, name, counted, raising=raising)

    def _counted(self, wrong: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(wrong)
        def follow(*args: Any, **options: Any) -> Any:
            self.is_followed = True
            return wrong(*args, **options)

        return follow


@contextmanager
def planting() -> Iterator[Planting]:
    with pytest.MonkeyPatch.context() as patch:
        planted = Planting(patch)
        yield planted
    if not planted.is_followed:
        raise NotPlanted("no code has called the wrong rule: the right one is elsewhere")
