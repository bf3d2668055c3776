"""How many examples Hypothesis draws: few in `make test`, `EXAMPLES` times as many in `make soak`."""

import os

FACTOR = int(os.environ.get("EXAMPLES", "1"))


def examples(count: int) -> int:
    return count * FACTOR
