"""`functions:` of a definition: Python functions that SQL can call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.definition.fields import Fields
from odradek.pipelines.definition.model import Function
from odradek.pipelines.definition.schemas import read_type

if TYPE_CHECKING:
    from odradek.pipelines.definition.nodes import Node, Scalar
    from odradek.pipelines.definition.places import Problems

FUNCTION_KEYS = ("python", "returns", "pandas", "deterministic")


def parse_function_of_sql(name: Scalar, node: Node, problems: Problems) -> Function | None:
    fields = Fields(node, FUNCTION_KEYS, f"function '{name.text}'", problems)
    reference = fields.reference("python")
    returns = fields.node("returns")
    if returns is None:
        fields.missing("returns", "add the type of its result: returns: DOUBLE")
        return None
    kind = read_type(returns, f"returns of {fields.what}", problems)
    is_pandas = fields.flag("pandas", default=False)
    is_deterministic = fields.flag("deterministic", default=True)
    if reference is None or kind is None:
        return None
    return Function(name.text, reference, kind, is_pandas, is_deterministic, name.place)
