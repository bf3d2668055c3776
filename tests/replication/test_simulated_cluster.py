"""A cluster of three brokers in one process on a simulated host: kills, power losses, cuts and changes of leaders, with
invariants after every step. A failing seed prints its history; `ODRADEK_REPLICATION_SEEDS=1000-1999` runs others."""

import pytest

from tests.replication.cluster import run_seed
from tests.replication.planted_bugs import BUGS, seeds_until_found
from tests.seeds import seed_parameters

FOUND_BY_THE_MODEL = ("a replica joins before it has what is committed",)  # see tests/replica/test_in_sync_model
FOUND_SOON = (
    "a follower never truncates",
    "the high watermark does not wait for followers",
    "the high watermark trusts an in-sync set that is not confirmed",
)


@pytest.mark.parametrize("seed", seed_parameters("ODRADEK_REPLICATION_SEEDS", range(15), quick=5))
def test_nothing_acknowledged_is_lost_and_replicas_agree(seed: int) -> None:
    cluster = run_seed(seed)
    assert sum(map(len, cluster.acknowledged.values())) > 0


@pytest.mark.parametrize("bug", FOUND_SOON)
def test_planted_bugs_are_found(bug: str) -> None:
    assert seeds_until_found(BUGS[bug], run_seed, 40) is not None


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("bug", [bug for bug in BUGS if bug not in FOUND_BY_THE_MODEL])
def test_every_planted_bug_is_found(bug: str) -> None:
    assert seeds_until_found(BUGS[bug], run_seed, 400) is not None


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_many_seeds() -> None:
    for seed in range(10_000, 11_000):
        run_seed(seed)
