"""Supervises a pipeline: restarts it after failures with growing delays, until it is stopped or gives up."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

from odradek.conventions.dataclass import dataclass
from odradek.conventions.figures import brief_duration_text
from odradek.pipelines.operating.attempts import STOP_TIMEOUT_S, Attempt
from odradek.pipelines.operating.backoff import Backoff, Retry
from odradek.pipelines.operating.status import State

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Sequence

    from odradek.pipelines.operating.events import Event
    from odradek.pipelines.operating.publishing import Publisher

POLL_S = 0.25


@dataclass(slots=True)
class Outcome:
    """The result of an attempt."""

    error: str | None = None
    retry: Retry = Retry.PERHAPS
    ran_s: float | None = None  # since its queries started; None: they did not start
    has_progressed: bool = False  # whether a batch was finished


class Supervisor:
    """Runs until `is_stopped`, until the pipeline is done, or until it gives up."""

    def __init__(
        self, arguments: Sequence[str], publisher: Publisher, is_stopped: threading.Event, backoff: Backoff,
        *, must_run_at_once: bool = False, each_turn: Callable[[], None] | None = None,
    ) -> None:  # fmt: skip
        self._arguments, self._publisher, self._is_stopped, self._backoff = arguments, publisher, is_stopped, backoff
        self._must_run_at_once, self._each_turn = must_run_at_once, each_turn

    def run(self) -> str | None:
        """Supervises the pipeline; returns the error that it gave up on, or None."""
        failures = restarts = 0
        has_run = False
        while True:
            self._publisher.change(state=State.STARTING, restarts=restarts, next_try_s=None)
            outcome = self._attempt()
            if outcome.error is None or self._is_stopped.is_set():
                break
            has_run = has_run or outcome.ran_s is not None
            failures = self._backoff.failures_after(
                failures, outcome.ran_s or 0.0, has_progressed=outcome.has_progressed
            )
            is_hopeless = self._must_run_at_once and not has_run
            if is_hopeless or self._backoff.gives_up(outcome.retry, failures, has_run=has_run):
                self._publisher.change(state=State.FAILED, note="", next_try_s=None)
                return final_message(outcome, failures, is_hopeless=is_hopeless)
            self._pause(outcome.error, self._backoff.delay_s(failures, random.random()))
            if self._is_stopped.is_set():
                break
            restarts += 1
        self._publisher.change(state=State.STOPPED, note="", next_try_s=None)
        return None

    def _attempt(self) -> Outcome:
        outcome = Outcome()
        running_since_s: float | None = None
        stops_at_s: float | None = None
        with Attempt(self._arguments) as attempt:
            mark = attempt.mark
            self._publisher.change(attempt_pid=mark.pid, attempt_began=mark.began)
            while not attempt.is_over:
                for event in attempt.poll(POLL_S):
                    self._publisher.take(event)
                    outcome.has_progressed |= is_progress(event)
                    if event["kind"] == "running":
                        running_since_s = time.monotonic()
                    elif event["kind"] == "failed":
                        outcome.error, outcome.retry = event["error"], Retry(event["retry"])
                self._turn()
                if self._is_stopped.is_set() and stops_at_s is None:
                    self._publisher.change(state=State.STOPPING)
                    attempt.interrupt()
                    stops_at_s = time.monotonic() + STOP_TIMEOUT_S
                if stops_at_s is not None and time.monotonic() > stops_at_s:
                    attempt.kill()
            for event in attempt.poll(0):
                self._publisher.take(event)
            code = attempt.wait()
        self._publisher.change(attempt_pid=None, attempt_began="")
        if running_since_s is not None:
            outcome.ran_s = time.monotonic() - running_since_s
        if code and outcome.error is None and not self._is_stopped.is_set():
            outcome.error = f"process {ending(code)}, no error output"
            outcome.retry = Retry.LIKELY if code < 0 else Retry.PERHAPS
            self._publisher.take({"kind": "failed", "error": outcome.error, "retry": str(outcome.retry)})
        return outcome

    def _pause(self, error: str, delay_s: float) -> None:
        self._publisher.say(f"failed: {error}; retrying in {brief_duration_text(delay_s * 1000)}")
        self._publisher.change(state=State.WAITING, next_try_s=time.time() + delay_s)
        ends_at_s = time.monotonic() + delay_s
        while time.monotonic() < ends_at_s and not self._is_stopped.wait(POLL_S):
            self._turn()

    def _turn(self) -> None:
        self._publisher.turn()
        if self._each_turn is not None:
            self._each_turn()


def is_progress(event: Event) -> bool:
    return event["kind"] == "batch" or (event["kind"] == "progress" and not event["is_idle"])


def ending(code: int) -> str:
    return f"ended with exit code {code}" if code > 0 else f"was killed (signal {-code})"


def final_message(outcome: Outcome, failures: int, *, is_hopeless: bool) -> str:
    if is_hopeless:
        return f"{outcome.error}"
    if outcome.retry is Retry.NEVER:
        return f"{outcome.error} (not retried: a retry cannot succeed)"
    return f"gave up after {failures} consecutive failures; the last one: {outcome.error}"
