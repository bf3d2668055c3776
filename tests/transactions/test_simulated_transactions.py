"""Concurrent transactions on a simulated broker that is killed, restarted, and whose requests are late and repeated.

`ODRADEK_TRANSACTION_SEEDS=0-2999` runs other seeds. A failing seed replays exactly.
"""

import logging
from collections.abc import Callable, Iterator

import pytest

from tests.planting import Planting, planting
from tests.seeds import chosen_seeds, seed_parameters
from tests.simulation import processes
from tests.transactions.mutations import MUTATIONS
from tests.transactions.simulated_broker import Died
from tests.transactions.story import tell

VARIABLE = "ODRADEK_TRANSACTION_SEEDS"
MOST_SEEDS = 300

# A death in the middle of a disk operation leaves coroutines of markers that nobody awaits.
pytestmark = [
    pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(autouse=True)
def nothing_fails_unseen(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """The disk fails here, and nothing else."""
    yield
    failed = [record for record in caplog.get_records("call") if record.exc_info and not is_of_disk(record)]
    assert not {repr(record.exc_info and record.exc_info[1]) for record in failed}


def is_of_disk(record: logging.LogRecord) -> bool:
    problem = record.exc_info[1] if record.exc_info else None
    while problem is not None and not isinstance(problem, (OSError, Died)):
        problem = problem.__cause__ or problem.__context__
    return problem is not None


@pytest.mark.parametrize("seed", seed_parameters(VARIABLE, range(12), quick=3))
def test_transactions_are_whole(seed: int) -> None:
    result = tell(seed)
    assert not result.anomalies
    assert result.lives > 1


@pytest.mark.more
def test_a_seed_replays_exactly_in_another_process() -> None:
    program = "from tests.transactions.story import tell; print(*[tell(seed).digest for seed in (0, 3)])"
    one, other = processes.outputs(program)
    assert len(set(one.split())) == 2
    assert one == other


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("part", range(10))
def test_transactions_are_whole_with_thousands_of_seeds(
    part: int, record_property: Callable[[str, object], None]
) -> None:
    """3,000 seeds, unless others are chosen."""
    chosen = chosen_seeds(VARIABLE, range(1000, 4000))
    found = {seed: result for seed in chosen[part::10] if (result := tell(seed).anomalies)}
    record_property("seeds", len(chosen[part::10]))
    assert not found


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_a_planted_bug_is_found(
    mutation: Callable[[Planting], None], record_property: Callable[[str, object], None]
) -> None:
    with planting() as patch:
        mutation(patch)
        for seed in range(MOST_SEEDS):
            found = tell(seed).anomalies
            if found:
                kinds = sorted({each.partition(":")[0] for each in found})
                record_property("seeds", seed + 1)
                print(f"{mutation.__name__}: {seed + 1} seeds, {', '.join(kinds)}")
                return
    pytest.fail(f"{mutation.__name__} was not found in {MOST_SEEDS} seeds")
