"""The command `odradek` with a broker that counts no requests, errors, bytes or times: the other side of the experiment
`metrics`. It has no setting of its own, because a broker without metrics is of no use outside it."""

from collections.abc import Callable
from typing import Any

from odradek.cli.main import main
from odradek.handlers import dispatch, envelope, fetch, partial_refusals
from odradek.handlers.request_record import MeasuredApi
from odradek.metrics.histogram import Histogram
from odradek.metrics.request_metrics import ApiMetrics
from odradek.metrics.topic_traffic import TopicTraffic
from odradek.server.monitoring.loop_lag import LoopLag

RECORDERS: tuple[tuple[Any, str], ...] = (
    (ApiMetrics, "answered"),
    (ApiMetrics, "answered_later"),
    (ApiMetrics, "throttled"),
    (ApiMetrics, "failed"),
    (MeasuredApi, "count_throttle_and_slowness"),
    (TopicTraffic, "produced"),
    (TopicTraffic, "fetched"),
    (Histogram, "observe"),
    (LoopLag, "start"),
    (dispatch, "count_errors"),
    (envelope, "count_errors"),
    (partial_refusals, "count_errors"),
    (fetch, "count_fetched"),
)


def replace_recorders(by: Callable[..., None]) -> None:
    for owner, name in RECORDERS:
        if not callable(getattr(owner, name, None)):
            raise AttributeError(f"{owner.__name__}.{name} is gone: RECORDERS must name its successor")
        setattr(owner, name, by)


def do_nothing(*_arguments: object, **_named: object) -> None:
    pass


if __name__ == "__main__":
    replace_recorders(do_nothing)
    main()
