"""Splits a plan into flows, the parts that one streaming query each runs. Static tables are read by each of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from odradek.pipelines.definition.model import FilesTarget, Source, TopicOrigin, View
from odradek.pipelines.planning.plan import EndMode, Flow, OutputMode, Plan, RowSql, Table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.pipelines.planning.plan import End


def with_flows(plan: Plan) -> Plan:
    """The plan with its flows; no rule refuses it."""
    flows: dict[str, Flow] = {}
    for end in plan.ends:
        flow = _flow_to(plan, end.input, _mode_of(plan, end))
        if isinstance(end.target, FilesTarget):
            flows[f"files-{end.name}"] = replace(flow, name=f"files-{end.name}", root=end.input, after=(), files=end)
            continue
        if end.is_view and not plan.path(flow.root).state:
            flow = replace(flow, name=f"{flow.root}-views", uses_state_trigger=True)
        _add(flows, flow, end)
    _assign_owners(plan, flows)
    return replace(
        plan, flows=tuple(replace(each, is_row_program=_is_row_program(plan, each)) for each in flows.values())
    )


def whole_flow(plan: Plan) -> Flow:
    """All tables and ends as one flow, for a run over all rows."""
    after, owned = (each.name for each in plan.tables.values()), (each.name for each in _refusing(plan))
    return Flow("batch", "", after=tuple(after), ends=plan.ends, owned=frozenset(owned))


def is_of_current_groups(plan: Plan, end: End) -> bool:
    """Whether a table has a row for each group as it is, before it is final."""
    return plan.path(end.input).can_change and end.mode is EndMode.KEYED


def _mode_of(plan: Plan, end: End) -> OutputMode:
    """Only groups can change, and only where they are read before they are final."""
    is_changing = plan.path(end.input).can_change and end.mode in {EndMode.UPDATE, EndMode.KEYED}
    return OutputMode.UPDATE if is_changing else OutputMode.APPEND


def _add(flows: dict[str, Flow], flow: Flow, *ends: End) -> None:
    known = flows.get(flow.name, flow)
    after = tuple(dict.fromkeys((*known.after, *flow.after)))
    flows[flow.name] = replace(known, after=after, ends=(*known.ends, *ends))


def _flow_to(plan: Plan, name: str, mode: OutputMode) -> Flow:
    """The flow whose batches have the rows of a table: its root is the first table behind which none keeps state."""
    upstream = [each for each in plan.upstream(name) if plan.is_stream(each)] or [name]
    root = next(each for each in upstream if _can_be_root(plan, each, upstream))
    before = set(plan.upstream(root))
    after = tuple(each for each in upstream if each not in before)
    return Flow(_name(plan.table(root), mode), root, mode, after)


def _name(root: Table, mode: OutputMode) -> str:
    """The name of a flow: that of its root, or of the declaration whose groups or pairs the root has."""
    owner = root.owner.name
    if isinstance(root.owner, View):
        return f"view-{owner}"
    is_alone = root.name.lower() in {f"{owner}__groups".lower(), f"{owner}__pairs".lower()}
    return f"{owner if is_alone else root.name}{'' if mode is OutputMode.APPEND else '-changes'}"


def _can_be_root(plan: Plan, root: str, upstream: list[str]) -> bool:
    """Whether no table behind the root keeps state or reads another stream."""
    before = set(plan.upstream(root))
    after = [plan.table(each) for each in upstream if each not in before]
    known = {root, *(each.name for each in after)}
    reads = {name for each in after for name in each.inputs if plan.is_stream(name)}
    return reads <= known and not any(_keeps_state(each) or isinstance(each.made_by, Source) for each in after)


def _keeps_state(table: Table) -> bool:
    return table.path.state[-1:] == (table.name,)


def _assign_owners(plan: Plan, flows: dict[str, Flow]) -> None:
    """Gives each table that may refuse rows to one flow.

    Without a topic for dead letters, records that cannot be parsed and rows that implicit checks refuse are only
    counted: if no flow has them in its batches, one whose root is behind them counts them, which saves a flow that
    would read the source again."""
    for table in _refusing(plan):
        if not table.path.is_stream:
            continue
        owner = next((each for each in flows.values() if _is_in_batch(each, table.name)), None)
        reader = next((each for each in flows.values() if table.name in plan.upstream(each.root)), None)
        is_counted = plan.pipeline.dead_letters is None and all(each.is_implicit for each in table.checks)
        if owner is None and reader is not None and is_counted:
            flows[reader.name] = replace(reader, counted=reader.counted | {table.name})
            continue
        if owner is None:
            flow = _flow_to(plan, table.name, OutputMode.APPEND)
            _add(flows, flow)
            owner = flows[flow.name]
        flows[owner.name] = replace(owner, owned=owner.owned | {table.name})


def _refusing(plan: Plan) -> Iterator[Table]:
    """Topics whose records may not be parsed, and tables with checks, as far as ends use them."""
    used = {name for end in plan.ends for name in plan.upstream(end.input)}
    for table in plan.tables.values():
        made = table.made_by
        is_topic = isinstance(made, Source) and isinstance(made.origin, TopicOrigin)
        if table.name in used and (is_topic or table.checks):
            yield table


def _is_in_batch(flow: Flow, name: str) -> bool:
    return flow.files is None and (name == flow.root or name in flow.after)


def _is_row_program(plan: Plan, flow: Flow) -> bool:
    """Whether each record makes its rows by itself: all behind the root is plain SQL without a watermark."""
    after = [plan.table(each) for each in flow.after]
    is_plain = all(
        isinstance(each.made_by, RowSql) and each.made_by.shape.is_plain and each.path.watermark != each.name
        for each in after
    )
    quotes = plan.pipeline.spark.get("spark.sql.ansi.doubleQuotedIdentifiers", "false")
    return is_plain and flow.files is None and quotes == "false"
