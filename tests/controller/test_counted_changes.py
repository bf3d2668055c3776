"""What a request counts for the quota of topic changes: what it writes, once."""

import asyncio
from typing import Any

import pytest

from odradek.controller.controller import write_request
from odradek.controller.decisions.topics import Cluster
from odradek.controller.metadata_writer import ChangeNotMade
from odradek.metadata.changes import Change
from odradek.metadata.store import CommitOutcome, CommitTooLarge, StoreError
from odradek.security.quotas.mutation_quota import LimitedMutations
from odradek.security.quotas.rate import QuotaWindow
from odradek.security.quotas.token_bucket import TokenBucket
from tests.controller.test_metadata_writer import AllocateOne, Bench, allocate_one

LIMIT = 1
FULL = 11.0


class Request:
    """A change of 5 partitions, written while the store answers `outcomes`, and then as it does. `gate` holds its
    commits while it is clear."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *outcomes: CommitOutcome | Exception) -> None:
        self.bench = Bench()
        self.bucket = TokenBucket(QuotaWindow(11, 1000))
        self.gate = asyncio.Event()
        self.gate.set()
        self.is_committing = asyncio.Event()
        self._outcomes = [*outcomes]
        self._commit = self.bench.store.commit
        monkeypatch.setattr(self.bench.store, "commit", self._commit_later)

    async def _commit_later(self, *changes: Any, **version: Any) -> CommitOutcome:
        self.is_committing.set()
        await self.gate.wait()
        if not self._outcomes:
            return await self._commit(*changes, **version)
        outcome = self._outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    @property
    def tokens(self) -> float:
        return self.bucket.tokens(LIMIT, 0)

    async def write(self) -> Any:
        mutations = LimitedMutations(self.bucket, LIMIT, lambda: 0, is_strict=True)

        await self.bench.writer.claim()
        return (await write_request(self.bench.writer, CountedAllocation(mutations=mutations))).result


class CountedAllocation(AllocateOne):
    def decide(self, cluster: Cluster) -> tuple[int, list[Change]]:
        assert self.mutations.allows(5)
        return allocate_one(cluster)


@pytest.mark.parametrize("conflicts", [0, 1, 3])
async def test_a_change_that_is_decided_again_after_conflicts_counts_once(
    monkeypatch: pytest.MonkeyPatch, conflicts: int
) -> None:
    request = Request(monkeypatch, *[CommitOutcome.VERSION_CONFLICT] * conflicts)
    assert await request.write() == 0
    assert request.tokens == FULL - 5


async def test_a_change_that_is_refused_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    for outcome in (CommitTooLarge("too large"), CommitOutcome.FENCED):
        request = Request(monkeypatch, outcome)
        assert await request.write() != 0
        assert request.tokens == FULL


async def test_a_change_that_cannot_be_written_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    for outcomes, error in (
        ([StoreError("away")], StoreError),
        ([CommitOutcome.VERSION_CONFLICT] * 5, ChangeNotMade),
    ):
        request = Request(monkeypatch, *outcomes)
        with pytest.raises(StoreError) as raised:
            await request.write()
        assert raised.type is error
        assert request.tokens == FULL


@pytest.mark.parametrize(
    ("outcome", "counted"),
    [
        (StoreError("away"), 0),
        (CommitTooLarge("too large"), 0),
        (CommitOutcome.FENCED, 0),
        (CommitOutcome.COMMITTED, 5),
    ],
)
async def test_a_change_whose_caller_is_cancelled_counts_if_it_is_written(
    monkeypatch: pytest.MonkeyPatch, outcome: CommitOutcome | Exception, counted: int
) -> None:
    request = Request(monkeypatch, outcome)
    request.gate.clear()
    writing = asyncio.ensure_future(request.write())
    await request.is_committing.wait()
    writing.cancel()
    await asyncio.wait((writing,))
    assert request.tokens == FULL - 5
    request.gate.set()
    await request.bench.writer.stop_writing()
    assert request.tokens == FULL - counted
