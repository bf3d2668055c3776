"""What clients of a broker did and saw while transactions ran: the input of `checks`. Times are counted events."""

import enum
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple

from odradek.protocol.topic_partition import TopicPartition

NEVER = 2**62


class Ending(enum.Enum):
    """What a client knows of the end of its transaction."""

    COMMITTED = "committed"  # the commit was acknowledged
    ABORTED = "aborted"  # no commit was requested, or it was refused
    UNKNOWN = "unknown"  # no answer to the commit


@dataclass
class Write:
    value: bytes
    partition: TopicPartition
    sent_at: int
    offset: int | None = None  # once it is acknowledged


@dataclass
class Consumed:
    """The part of an input partition that the transaction has consumed, as its group's offset says."""

    group: str
    partition: TopicPartition
    first_offset: int
    end_offset: int
    is_acknowledged: bool = False


@dataclass
class Transaction:
    number: int
    client: str
    transactional_id: str
    writes: list[Write] = field(default_factory=list)
    consumed: list[Consumed] = field(default_factory=list)
    ending: Ending = Ending.ABORTED
    commit_requested_at: int = NEVER


class Seen(NamedTuple):
    offset: int
    value: bytes
    at: int


@dataclass
class Reading:
    """One reader of one partition, from its beginning on."""

    reader: str
    partition: TopicPartition
    is_committed_only: bool
    position: int = 0
    last_stable_offset: int = 0
    seen: list[Seen] = field(default_factory=list)


@dataclass
class History:
    transactions: list[Transaction] = field(default_factory=list)
    readings: list[Reading] = field(default_factory=list)
    final: dict[tuple[TopicPartition, bool], Reading] = field(default_factory=dict)
    """What can be read at the end, by the partition and whether only committed records are read."""
    final_offsets: dict[tuple[str, TopicPartition], int] = field(default_factory=dict)
    incomplete: dict[str, str] = field(default_factory=dict)  # transactional id and state, at the end
    unstable: dict[TopicPartition, tuple[int, int]] = field(default_factory=dict)
    """Last stable offset and high watermark, where they differ at the end."""
    problems: list[str] = field(default_factory=list)  # that were seen at once
    clock_jumps: int = 0  # after one of them a transaction may reach its timeout early
    has_new_leaders: bool = False
    """A new leader learns what is committed by the fetches of its followers: until then, its end may be a smaller one
    than the last leader's."""

    def __post_init__(self) -> None:
        self._events = count(1)
        self.on_commit: Callable[[], None] = lambda: None  # called when a commit is acknowledged

    def now(self) -> int:
        return next(self._events)

    def begin(self, client: str, transactional_id: str) -> Transaction:
        transaction = Transaction(len(self.transactions), client, transactional_id)
        self.transactions.append(transaction)
        return transaction

    def end(self, transaction: Transaction, ending: Ending) -> None:
        transaction.ending = ending
        if ending is Ending.COMMITTED:
            self.on_commit()

    def report(self, problem: str) -> None:
        self.problems.append(problem)
