"""What a definition is refused for: twenty codes, and a refusal with its place, its message and what to write."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from odradek.conventions.dataclass import dataclass

if TYPE_CHECKING:
    from odradek.pipelines.definition.places import Place
    from odradek.pipelines.planning.plan import End, Table


class Code(StrEnum):
    """The refusals of what streams do not have, or what would have another result in a batch."""

    NOT_ROW_BY_ROW = "OP001"
    STATIC_SIDE_KEPT = "OP002"
    STATIC_ROWS_AGAIN = "OP003"
    JOIN_WITHOUT_KEY = "OP004"
    JOIN_WITHOUT_WATERMARK = "OP005"
    JOIN_WITHOUT_BOUND = "OP006"
    OUTER_JOIN_WITH_CONDITION = "OP007"
    NO_EVENT_TIME = "OP008"
    SECOND_WATERMARK = "OP009"
    NEVER_FINAL = "OP010"
    STATE_OVER_OPEN_GROUPS = "OP011"
    KEY_IS_NOT_THE_GROUP = "OP012"
    INEXACT_KEY = "OP013"
    NO_ORDER = "OP014"
    UNDETERMINED = "OP015"
    IMPLICIT_CAST = "OP016"
    FINAL_ONLY = "OP017"
    NOT_IN_REALTIME = "OP018"
    PYTHON_STATE = "OP019"
    SHARED_TARGET = "OP020"


@dataclass(frozen=True, slots=True)
class Refusal:
    """What a rule says of a table or an end, and what to write instead. Without a code it is a warning."""

    code: Code | None
    subject: Table | End
    place: Place
    message: str
    example: str = ""


# The refusals of a table behind which others only follow.
SPREADING = frozenset(
    (
        Code.NOT_ROW_BY_ROW, Code.STATIC_SIDE_KEPT, Code.JOIN_WITHOUT_KEY, Code.JOIN_WITHOUT_WATERMARK,
        Code.JOIN_WITHOUT_BOUND, Code.OUTER_JOIN_WITH_CONDITION, Code.NO_EVENT_TIME, Code.SECOND_WATERMARK,
        Code.STATE_OVER_OPEN_GROUPS,
    )
)  # fmt: skip
