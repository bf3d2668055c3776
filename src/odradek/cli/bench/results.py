"""Results of a bench, with rates and percentiles, as text or JSON; and its progress bar."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from odradek.cli.framework.output import print_json, say, shows_progress, strong
from odradek.conventions.figures import count_text, duration_text, percentiles, size_text

REFRESH_S = 0.1

Tick = Callable[[int], None]


@dataclass
class Result:
    """The result of a run. `latencies_ms` are a sample; `facts` are the options of the run."""

    bench: str
    engine: str
    records: int
    size_bytes: int
    seconds: float
    latencies_ms: Sequence[float] = ()
    latency_of: str = ""
    facts: dict[str, Any] = field(default_factory=dict)

    def show(self, as_json: bool) -> None:
        """Print the result: sentences, or one object."""
        rate = self.records / self.seconds if self.seconds else 0.0
        rate_bytes = self.size_bytes / self.seconds if self.seconds else 0.0
        spread = percentiles(self.latencies_ms)
        if as_json:
            fields = {
                "bench": self.bench,
                "engine": self.engine,
                **self.facts,
                "records": self.records,
                "bytes": self.size_bytes,
                "seconds": round(self.seconds, 4),
                "records_per_second": round(rate, 1),
                "bytes_per_second": round(rate_bytes, 1),
            }
            if spread:
                fields["latency_ms"] = {name: round(value, 4) for name, value in spread.items()}
            print_json(fields)
            return
        took = f"{count_text(self.records, 'record')}, {size_text(self.size_bytes)} in {self.seconds:.2f} s"
        say(f"{strong(self.bench)}  {took}")
        say(f"  {count_text(rate, 'record')}/s · {size_text(rate_bytes)}/s")
        if spread:
            shown = ", ".join(f"{name} {duration_text(value)}" for name, value in spread.items())
            say(f"  {self.latency_of}: {shown}")


@contextmanager
def progress_bar(description: str, total: int | None) -> Iterator[Tick]:
    """Yields a function that takes the number of records so far. It draws ten times a second, on a terminal only."""
    if not shows_progress():
        yield lambda _done: None
        return
    from odradek.cli.framework.progress import count_progress

    began_at = shown_at = time.monotonic()

    with count_progress(description, total) as update:

        def tick(done: int) -> None:
            nonlocal shown_at
            now = time.monotonic()
            if now - shown_at >= REFRESH_S:
                shown_at = now
                update(done, f"{done / (now - began_at):,.0f}/s")

        yield tick
