"""Sequences of transaction requests with right and wrong producers, as data: drawn once, answered by Apache Kafka, and
performed on Odradek, whose answers must be the same."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from hypothesis import strategies as st

from tests.clients.wire.transactions import (
    NOBODY,
    PATIENCE_SECONDS,
    Identity,
    add_offsets,
    add_partitions,
    await_state,
    commit_offset,
    describe,
    end,
    init_producer,
    send,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.wire import WireClient

RECORDED = Path(__file__).parent / "expected" / "transaction_sequences.jsonl"
MOST_STEPS = 12

Step: TypeAlias = "list[str | int | bool]"
Answer: TypeAlias = "list[str | int]"


class Recorded(NamedTuple):
    steps: list[Step]
    answers: list[Answer]


# Whose request it is: the producer's, that of an epoch before or after, or that of another producer id.
WHO = st.sampled_from(["current"] * 12 + ["older", "newer", "stranger"])
PARTITION = st.integers(0, 1)
SEQUENCE = st.sampled_from(["next"] * 8 + ["again", "gap"])


def _steps(version: st.SearchStrategy[int]) -> st.SearchStrategy[list[Step]]:
    """`version` is that of each request."""
    sends = st.tuples(st.just("send"), WHO, version, PARTITION, SEQUENCE)
    ends = st.tuples(st.just("end"), WHO, version, st.booleans())
    step = st.one_of(
        sends,
        sends,
        ends,
        ends,
        st.tuples(st.just("add"), WHO, PARTITION),
        st.tuples(st.just("add_offsets"), WHO),
        st.tuples(st.just("commit_offset"), WHO, version),
        st.tuples(st.just("init"), st.sampled_from(["nobody", "current", "older"])),
    )
    return st.lists(step.map(list), min_size=3, max_size=MOST_STEPS)


# Clients with version 1, clients with version 2, and those that mix both, which no library does.
SEQUENCES: st.SearchStrategy[list[Step]] = st.sampled_from([[1], [2], [1, 2], [1, 2]]).flatmap(
    lambda versions: _steps(st.sampled_from(versions))
)


def read_recorded() -> list[Recorded]:
    rows = [json.loads(line) for line in RECORDED.read_text().splitlines()]
    return [Recorded(row["steps"], row["answers"]) for row in rows]


def write_recorded(sequences: Sequence[Recorded]) -> None:
    RECORDED.write_text("".join(json.dumps(each._asdict()) + "\n" for each in sequences))


class Performance:
    """One transactional id and what its producers know. Producer ids are numbered as they appear."""

    def __init__(self, wire: WireClient, name: str, topic: str) -> None:
        self._wire = wire
        self._name = name
        self._topic = topic
        self._ids: list[int] = []
        self._sequences: dict[tuple[Identity, int], int] = {}
        self._producer = NOBODY
        self._take(self._init(NOBODY))

    def perform(self, steps: Sequence[Step]) -> list[Answer]:
        """The answers, and at the end the description of the transaction."""
        answers = [getattr(self, f"_do_{step[0]}")(*step[1:]) for step in steps]
        described = describe(self._wire, self._name)
        return [*answers, [described.error, described.state, described.epoch, described.partitions]]

    def _who(self, who: str) -> Identity:
        producer = self._producer._replace(error="")
        match who:
            case "older":
                return producer._replace(epoch=producer.epoch - 1)
            case "newer":
                return producer._replace(epoch=producer.epoch + 1)
            case "stranger":
                return producer._replace(producer_id=987_654_321)
            case "nobody":
                return NOBODY
        return producer

    def _init(self, expected: Identity) -> Identity:
        """A transaction that is open is aborted first."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            answer = init_producer(self._wire, self._name, identity=expected)
            if answer.error != "CONCURRENT_TRANSACTIONS" or time.monotonic() > deadline:
                return answer
            time.sleep(0.02)  # a poll's pause

    def _take(self, answer: Identity) -> Answer:
        if answer.error != "NONE":
            return [answer.error]
        if answer.producer_id >= 0:
            self._producer = answer
            if answer.producer_id not in self._ids:
                self._ids.append(answer.producer_id)
            return [answer.error, self._ids.index(answer.producer_id), answer.epoch]
        return [answer.error]

    def _do_init(self, who: str) -> Answer:
        expected = self._who(who)
        return self._take(self._init(NOBODY if expected.epoch < 0 else expected))

    def _do_add(self, who: str, partition: int) -> Answer:
        return list(add_partitions(self._wire, self._name, self._who(who), self._topic, [partition]))

    def _do_add_offsets(self, who: str) -> Answer:
        return [add_offsets(self._wire, self._name, self._who(who), self._name)]

    def _do_send(self, who: str, version: int, partition: int, order: str) -> Answer:
        producer = self._who(who)
        following = self._sequences.get((producer, partition), 0)
        sequence = {"next": following, "again": max(following - 1, 0), "gap": following + 3}[order]
        produce_version = 12 if version == 2 else 11
        error, _ = send(self._wire, self._name, producer, self._topic, sequence, partition, produce_version)
        if error == "NONE":
            self._sequences[producer, partition] = sequence + 1
        return [error]

    def _do_commit_offset(self, who: str, version: int) -> Answer:
        commit_version = 5 if version == 2 else 3
        return [commit_offset(self._wire, self._name, self._who(who), self._name, self._topic, 7, commit_version)]

    def _do_end(self, who: str, version: int, commits: bool) -> Answer:  # from a row of the file
        end_version = 5 if version == 2 else 4
        answer = end(self._wire, self._name, self._who(who), commits=commits, version=end_version)
        if answer.error == "NONE":
            await_state(self._wire, self._name, "CompleteCommit", "CompleteAbort")
        return self._take(answer)
