"""Compaction, moves between log directories, unclean elections and cuts in one or both directions, in a simulated
cluster: no replica loses a key or brings one back.

`ODRADEK_CLUSTER_SEEDS=100-199` runs other seeds.
"""

import pytest

from tests.cluster.compacted_story import BUGS, tell
from tests.cluster.test_whole_cluster import VARIABLE
from tests.replication.planted_bugs import seeds_until_found
from tests.seeds import chosen_seeds

MOST_SEEDS = 100


@pytest.mark.timeout(600)
def test_a_truncated_replica_keeps_the_newest_value_of_each_key() -> None:
    assert sum(tell(seed).key_values.truncations for seed in chosen_seeds(VARIABLE, range(2))) > 0


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("part", range(10))
def test_many_seeds(part: int) -> None:
    """3,000 seeds, unless others are chosen."""
    for seed in chosen_seeds(VARIABLE, range(1000, 4000))[part::10]:
        tell(seed)


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("bug", BUGS)
def test_every_planted_bug_is_found(bug: str) -> None:
    assert seeds_until_found(BUGS[bug], tell, MOST_SEEDS) is not None
