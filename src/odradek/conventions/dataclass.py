"""`dataclass` whose methods are not compiled when the class is declared.

The library's compiles six methods of each class, 0.5 ms of a start; a broker has a hundred such classes, which were a
quarter of its start. Here comparison, hash and text are closures, and the constructor is compiled when the first value
is made. Declarations, `field`, `fields`, `replace` and what type checkers see are those of the library.
"""

from __future__ import annotations

from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, fields
from dataclasses import dataclass as library_dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    __all__ = ["dataclass"]
else:

    def dataclass(*, frozen: bool = False, kw_only: bool = False, slots: bool) -> Callable[[type], type]:
        if not slots:
            raise TypeError("a dataclass of this module needs slots=True")

        def make(declared: type) -> type:
            declared.__doc__ = declared.__doc__ or declared.__name__  # otherwise the library looks for its signature
            made = library_dataclass(init=False, repr=False, eq=False, slots=True, kw_only=kw_only)(declared)
            methods = _methods(made, fields(made), is_frozen=frozen)
            for name in methods.keys() - vars(declared).keys():
                setattr(made, name, methods[name])
            return made

        return make


def _methods(cls: type, declared: Sequence[Field[Any]], *, is_frozen: bool) -> dict[str, Any]:
    key = _getter(each.name for each in declared if each.compare)
    hashed = _getter(each.name for each in declared if (each.compare if each.hash is None else each.hash))
    shown = [each.name for each in declared if each.repr]

    def construct_first(self: Any, *args: Any, **kwargs: Any) -> None:
        constructor = _constructor(cls, declared)
        type.__setattr__(cls, "__init__", constructor)  # all others are constructed by this
        constructor(self, *args, **kwargs)

    def is_equal(self: Any, other: object) -> bool:
        return key(self) == key(other) if other.__class__ is self.__class__ else NotImplemented

    def text(self: Any) -> str:
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"

    def hash_of(self: Any) -> int:
        return hash(hashed(self))

    methods: dict[str, Any] = {"__init__": construct_first, "__eq__": is_equal, "__repr__": text, "__hash__": None}
    if is_frozen:
        methods |= {"__setattr__": _refuse_change, "__delattr__": _refuse_change, "__hash__": hash_of}
        methods |= {"__getstate__": _state, "__setstate__": _set_state}
    return methods


def _refuse_change(_self: object, name: str, _value: object = None) -> None:
    raise FrozenInstanceError(f"cannot assign to or delete field {name!r}")


def _state(value: Any) -> list[Any]:
    return [getattr(value, each.name) for each in fields(value)]


def _set_state(value: Any, state: list[Any]) -> None:
    for each, part in zip(fields(value), state, strict=True):
        object.__setattr__(value, each.name, part)


def _getter(names: Iterable[str]) -> Callable[[Any], Any]:
    """Always of a tuple, so that values of one field have the hash that the library's have."""
    listed = list(names)
    if len(listed) > 1:
        return attrgetter(*listed)
    return (lambda each: (getattr(each, listed[0]),)) if listed else lambda _each: ()


def _constructor(cls: type, declared: Sequence[Field[Any]]) -> Any:
    positional = ["self"]
    by_name: list[str] = []
    body: list[str] = []
    scope: dict[str, Any] = {"MISSING": MISSING}
    for each in declared:
        name, setter = each.name, f"_set_{each.name}"
        scope[setter] = getattr(cls, name).__set__
        default = ""
        if each.default is not MISSING:
            default, scope[f"_{name}"] = f"=_{name}", each.default
        elif each.default_factory is not MISSING:
            default, scope[f"_{name}"] = "=MISSING", each.default_factory
            body.append(f"if {name} is MISSING: {name} = _{name}()" if each.init else f"{name} = _{name}()")
        elif not each.init:
            continue
        if each.init:
            (by_name if each.kw_only else positional).append(name + default)
        elif each.default is not MISSING:
            body.append(f"{name} = _{name}")
        body.append(f"{setter}(self, {name})")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    if by_name:
        positional += ["*", *by_name]
    exec(f"def __init__({', '.join(positional)}):\n " + "\n ".join(body or ["pass"]), scope)
    return scope["__init__"]
