"""Results of a bench, with rates and percentiles, as text or JSON; and its progress bar."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from odradek.cli.framework.output import print_json, say, shows_progress, strong
from odradek.conventions.figures import count_text, duration_text, percentiles, size_text

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


def progress_bar(description: str, total: int | None) -> AbstractContextManager[Tick]:
    """A bar on a terminal. Its value is a function that takes the number of records so far."""
    if not shows_progress():
        return nullcontext(lambda _done: None)
    from odradek.cli.framework.progress import count_progress

    return count_progress(description, total)
