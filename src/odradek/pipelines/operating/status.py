"""The status of a pipeline: the state of its process and the figures of each flow; stored as JSON."""

from __future__ import annotations

import dataclasses
from dataclasses import field, is_dataclass
from enum import StrEnum
from functools import cache
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from odradek.conventions.dataclass import dataclass

Offsets = dict[str, dict[str, int]]  # by topic and partition
LARGEST_NUMBER = 2**63


class State(StrEnum):
    STARTING = "starting"
    RUNNING = "running"
    WAITING = "waiting"  # failed, waiting for its restart
    STOPPING = "stopping"
    STOPPED = "stopped"  # on request, or because all records are processed
    FAILED = "failed"  # failed, without another restart
    DIED = "died"  # its process ended without a final status


ENDED = frozenset({State.STOPPED, State.FAILED, State.DIED})


@dataclass(frozen=True, slots=True)
class FlowStatus:
    """One streaming query. Rates are in records per second: `input` written to its topics, `processed` read by it."""

    name: str
    batch: int | None = None
    batch_at: str | None = None
    batch_ms: float = 0
    batches: int = 0
    input_per_s: float = 0
    processed_per_s: float = 0
    read: dict[str, int] = field(default_factory=dict)  # records by topic since the pipeline was started
    lag: dict[str, int] = field(default_factory=dict)  # records by topic
    positions: Offsets = field(default_factory=dict)
    state_rows: int = 0
    state_bytes: int = 0
    unparsed: int = 0
    watermark: str | None = None  # event time, ISO 8601; None before it has advanced
    written: dict[str, int] = field(default_factory=dict)  # rows by sink or view since the pipeline was started
    late_rows: int = 0  # dropped because their event time was before the watermark, since the pipeline was started
    counts_state_rows: bool = True  # False if Spark does not count them, as in a join of streams


@dataclass(frozen=True, slots=True)
class ExpectationStatus:
    """Rows that did not meet an expectation since the pipeline was started, and rows that were checked."""

    step: str
    name: str
    otherwise: str
    rows: int
    checked: int = 0


@dataclass(frozen=True, slots=True)
class PipelineStatus:
    name: str
    state: State
    file: str = ""
    engine: str = ""
    pid: int = 0
    began: str = ""  # start time of the process, see `processes`
    attempt_pid: int | None = None  # of the child process, which leads a process group
    attempt_began: str = ""
    started_s: float = 0
    running_since_s: float | None = None
    updated_s: float = 0
    restarts: int = 0
    last_error: str | None = None
    last_error_s: float | None = None
    next_try_s: float | None = None
    note: str = ""
    metrics_address: str | None = None
    flows: tuple[FlowStatus, ...] = ()
    expectations: tuple[ExpectationStatus, ...] = ()

    @property
    def input_per_s(self) -> float:
        """The input rate; topics that several flows read count once."""
        return max((each.input_per_s for each in self.flows), default=0)

    @property
    def processed_per_s(self) -> float:
        return max((each.processed_per_s for each in self.flows), default=0)

    @property
    def batch_ms(self) -> float:
        return max((each.batch_ms for each in self.flows), default=0)

    @property
    def lag(self) -> int | None:
        """The largest lag of any flow; None before one has finished a batch."""
        return max((sum(each.lag.values()) for each in self.flows if each.lag), default=None)

    @property
    def late_rows(self) -> int:
        return sum(each.late_rows for each in self.flows)

    @property
    def state_rows(self) -> int | None:
        """None if a flow with state does not count them."""
        is_counted = all(each.counts_state_rows or not each.state_bytes for each in self.flows)
        return sum(each.state_rows for each in self.flows) if is_counted else None

    @property
    def state_bytes(self) -> int:
        return sum(each.state_bytes for each in self.flows)

    @property
    def unparsed(self) -> int:
        return sum(each.unparsed for each in self.flows)

    @property
    def violations(self) -> int:
        return sum(each.rows for each in self.expectations)

    def as_object(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


def decoded(kind: Any, value: Any) -> Any:
    """A value of JSON as a dataclass, or as the annotation of a field; ValueError if it is none."""
    origin, arguments = get_origin(kind), get_args(kind)
    if isinstance(kind, UnionType):
        return None if value is None else decoded(arguments[0], value)
    if isinstance(kind, type) and is_dataclass(kind) and isinstance(value, dict):
        kinds = hints(kind)
        return kind(**{name: decoded(kinds.get(name), each) for name, each in value.items()})
    if origin is tuple and isinstance(value, list):
        return tuple(decoded(arguments[0], each) for each in value)
    if origin is dict and isinstance(value, dict):
        return {name: decoded(arguments[1], each) for name, each in value.items()}
    if kind is State:
        return State(value)
    if kind in {int, float}:  # of a size that sums and conversions to float can take; NaN is none
        is_of_kind = isinstance(value, int | float) and -LARGEST_NUMBER < value < LARGEST_NUMBER
    else:
        is_of_kind = kind in {str, bool} and isinstance(value, kind)
    if not is_of_kind:
        raise ValueError(f"a value that is not of its type: {value!r:.100}")
    return value


@cache
def hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)
