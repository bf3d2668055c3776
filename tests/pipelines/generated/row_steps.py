"""Draws steps that work row by row: SELECT, generators, UNION ALL, joins with tables, look-ups, Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.pipelines.generated.drafts import ROW, Draft, schema_of
from tests.pipelines.generated.expressions import COMPUTED, CONDITIONS, OF_RECORD, TYPES, Expression
from tests.pipelines.generated.oracle import RowByRow, Table, United

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.pipelines.generated.expressions import Values


def condition(draft: Draft, read: str) -> Expression | None:
    """A condition of WHERE, or none."""
    fitting = [each for each in CONDITIONS if each.fits(draft.columns[read])]
    return draft.one_of(*fitting) if fitting and draft.happens(2) else None


def filtered(where: Expression | None, values: Values) -> bool:
    return where is None or bool(where.value(values))


def select(draft: Draft, read: str) -> None:
    columns, is_row, where = draft.columns[read], draft.is_row(read), condition(draft, read)
    needed = set(ROW) if is_row else set(columns)
    dropped = [each for each in columns if each not in needed and draft.happens(5)]
    renamed = {name: new for name, new in (("at", "moment"), ("k", "name")) if can_rename(draft, read, name, new)}
    kept = [each for each in columns if each not in dropped]
    names = [renamed.get(each, each) for each in kept]
    computed = draw_computed(draft, read, {*names, *columns})
    items = ", ".join(f"{each} as {renamed[each]}" if each in renamed else each for each in kept)
    if not renamed and draft.happens(2):
        items = f"* except ({', '.join(dropped)})" if dropped else "*"
    elif draft.happens(3):
        items = ", ".join(f"{read}.{each}" for each in items.split(", "))
    selected = ", ".join([items, *(f"{each.sql} as {each.name}" for each in computed)])

    def make(values: Values) -> Iterator[Values]:
        if filtered(where, values):
            made = {new: values[name] for name, new in zip(kept, names, strict=True)}
            for each in computed:
                made[each.name] = each.value({**made, **values})
            yield made

    unique = draft.unique.get(read)
    if unique is not None:
        unique = (renamed.get(unique[0], unique[0]), renamed.get(unique[1], unique[1]))
    declaration = {"sql": written_select(draft, selected, read, where)}
    draft.add(declaration, RowByRow(read, make), (*names, *(each.name for each in computed)), unique=unique)


def can_rename(draft: Draft, read: str, name: str, new: str) -> bool:
    columns = draft.columns[read]
    is_wanted = not draft.is_row(read) if name == "k" else draft.path(read).event_time == name
    return is_wanted and name in columns and new not in columns and draft.happens(4)


def draw_computed(draft: Draft, read: str, taken: set[str]) -> list[Expression]:
    """Computed columns with other names than these. What may fail for a group would be a dead letter of each batch."""
    found: list[Expression] = []
    choices = [*COMPUTED]
    choices += OF_RECORD if read in draft.definition["sources"] else ()
    for _ in range(draft.random.randint(0, 3)):
        columns = {*draft.columns[read], *(each.name for each in found)}
        names = {*taken, *(each.name for each in found)}
        can_fail = draft.path(read).groups is None
        fitting = [each for each in choices if each.fits(columns) and each.name not in names]
        fitting = [each for each in fitting if can_fail or not each.fails]
        found += [draft.one_of(*fitting)] if fitting else []
    return found


def written_select(draft: Draft, selected: str, read: str, where: Expression | None) -> str:
    """The query: plain, or with a query in WITH or FROM. That of WITH may have the name of a source."""
    behind = "" if where is None else f" where {where.sql}"
    form = draft.one_of("plain", "plain", "with", "from")
    if form == "plain" or f"{read}." in selected or draft.is_realtime:
        return f"select {selected} from {read}{behind}"
    if form == "from":
        return f"select {selected} from (select * from {read}{behind}) q"
    name = draft.one_of("c", *(each for each in draft.definition["sources"] if each != read))
    return f"with {name} as (select * from {read}{behind}) select {selected} from {name}"


def explode(draft: Draft, read: str) -> None:
    kept = [each for each in draft.columns[read] if each not in {"tags", "tag", "pos"}]
    where = condition(draft, read)
    forms = ("select", "lateral", "posexplode", *(() if draft.is_realtime else ("outer", "lateral outer")))
    form = draft.one_of(*forms)
    items, view = ", ".join(kept), ""
    if form.startswith("lateral"):
        items, view = f"{items}, tag", f" {form.replace('lateral', 'lateral view')} explode(tags) e as tag"
    else:
        function = {"select": "explode", "outer": "explode_outer", "posexplode": "posexplode"}[form]
        items += f", {function}(tags) as {'(pos, tag)' if form == 'posexplode' else 'tag'}"
    made = ("pos", "tag") if form == "posexplode" else ("tag",)

    def make(values: Values) -> Iterator[Values]:
        if not filtered(where, values):
            return
        tags = values["tags"] or ([None] if form.endswith("outer") else [])
        for number, tag in enumerate(tags):
            row = {name: values[name] for name in kept}
            yield {**row, "tag": tag, **({"pos": number} if form == "posexplode" else {})}

    behind = "" if where is None else f" where {where.sql}"
    draft.add({"sql": f"select {items} from {read}{view}{behind}"}, RowByRow(read, make), (*kept, *made))


def unitable(draft: Draft) -> list[str]:
    """Rows, and no groups."""
    return [each for each in draft.readable() if draft.is_row(each) and draft.path(each).groups is None]


def union(draft: Draft, read: str) -> None:
    others = draft.random.choices(unitable(draft), k=draft.one_of(1, 1, 2))
    reads = (read, *others)
    times = [draft.path(each).event_time for each in reads]
    shared = [each for each in ("d", "t", "seen") if all(each in draft.columns[read] for read in reads)]
    first = [*ROW, *draft.some(shared, 0, len(shared)), *([times[0]] if None not in times else [])]
    draft.random.shuffle(first)
    name, parts, texts, names = draft.next_name(), list[Table](), [], []
    for number, (each, time) in enumerate(zip(reads, times, strict=True)):
        own = [time if column == times[0] else column for column in first]
        if number and draft.happens(4):  # columns are united by position
            own = [{"id": "n", "n": "id"}.get(str(column), column) for column in own]
        where = condition(draft, each)
        columns = tuple(str(column) for column in own)
        parts.append(Table(f"{name} part {number}", name, RowByRow(each, projecting(columns, where))))
        texts.append(f"select {', '.join(columns)} from {each}{'' if where is None else f' where {where.sql}'}")
        names.append(columns)
    made = United(tuple(each.name for each in parts), tuple(names))
    draft.add({"sql": " union all ".join(texts)}, made, tuple(map(str, first)), parts=parts)


def projecting(columns: tuple[str, ...], where: Expression | None) -> Callable[[Values], list[Values]]:
    def make(values: Values) -> list[Values]:
        return [{name: values[name] for name in columns}] if filtered(where, values) else []

    return make


def table_join(draft: Draft, read: str) -> None:
    table, labels = draft.labels()
    columns, how = draft.columns[read], draft.one_of("inner", "left", "semi", "anti")
    added = ("label",) if how in {"inner", "left"} else ()

    def make(values: Values) -> Iterator[Values]:
        label = labels.get(values["k"])
        if how == "left" or (label is None) == (how == "anti"):
            yield {**{name: values[name] for name in columns}, **dict.fromkeys(added, label)}

    selected = f"select s.*{', l.label' if added else ''} from {read} s"
    word = {"inner": "join", "left": "left join", "semi": "left semi join", "anti": "left anti join"}[how]
    declaration = {"sql": f"{selected} {word} {table} l {draft.one_of('on s.k = l.k', 'using (k)')}"}
    if how == "inner" and draft.happens(3):
        declaration = {"sql": f"{selected}, {table} l where s.k = l.k"}
    draft.add(declaration, RowByRow(read, make), (*columns, *added), unique=draft.unique.get(read))


def look_up(draft: Draft, read: str) -> None:
    table, labels = draft.labels()
    columns, form = draft.columns[read], draft.one_of("in", "exists", "value")
    if form == "value" and "labels_known" in columns:
        form = "in"
    added = {"labels_known": len(labels)} if form == "value" else {}
    texts = {
        "in": f"select * from {read} where k in (select k from {table})",
        "exists": f"select * from {read} s where exists (select 1 from {table} l where l.k = s.k)",
        "value": f"select *, (select count(*) from {table}) as labels_known from {read}",
    }

    def make(values: Values) -> Iterator[Values]:
        if form == "value" or values["k"] in labels:
            yield {**{name: values[name] for name in columns}, **added}

    draft.add({"sql": texts[form]}, RowByRow(read, make), (*columns, *added), unique=draft.unique.get(read))


def python(draft: Draft, read: str) -> None:
    kept = tuple(each for each in draft.columns[read] if each != "x" and each in TYPES)
    columns = (*kept, "x")

    def make(values: Values) -> Iterator[Values]:
        if values["n"] is not None and values["n"] > 0:
            yield {**{name: values[name] for name in kept}, "x": values["n"] * 10}

    declaration = {"from": read, "python": "processors:positive", "schema": schema_of(columns)}
    draft.add(declaration, RowByRow(read, make), columns, unique=draft.unique.get(read))
