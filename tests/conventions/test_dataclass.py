"""Our dataclasses are those of the library, with methods that are compiled later."""

from __future__ import annotations

import copy
import dataclasses
import importlib
import inspect
import pickle
import pkgutil
import sys
from dataclasses import FrozenInstanceError, field
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import pytest

import odradek
from odradek.conventions.dataclass import dataclass

T = TypeVar("T")
ROOMS = ("configuration", "controller", "coordinator", "log", "metadata", "security")


@dataclass(frozen=True, slots=True)
class Reading:
    pump: str
    values: list[float] = field(default_factory=list)
    note: str = field(default="", compare=False, repr=False)
    kind: ClassVar[str] = "reading"

    def first(self) -> float:
        return self.values[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask(Generic[T]):
    timeout_ms: float = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Search(Ask[str]):
    text: str
    length: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "length", len(self.text))


@dataclass(slots=True)
class Counter:
    count: int = 0


@dataclass(frozen=True, slots=True)
class Shown:
    secret: str

    def __repr__(self) -> str:
        return "Shown(…)"


def test_values_are_constructed_by_position_and_name_with_defaults_of_their_own() -> None:
    assert Reading("a", [1.5]).first() == 1.5
    first, second = Reading("a"), Reading(pump="a")
    assert first == second
    assert first.values is not second.values
    assert repr(first) == "Reading(pump='a', values=[])"
    assert Reading("a", note="x") == first
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'pump'"):
        Reading()  # type: ignore[call-arg]  # the mistake that is tested
    with pytest.raises(TypeError, match="unexpected keyword argument 'size'"):
        Reading("a", size=3)  # type: ignore[call-arg]  # the mistake that is tested


def test_fields_of_a_base_come_with_the_subclass_and_post_init_runs() -> None:
    search = Search(text="pump")
    assert (search.timeout_ms, search.length) == (5.0, 4)
    assert dataclasses.replace(search, timeout_ms=1.0) == Search(text="pump", timeout_ms=1.0)
    assert search != Ask(timeout_ms=5.0)
    with pytest.raises(TypeError):
        Search("pump")  # type: ignore[arg-type, call-arg]  # the mistake that is tested


def test_frozen_values_do_not_change_and_others_do() -> None:
    reading, counter = Reading("a"), Counter()
    with pytest.raises(FrozenInstanceError, match="'pump'"):
        reading.pump = "b"  # type: ignore[misc]  # the mistake that is tested
    with pytest.raises(FrozenInstanceError, match="'pump'"):
        del reading.pump
    counter.count += 1
    assert counter == Counter(1)
    with pytest.raises(TypeError, match="unhashable"):
        hash(counter)


def test_values_are_copied_pickled_matched_and_hashed() -> None:
    search = Search(text="pump")
    assert copy.deepcopy(search) == pickle.loads(pickle.dumps(search)) == search
    assert {search: 1}[Search(text="pump")] == 1
    assert hash(Shown("x")) == hash(("x",))
    match Reading("a", [2.0]):
        case Reading(pump, [value]):
            assert (pump, value) == ("a", 2.0)
        case _:
            pytest.fail("the pattern did not match")


def test_methods_of_the_class_win() -> None:
    assert repr(Shown("x")) == "Shown(…)"


def test_a_dataclass_without_slots_is_refused() -> None:
    with pytest.raises(TypeError, match="slots=True"):
        dataclass(frozen=True, slots=False)


class Twin(NamedTuple):
    ours: type
    library: type


def twins() -> list[Twin]:
    """Dataclasses of the broker that have no base, each with one of the library that has the same fields."""
    found = []
    for room in ROOMS:
        for module in pkgutil.walk_packages([f"{odradek.__path__[0]}/{room}"], f"odradek.{room}."):
            importlib.import_module(module.name)
            for cls in vars(sys.modules[module.name]).values():
                if inspect.isclass(cls) and dataclasses.is_dataclass(cls) and cls.__bases__ == (object,):
                    declared = [(each.name, Any, copied(each)) for each in dataclasses.fields(cls)]
                    found.append(Twin(cls, dataclasses.make_dataclass(cls.__name__, declared, frozen=True, slots=True)))
    return found


def copied(of: dataclasses.Field[Any]) -> Any:
    return field(
        default=of.default,
        default_factory=of.default_factory,
        init=of.init,
        repr=of.repr,
        compare=of.compare,
        kw_only=bool(of.kw_only),
    )


def test_all_of_the_broker_have_the_constructor_that_the_library_compiles() -> None:
    all_twins = twins()
    assert len(all_twins) > 50
    for ours, library in all_twins:
        arguments = {each.name: object() for each in dataclasses.fields(library) if each.init}
        if not hasattr(ours, "__post_init__"):
            ours(**arguments)
            assert parameters(ours) == parameters(library), ours


def parameters(cls: type) -> list[tuple[str, object, object]]:
    signature = inspect.signature(cls)
    return [(each.name, each.kind, each.default is each.empty) for each in signature.parameters.values()]
