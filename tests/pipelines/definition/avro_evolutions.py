"""Pairs of Avro schemas, a writer's and a reader's, with values as they are written and as they must be read.

What a value must be read as follows from how the pair was made, and not from an implementation of Avro.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "boolean": st.booleans(),
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**53), 2**53),
    "float": st.floats(allow_nan=False, allow_infinity=False, width=32),
    "double": st.floats(allow_nan=False, allow_infinity=False),
    "string": st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), max_size=8),
    "bytes": st.binary(max_size=6),
}
DEFAULTS: dict[str, tuple[Any, Any]] = {  # in JSON, and as it is read
    "boolean": (True, True),
    "int": (7, 7),
    "long": (-7, -7),
    "float": (1.5, 1.5),
    "double": (2.25, 2.25),
    "string": ("none", "none"),
    "bytes": ("\u00ff", b"\xff"),
}
PROMOTIONS = [
    ("int", "long", int),
    ("int", "double", float),
    ("long", "double", float),
    ("float", "double", float),
    ("string", "bytes", str.encode),
    ("bytes", "string", None),
]


@dataclass(frozen=True)
class Evolution:
    """A writer's and a reader's schema; `values` draws a value as it is written, and as it is read."""

    writer: Any
    reader: Any
    values: st.SearchStrategy[tuple[Any, Any]]


def same(kind: str) -> Evolution:
    return Evolution(kind, kind, VALUES[kind].map(lambda value: (value, value)))


def promoted(writer: str, reader: str, convert: Any) -> Evolution:
    if convert is None:  # bytes to a string: only bytes that are text
        return Evolution(writer, reader, VALUES["string"].map(lambda text: (text.encode(), text)))
    return Evolution(writer, reader, VALUES[writer].map(lambda value: (value, convert(value))))


@st.composite
def evolutions(draw: st.DrawFn, name: str = "r", depth: int = 2) -> Evolution:
    choices = ["same", "promoted", "nullable", "enum", "fixed"]
    if depth > 0:
        choices += ["array", "map", "record", "record"]
    kind = draw(st.sampled_from(choices))
    if kind == "same":
        return same(draw(st.sampled_from(sorted(VALUES))))
    if kind == "promoted":
        return promoted(*draw(st.sampled_from(PROMOTIONS)))
    if kind == "enum":
        return enum(name, draw(st.booleans()))
    if kind == "fixed":
        schema = {"type": "fixed", "name": f"{name}_fixed", "size": 2}
        return Evolution(schema, schema, st.binary(min_size=2, max_size=2).map(lambda value: (value, value)))
    if kind == "nullable":
        return nullable(draw(evolutions(name, 0).filter(lambda each: not isinstance(each.reader, list))), draw)
    if kind == "record":
        return draw(records(name, depth - 1))
    inner = draw(evolutions(f"{name}_i", depth - 1))
    if kind == "array":
        lists = st.lists(inner.values, max_size=3)
        return Evolution(
            {"type": "array", "items": inner.writer},
            {"type": "array", "items": inner.reader},
            lists.map(lambda pairs: ([each[0] for each in pairs], [each[1] for each in pairs])),
        )
    maps = st.dictionaries(st.sampled_from("abc"), inner.values, max_size=3)
    return Evolution(
        {"type": "map", "values": inner.writer},
        {"type": "map", "values": inner.reader},
        maps.map(lambda pairs: ({k: each[0] for k, each in pairs.items()}, {k: each[1] for k, each in pairs.items()})),
    )


def enum(name: str, is_renamed: bool) -> Evolution:
    writer = {"type": "enum", "name": f"{name}_enum", "symbols": ["A", "B", "GONE"]}
    reader: dict[str, Any] = {"type": "enum", "name": f"{name}_enum", "symbols": ["Z", "B", "A"], "default": "Z"}
    if is_renamed:
        reader = {**reader, "name": f"{name}_other", "aliases": [f"{name}_enum"]}
    values = st.sampled_from([("A", "A"), ("B", "B"), ("GONE", "Z")])
    return Evolution(writer, reader, values)


def nullable(inner: Evolution, draw: st.DrawFn) -> Evolution:
    """A type that becomes optional, or stays so."""
    if draw(st.booleans()):
        return Evolution(inner.writer, ["null", inner.reader], inner.values)
    values = st.one_of(st.just((None, None)), inner.values)
    return Evolution(["null", inner.writer], [inner.reader, "null"], values)


@st.composite
def records(draw: st.DrawFn, name: str = "r", depth: int = 2) -> Evolution:
    """A record whose fields are kept, renamed, removed, added and put in another order."""
    written: list[dict[str, Any]] = []
    read: list[dict[str, Any]] = []
    pairs: dict[str, tuple[str | None, st.SearchStrategy[tuple[Any, Any]]]] = {}
    added: dict[str, Any] = {}
    for index in range(draw(st.integers(1, 4))):
        field = f"f{index}"
        fate = draw(st.sampled_from(["kept", "kept", "renamed", "removed", "added"]))
        if fate == "added":
            kind = draw(st.sampled_from(sorted(DEFAULTS)))
            default, added[field] = DEFAULTS[kind]
            read.append({"name": field, "type": kind, "default": default})
            continue
        inner = draw(evolutions(f"{name}_{field}", depth))
        written.append({"name": field, "type": inner.writer})
        if fate == "removed":
            pairs[field] = (None, inner.values)
            continue
        new = f"{field}_new" if fate == "renamed" else field
        aliases = {"aliases": [field]} if fate == "renamed" else {}
        read.append({"name": new, "type": inner.reader, **aliases})
        pairs[field] = (new, inner.values)
    reader = {"type": "record", "name": name, "fields": draw(st.permutations(read))}
    values = st.fixed_dictionaries({field: values for field, (_, values) in pairs.items()})
    names = {field: new for field, (new, _) in pairs.items()}

    def both(drawn: dict[str, tuple[Any, Any]]) -> tuple[Any, Any]:
        expected = {names[field]: each[1] for field, each in drawn.items() if names[field] is not None}
        return {field: each[0] for field, each in drawn.items()}, {**added, **expected}

    return Evolution({"type": "record", "name": name, "fields": written}, reader, values.map(both))


@st.composite
def evolved_records(draw: st.DrawFn) -> tuple[Any, Any, Any, Any]:
    """The writer's schema, the reader's, a record as it is written, and as it must be read."""
    evolution = draw(records())
    written, expected = draw(evolution.values)
    return evolution.writer, evolution.reader, written, expected
