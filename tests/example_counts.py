"""How many examples Hypothesis draws: half of `count` in `make test`, `EXAMPLES` times as many in the other suites."""

import os

FACTOR = float(os.environ.get("EXAMPLES", "0.5"))


def examples(count: int) -> int:
    return max(1, round(count * FACTOR))
