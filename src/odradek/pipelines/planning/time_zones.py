"""Time zones whose clocks are set back: a text of a local time with hours stands for two times then."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

if TYPE_CHECKING:
    from odradek.pipelines.definition.model import Pipeline

ZONE = "spark.sql.session.timeZone"
YEARS = range(2020, 2030)
MONTHS = (1, 4, 7, 10)


def changing_zone(pipeline: Pipeline) -> str | None:
    """The time zone of a pipeline if its clocks are set back in one of some years; None for others."""
    name = pipeline.spark.get(ZONE, "UTC")
    try:
        zone = ZoneInfo(name)
    except (ValueError, OSError, ZoneInfoNotFoundError):  # an offset such as +02:00, or not a zone
        return None
    days = [datetime(year, month, 1, tzinfo=zone) for year in YEARS for month in MONTHS]
    return name if len({each.utcoffset() for each in days}) > 1 else None
