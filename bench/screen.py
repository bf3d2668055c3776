"""Output during a run: a progress bar, a line per run, and the table at the end."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from bench import comparison_report
from bench.comparison import Verdict
from bench.metrics import METRICS
from bench.results import AFTER, BEFORE, Results, Run
from bench.table import MET, MISSED, headings, rows_of, target_sentences

COMPARED_STYLES = {
    Verdict.NOT_WORSE: "green",
    Verdict.WORSE: "red",
    Verdict.WITHIN_NOISE: "yellow",
    Verdict.NOT_MEASURED: "dim",
}
NAME_COLUMNS = 2  # in which long names may be wrapped
STYLES = {MET: "[green]met[/]", MISSED: "[red]missed[/]", "": ""}


class Screen:
    def __init__(self, console: Console) -> None:
        self.console = console
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
        )

    @contextmanager
    def showing(self, total_runs: int) -> Iterator[None]:
        with self._progress:
            self._task = self._progress.add_task("starting the brokers", total=total_runs)
            yield
            self._progress.update(self._task, description="done")

    def expect(self, further_runs: int) -> None:
        """Extend the progress bar."""
        self._progress.update(self._task, total=self._progress.tasks[0].completed + further_runs)

    def on_run(self, workload: str, broker: str, which: str, run: Run | None) -> None:
        """Show the figures of a run that has ended."""
        figures = [] if run is None else [f"{METRICS[key].write(run[key])} {METRICS[key].label}" for key in shown(run)]
        words = f"{workload:<32} {broker:<20} {which:<8} {'   '.join(figures)}".rstrip()
        self._progress.print(words, highlight=False, soft_wrap=True)
        self._progress.update(self._task, advance=1, description=workload)

    def line(self, text: str) -> None:
        self.console.print(text, highlight=False, soft_wrap=True, markup=False)

    def conclude(self, results: Results) -> None:
        table = Table(*headings(results), title=f"{results.date}, {results.generator}")
        for experiment in results.experiments:
            for row in rows_of(experiment):
                *cells, verdict = row.cells
                table.add_row(*cells, STYLES[verdict])
            table.add_section()
        self.console.print(table)
        for sentence in target_sentences(results):
            self.line(sentence)

    def compare(self, results: Results, tolerance: float) -> None:
        title = f"{results.brokers[AFTER]} against {results.brokers[BEFORE]}"
        table = Table(title=title)
        for position, heading in enumerate(comparison_report.headings()):
            table.add_column(heading, no_wrap=position >= NAME_COLUMNS)
        for rows in comparison_report.rows_of(results, tolerance):
            for row in rows:
                *cells, verdict = row.cells
                table.add_row(*cells, f"[{COMPARED_STYLES[row.verdict]}]{verdict}[/]")
            table.add_section()
        self.console.print(table)
        self.line(comparison_report.conclusion(results, tolerance))
        for text in comparison_report.worse_rows(results, tolerance):
            self.line(text)


def shown(run: Run) -> list[str]:
    """The figures of a run that fit on a line: percentiles instead of rates, CPU by operation instead of its sum."""
    hidden = {"records_per_s", "mb_per_s", "broker_cpu_s_per_gb"} if "p50_ms" in run else {"broker_cpu_percent"}
    if "broker_cpu_percent" in run:
        hidden.add("broker_cpu_s")
    return [key for key in METRICS if key in run and key not in hidden]
