"""A client that consumes, transforms and produces in transactions, and repeats requests without an answer."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence

from odradek.protocol.errors import ErrorCode
from odradek.protocol.topic_partition import TopicPartition
from tests.transactions import requests
from tests.transactions.history import Consumed, Ending, History, Transaction, Write
from tests.transactions.requests import NOBODY, Connection, Identity, Lost, Versions

# A client looks for its coordinator again after these errors, as Java's producer does. After others it repeats its
# request at the same broker.
REROUTED = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.REQUEST_TIMED_OUT,
    }
)
# Errors after which a request to a coordinator is repeated. Those of the coordinator's partition are not among them:
# the client would ask a broker that does not lead it again and again.
RETRIED_AT_COORDINATOR = REROUTED | {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNSTABLE_OFFSET_COMMIT,
}
# The same for a request to the leader of a partition.
RETRIED_AT_LEADER = frozenset(
    {
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)
FENCED = frozenset(
    {
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    }
)
ABORTED = frozenset({ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.INVALID_TXN_STATE})
ATTEMPTS = 12


class MustAbort(Exception):  # an outcome, not an error
    """The transaction can only be aborted."""


class MustInit(Exception):  # an outcome, not an error
    """The producer needs a new epoch."""


class Gone(Exception):  # an outcome, not an error
    """The client dies in the middle of its transaction."""


class Producer:
    def __init__(
        self,
        name: str,
        transactional_id: str,
        versions: Versions,
        connection: Connection,
        history: History,
        chance: random.Random,
        outputs: Sequence[TopicPartition],
        source: TopicPartition,
        now_ms: Callable[[], int],
        timeout_ms: int,
        pause_ms: float = 400.0,
    ) -> None:
        self.name = name
        self.transactional_id = transactional_id
        self.group = f"group-{transactional_id}"
        self.is_stopping = False
        self._has_late_requests = False
        self._versions = versions
        self._connection = connection
        self._history = history
        self._chance = chance
        self._outputs = outputs
        self._source = source
        self._now_ms = now_ms
        self._timeout_ms = timeout_ms
        self._pause_ms = pause_ms
        self._identity = NOBODY
        self._starts = 0  # of producers with this transactional id, when this one got its identity
        self._began_s = 0.0
        self._clock_jumps = 0  # when the transaction began
        self._sequences: dict[TopicPartition, int] = {}
        self._joined: set[TopicPartition | str] = set()
        self._position = 0

    async def run(self) -> None:
        while not self.is_stopping:
            try:
                if self._chance.random() < 0.5:  # otherwise in the moment of the last answer
                    await self._pause()
                if self._identity == NOBODY:
                    await self._init(NOBODY)
                await self._transact()
                if self._has_late_requests and not self._versions.joins_implicitly:
                    raise MustInit
            except MustInit:
                expected = self._identity if self._chance.random() < 0.3 else NOBODY
                self._identity = NOBODY
                await self._init(expected)
            except Gone:
                self._identity = NOBODY
                await self._pause(10)

    def expect_late_request(self) -> None:
        """A request may arrive after its answer: version 1 of transactions cannot tell it from one of the next
        transaction, unless that one has another epoch."""
        self._has_late_requests = True

    async def _pause(self, times: float = 1.0) -> None:
        await asyncio.sleep(self._chance.random() * times * self._pause_ms / 1000)  # a poll's pause

    # Starting

    async def _init(self, expected: Identity) -> None:
        while not self.is_stopping:
            starts = self._connection.starts(self.transactional_id)
            try:
                error, identity = await requests.init_producer(
                    self._connection, self.transactional_id, self._timeout_ms, expected, self._versions.init
                )
            except Lost:
                expected = NOBODY
                continue
            if error is ErrorCode.NONE:
                self._take(identity, starts + 2)  # with this one
                self._has_late_requests = False
                break
            if error in FENCED:
                expected = NOBODY
            elif error not in RETRIED_AT_COORDINATOR:
                self._history.report(f"unexpected error: {error.name} for InitProducerId of {self.name}")
            await self._pause()
        await self._fetch_position()

    def _take(self, identity: Identity, starts: int) -> None:
        self._identity = identity
        self._starts = starts
        self._sequences = {}

    def _report_if_undeserved(self, error: ErrorCode, name: str) -> None:
        """A producer is fenced by another start with its transactional id, or when its transaction took too long. Of
        version 1 a late request may have begun a transaction."""
        is_deserved = (
            self._connection.starts(self.transactional_id) != self._starts
            or asyncio.get_running_loop().time() - self._began_s >= self._timeout_ms / 1000
            or self._history.clock_jumps != self._clock_jumps
            or (self._has_late_requests and not self._versions.joins_implicitly)
        )
        if error in FENCED and not is_deserved:
            self._history.report(f"fenced without a cause: {error.name} for {name} of {self.name}")

    async def _fetch_position(self) -> None:
        while not self.is_stopping:
            try:
                error, offset = await requests.fetch_offset(self._connection, self.group, self._source)
            except Lost:
                continue
            if error is ErrorCode.NONE:
                self._position = offset
                return
            if error not in RETRIED_AT_COORDINATOR:
                self._history.report(f"unexpected error: {error.name} for OffsetFetch of {self.name}")
            await self._pause()

    # One transaction

    async def _transact(self) -> None:
        if self.is_stopping or self._identity == NOBODY:
            return
        chance = self._chance
        transaction = self._history.begin(self.name, self.transactional_id)
        self._began_s = asyncio.get_running_loop().time()
        self._clock_jumps = self._history.clock_jumps
        self._joined = set()
        fewest_sends = 0 if self._versions.joins_implicitly else 1  # version 1 ends what has begun only
        commits = chance.random() < 0.75
        try:
            for number in range(chance.randint(fewest_sends, 4)):
                await self._send(transaction, number, chance.choice(self._outputs))
                if chance.random() < 0.04:
                    raise Gone
            if transaction.writes and chance.random() < 0.6:
                await self._consume(transaction)
            if chance.random() < 0.05:
                await self._pause(100)  # longer than the timeout of transactions
        except MustAbort:
            commits = False
        if not transaction.writes:
            commits = False  # clients commit only what has begun
        await self._end(transaction, commits=commits)

    async def _send(self, transaction: Transaction, number: int, partition: TopicPartition) -> None:
        if not self._versions.joins_implicitly and partition not in self._joined:
            await self._insist(
                "AddPartitionsToTxn",
                lambda: requests.add_partition(self._connection, self.transactional_id, self._identity, partition),
            )
            self._joined.add(partition)
        sequence = self._sequences.get(partition, 0)
        writes = [
            Write(f"{transaction.number}.{number}.{index}".encode(), partition, self._history.now())
            for index in range(self._chance.randint(1, 3))
        ]
        transaction.writes += writes
        now_ms = self._now_ms()
        offset = -1

        async def send() -> ErrorCode:
            nonlocal offset
            error, offset = await requests.produce(
                self._connection,
                self.transactional_id,
                self._identity,
                partition,
                sequence,
                [write.value for write in writes],
                now_ms,
                self._versions.produce,
            )
            return error

        await self._insist("Produce", send, RETRIED_AT_LEADER)
        self._sequences[partition] = sequence + len(writes)
        for index, write in enumerate(writes):
            write.offset = offset + index

    async def _consume(self, transaction: Transaction) -> None:
        if not self._versions.joins_implicitly:
            await self._insist(
                "AddOffsetsToTxn",
                lambda: requests.add_offsets(self._connection, self.transactional_id, self._identity, self.group),
            )
        end_offset = self._position + self._chance.randint(1, 5)
        consumed = Consumed(self.group, self._source, self._position, end_offset)
        transaction.consumed.append(consumed)
        await self._insist(
            "TxnOffsetCommit",
            lambda: requests.commit_offset(
                self._connection,
                self.transactional_id,
                self._identity,
                self.group,
                self._source,
                end_offset,
                self._versions.commit_offsets,
            ),
        )
        consumed.is_acknowledged = True

    async def _insist(
        self,
        name: str,
        ask: Callable[[], Awaitable[ErrorCode]],
        retried: frozenset[ErrorCode] = RETRIED_AT_COORDINATOR,
    ) -> None:
        for _ in range(ATTEMPTS):
            try:
                error = await ask()
            except Lost:
                error = ErrorCode.REQUEST_TIMED_OUT
                if self._chance.random() < 0.25:
                    break
            if error is ErrorCode.NONE:
                return
            if error in FENCED:
                self._report_if_undeserved(error, name)
                raise MustInit
            if error in ABORTED:
                break
            if error not in retried:
                self._history.report(f"unexpected error: {error.name} for {name} of {self.name}")
                break
            if self.is_stopping:
                raise Gone
            await self._pause()
        self.expect_late_request()  # it may have been carried out, or will be
        raise MustAbort

    async def _end(self, transaction: Transaction, *, commits: bool) -> None:
        if commits:
            transaction.commit_requested_at = self._history.now()
        is_unknown = False
        starts = self._connection.starts(self.transactional_id)
        while True:
            try:
                error, identity = await requests.end(
                    self._connection, self.transactional_id, self._identity, self._versions.end, commits=commits
                )
            except Lost:
                error, identity = ErrorCode.REQUEST_TIMED_OUT, NOBODY
            if error is ErrorCode.NONE:
                self._finish(transaction, identity, starts, commits=commits)
                return
            self._report_if_undeserved(error, "EndTxn")
            is_refused = error in FENCED or error in ABORTED
            if not is_refused:
                is_unknown = True
            if commits and is_unknown:
                transaction.ending = Ending.UNKNOWN
            if is_refused or self.is_stopping or self._chance.random() < 0.15:
                raise MustInit
            if error not in RETRIED_AT_COORDINATOR:
                self._history.report(f"unexpected error: {error.name} for EndTxn of {self.name}")
            await self._pause()

    def _finish(self, transaction: Transaction, identity: Identity, starts: int, *, commits: bool) -> None:
        self._history.end(transaction, Ending.COMMITTED if commits else Ending.ABORTED)
        if self._versions.joins_implicitly:
            self._take(identity, starts)
        if commits:
            for consumed in transaction.consumed:
                self._position = consumed.end_offset
        elif not self._versions.joins_implicitly:
            raise MustInit  # what an aborted transaction has sent last is not known
