"""What a run keeps for itself while Spark starts."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from odradek.pipelines.spark.launching import own_interrupt

if TYPE_CHECKING:
    from types import FrameType


def test_ctrl_c_stays_ours_when_spark_takes_it() -> None:
    """PySpark's own handler cancels all jobs, and ends the process with an exception."""

    def ours(_number: int, _frame: FrameType | None) -> None:
        pass

    before = signal.signal(signal.SIGINT, ours)
    try:
        with own_interrupt():
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        assert signal.getsignal(signal.SIGINT) is ours
    finally:
        signal.signal(signal.SIGINT, before)
