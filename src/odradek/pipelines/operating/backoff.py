"""When a pipeline that failed is started again. Pure rules: who asks brings the time and the chance."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Healing(StrEnum):
    """Whether a failure may go away by itself."""

    LIKELY = "likely"  # something outside is away: brokers, the database, Spark's process
    PERHAPS = "perhaps"  # a batch failed, and nobody knows why
    NEVER = "never"  # the definition, its checkpoint or the data must change first


@dataclass(frozen=True, slots=True)
class Backoff:
    """Doubles from `first_s` to `most_s`, spread by a share of itself so that many pipelines do not come at once."""

    first_s: float = 1.0
    most_s: float = 300.0
    spread: float = 0.25
    well_s: float = 60.0  # a run of this length that finished batches makes up for the failures before it
    most_failures: int = 10  # in a row, of those that heal perhaps

    def failures_after(self, failures: int, ran_s: float, *, has_progressed: bool) -> int:
        """Failures in a row, one more included: a batch that takes long to fail is no run that went well."""
        return 1 if has_progressed and ran_s >= self.well_s else failures + 1

    def delay_s(self, failures: int, chance: float) -> float:
        """The pause after so many failures in a row; `chance` is between 0 and 1."""
        doubled = self.first_s * 2.0 ** min(failures - 1, 62)
        return min(self.most_s, doubled) * (1 - self.spread + 2 * self.spread * chance)

    def gives_up(self, healing: Healing, failures: int) -> bool:
        return healing is Healing.NEVER or (healing is Healing.PERHAPS and failures >= self.most_failures)
