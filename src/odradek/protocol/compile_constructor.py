"""Compiles constructors of structs, and creates the shared default instance of a struct."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from odradek.protocol.fields import UNSET, StructType
from odradek.protocol.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable


_shared_defaults: dict[StructType, Any] = {}


def compile_constructor(struct_type: StructType) -> Callable[..., None]:
    source = Source()
    parameters = ["self"]
    assignments = []
    for field in struct_type.fields:
        name = field.name
        if field.kind == "array" and field.default is UNSET:
            parameters.append(f"{name}=UNSET")
            assignments.append(f"self.{name} = [] if {name} is UNSET else {name}")
        else:
            default = shared_default(field.element) if field.default is UNSET else field.default
            parameters.append(f"{name}={source.bind('default', default)}")
            assignments.append(f"self.{name} = {name}")
    if len(parameters) > 1:
        parameters.insert(1, "*")
    source.namespace["UNSET"] = UNSET
    with source.block(f"def __init__({', '.join(parameters)}):"):
        for assignment in assignments or ["pass"]:
            source.line(assignment)
    constructor: Callable[..., None] = source.compile("__init__", f"{struct_type.__name__} constructor")
    return constructor


def shared_default(struct_type: Any) -> Any:
    """The shared, immutable struct with every field at its default; assign a new struct to a field to change it.

    Ten partitions of a fetch share three of these instead of creating thirty."""
    shared = _shared_defaults.get(struct_type)
    if shared is None:
        shared = struct_type()
        unchangeable = type(struct_type)(struct_type.__name__, (struct_type,), {"__setattr__": _refuse_assignment})
        object.__setattr__(shared, "__class__", unchangeable)
        _shared_defaults[struct_type] = shared
    return shared


def _refuse_assignment(self: object, name: str, _value: object) -> NoReturn:
    raise AttributeError(f"{type(self).__name__}: the default is shared; assign a new one instead of its {name}")
