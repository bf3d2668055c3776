"""Internal columns of rows: the origin of a row, and why it was rejected.

`__origin` is the record that a row was derived from. It gives outputs an id that is stable across replays, and dead
letters their original bytes. Sinks and views drop hidden columns. Users never see them: a `*` in their SQL stands for
the other columns, and their functions get frames without them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - its usual name

from odradek.pipelines.planning.sql_tokens import Kind, counts_rows, is_plain_star, is_star, tokenize
from odradek.pipelines.spark.sessions.failures import PipelineError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark.sql import Column, DataFrame

    from odradek.pipelines.planning.sql_tokens import Token

ORIGIN = "__origin"
REJECTED = "__rejected"  # why a record failed to parse; null if it parsed
VIOLATED = "__violated"  # a bit for each expectation that a row does not meet
HIDDEN = (ORIGIN, REJECTED, VIOLATED)
UNDIVIDED = "odradek.undivided"  # metadata of the origin
ORIGIN_FIELDS = ("topic", "partition", "offset", "key", "value", "headers")


def origin_struct() -> Column:
    """The origin struct, from the columns of Spark's Kafka source."""
    return F.struct(*(F.col(name) for name in ORIGIN_FIELDS)).alias(ORIGIN)


def has_origin(frame: DataFrame) -> bool:
    return ORIGIN in frame.columns


def with_undivided_origin(frame: DataFrame) -> DataFrame:
    """The frame, whose rows are written in one transaction, whatever the partitions of their origin."""
    return frame.withMetadata(ORIGIN, {UNDIVIDED: True})


def is_divided(frame: DataFrame) -> bool:
    """Whether the partitions of their origin divide the rows of a batch into transactions."""
    return has_origin(frame) and not frame.schema[ORIGIN].metadata.get(UNDIVIDED)


def without_hidden(frame: DataFrame) -> DataFrame:
    return frame.drop(*(name for name in HIDDEN if name in frame.columns))


def visible_columns(frame: DataFrame, named: Iterable[str] = ()) -> list[str]:
    """The columns of a sink without `value`: all except hidden ones and the record's `_key`, `_value` …, apart from
    those that the sink names."""
    names = visible_names(frame.columns, shows_records=shows_records(frame))
    spelled = {name.lower(): name for name in frame.columns}
    return [*names, *(name for name in dict.fromkeys(spelled[each.lower()] for each in named) if name not in names)]


def visible_names(names: Iterable[str], *, shows_records: bool) -> list[str]:
    """The names without hidden ones, and without those of the record if all of them are there and nobody named them."""
    shown = [name for name in names if name not in HIDDEN]
    is_whole = RECORD_NAMES.issubset(shown) and not shows_records
    return [name for name in shown if not (is_whole and name in RECORD_NAMES)]


RECORD_NAMES = frozenset({"_key", "_value", "_headers", "_timestamp", "_topic", "_partition", "_offset"})
NAMED = "odradek.named"  # metadata of the columns of the record, if the definition names all of them


def shows_records(frame: DataFrame) -> bool:
    """Whether the definition names all columns of the record."""
    if not RECORD_NAMES.issubset(frame.columns):
        return False
    return all(each.metadata.get(NAMED) for each in frame.schema.fields if each.name in RECORD_NAMES)


def with_records_shown(frame: DataFrame) -> DataFrame:
    """The frame, whose columns of the record sinks write."""
    for each in frame.schema.fields:
        if each.name in RECORD_NAMES:
            frame = frame.withMetadata(each.name, {**each.metadata, NAMED: True})
    return frame


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


class HiddenColumn(PipelineError):
    """An expression that would show a hidden column."""


def user_expression(frame: DataFrame, text: str) -> Column:
    """An expression of the definition over a frame, in which a `*` stands for the columns that are not hidden."""
    return F.expr(without_stars(text, [name for name in frame.columns if name not in HIDDEN]))


def without_stars(text: str, names: Sequence[str]) -> str:
    """The expression with every `*` replaced by these columns; `count(*)` is kept."""
    tokens = tokenize(text)
    if named := next((each.name for each in tokens if names_hidden(each)), None):
        raise HiddenColumn(f"'{text}' reads the column {named}, which is internal")
    stars = [index for index in range(len(tokens)) if is_star(tokens, index) and not counts_rows(tokens, index)]
    if not stars and (tokens[-1:] == [] or tokens[-1].kind is not Kind.UNKNOWN or "*" not in tokens[-1].text):
        return text
    if not all(is_plain_star(tokens, index) for index in stars) or tokens[-1].kind is Kind.UNKNOWN:
        raise HiddenColumn(f"'{text}': the columns of this * are not known; name them instead")
    return replaced_stars(text, tokens, stars, names)


def replaced_stars(text: str, tokens: Sequence[Token], stars: Iterable[int], names: Sequence[str]) -> str:
    listed = ", ".join(map(quoted, names))
    parts, position = [], 0
    for index in stars:
        parts += [text[position : tokens[index].start], listed]
        position = tokens[index].end
    return "".join([*parts, text[position:]])


def names_hidden(token: Token) -> bool:
    return token.is_name and token.name.lower() in HIDDEN
