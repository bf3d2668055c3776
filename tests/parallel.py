"""Tests in parallel (`-n N`): one process collects the tests and reports their results, and forks of it run them.

Collecting takes 10 s of processor time, in a fresh checkout 21 s, because pytest rewrites the assert statements of all
modules: once for all workers. Each worker runs groups of tests, one after another, and gets the next when it has run
one. A worker that crashes fails the test that it ran, and another runs the rest of its group.
"""

from __future__ import annotations

import atexit
import contextlib
import multiprocessing
import os
import warnings
from collections import defaultdict
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.config import create_terminal_writer

from tests.suites import needs_spark

if TYPE_CHECKING:
    from collections.abc import Iterable
    from multiprocessing.connection import Connection

# How many workers run groups of a kind: a session of Spark is a JVM of 1 GiB that compiles the same code as another.
WORKERS_OF_KIND = {"spark-session": 1, "spark-processes": 1}
# Tests in these folders start processes and wait for them: the tests of a file run side by side, too.
WAITING_FOLDERS = (
    "tests/bench/",
    "tests/cli/",
    "tests/clients/",
    "tests/crash/",
    "tests/deploy/",
    "tests/exactly_once/",
    "tests/groups/",
    "tests/server/",
    "tests/testing/",
)
END_TIMEOUT_S = 10.0  # of a worker, when the run is stopped
FORKS = multiprocessing.get_context("fork")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("parallel")
    group._addoption("-n", dest="workers", type=int, default=0, help="run the tests in this number of forks")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    option = session.config.option
    if not option.workers or option.collectonly or session.testsfailed:
        return None
    temporary_directories(session.config).getbasetemp()  # one for all workers
    ParallelRun(session).run(option.workers)
    return True


def temporary_directories(config: pytest.Config) -> Any:
    return config._tmp_path_factory  # type: ignore[attr-defined]  # set by pytest


class Groups:
    """The groups of tests that no worker has yet. Tests are numbers: their places in the session."""

    def __init__(self, groups: dict[str, list[int]]) -> None:
        self.waiting = groups
        self._workers: defaultdict[str, set[object]] = defaultdict(set)  # by kind of group

    def take(self, worker: object) -> tuple[str, list[int]]:
        """The first group that this worker may run; one without tests if it may run none of the rest."""
        group = next((group for group in self.waiting if self._may_run(worker, group)), "")
        self._workers[kind_of(group)].add(worker)
        return group, self.waiting.pop(group, [])

    def give_back(self, worker: object, group: str, tests: list[int]) -> None:
        """The tests that a worker that ended did not run."""
        for workers in self._workers.values():
            workers.discard(worker)
        if tests:
            self.waiting = {group: tests, **self.waiting}

    def _may_run(self, worker: object, group: str) -> bool:
        workers = self._workers[kind_of(group)]
        return worker in workers or len(workers) < WORKERS_OF_KIND.get(kind_of(group), len(workers) + 1)


class Worker:
    """A fork that runs tests, as the process that collected them sees it."""

    def __init__(self, session: pytest.Session, others: Iterable[Connection]) -> None:
        self.connection, far_end = FORKS.Pipe()
        self.group = ""
        self.tests: list[int] = []  # of the group: those without results
        self.newest = 0
        self.process = FORKS.Process(target=run_groups, args=(session, far_end, [self.connection, *others]))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # the fork uses none of this process's threads
            self.process.start()
        far_end.close()

    def run(self, group: str, tests: list[int]) -> None:
        """No tests: the worker ends."""
        self.group, self.tests = group, tests
        self.newest = tests[0] if tests else self.newest
        with contextlib.suppress(OSError):  # it crashed, as its end shows
            self.connection.send(tests)


class ParallelRun:
    def __init__(self, session: pytest.Session) -> None:
        self._session = session
        self._hook = session.config.hook
        groups: defaultdict[str, list[int]] = defaultdict(list)
        for number, item in enumerate(session.items):
            groups[group_of(item)].append(number)
        self._groups = Groups(dict(groups))
        self._workers: dict[Any, Worker] = {}

    def run(self, count: int) -> None:
        try:
            for _ in range(min(count, len(self._groups.waiting))):
                self._start_worker()
            while self._workers:
                for connection in wait(list(self._workers)):
                    self._receive(self._workers[connection])
        finally:
            self._end_workers()

    def _start_worker(self) -> None:
        worker = Worker(self._session, self._workers)
        self._workers[worker.connection] = worker
        worker.run(*self._groups.take(worker))

    def _receive(self, worker: Worker) -> None:
        try:
            is_end_of_test, events = worker.connection.recv()
        except (EOFError, OSError):
            self._worker_ended(worker)
            return
        self._report(worker, events)
        if is_end_of_test:
            del worker.tests[0]
            if worker.tests:
                worker.newest = worker.tests[0]
            else:
                worker.run(*self._groups.take(worker))

    def _worker_ended(self, worker: Worker) -> None:
        del self._workers[worker.connection]
        worker.connection.close()
        worker.process.join()
        if worker.tests or worker.process.exitcode:
            item, text = (
                self._session.items[worker.newest],
                f"its worker ended with exit code {worker.process.exitcode}",
            )
            phase: Any = "call" if worker.tests else "teardown"
            self._report(worker, [pytest.TestReport(item.nodeid, item.location, {}, "failed", text, phase)])
        self._groups.give_back(worker, worker.group, worker.tests[1:])
        if self._groups.waiting and len(self._workers) < self._session.config.option.workers:
            self._start_worker()

    def _report(self, worker: Worker, events: list[Any]) -> None:
        item = self._session.items[worker.newest]
        self._hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for event in events:
            if isinstance(event, tuple):
                names = ("warning_message", "when", "nodeid", "location")
                self._hook.pytest_warning_recorded.call_historic(kwargs=dict(zip(names, event, strict=True)))
                continue
            is_data = isinstance(event, dict)
            config = self._session.config
            report = self._hook.pytest_report_from_serializable(config=config, data=event) if is_data else event
            report.worker = worker.process.pid
            self._hook.pytest_runtest_logreport(report=report)
        self._hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        if self._session.shouldfail:
            raise self._session.Failed(self._session.shouldfail)
        if self._session.shouldstop:
            raise self._session.Interrupted(self._session.shouldstop)

    def _end_workers(self) -> None:
        """Those that still run, after a failure with `-x`, or Ctrl-C, end when they cannot report their test."""
        for worker in self._workers.values():
            worker.connection.close()
        for worker in self._workers.values():
            worker.process.join(END_TIMEOUT_S)
            worker.process.kill()
            worker.process.join()


class Events:
    """A plugin of a worker: what the process that collected the tests reports of this one."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._events: list[Any] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._events.append(self._config.hook.pytest_report_to_serializable(config=self._config, report=report))

    def pytest_warning_recorded(
        self, warning_message: warnings.WarningMessage, when: str, nodeid: str, location: tuple[str, int, str] | None
    ) -> None:
        text, category = str(warning_message.message), warning_message.category
        plain = warnings.WarningMessage(text, category, warning_message.filename, warning_message.lineno)
        self._events.append((plain, when, nodeid, location))

    def take(self) -> list[Any]:
        events, self._events = self._events, []
        return events


def run_groups(session: pytest.Session, connection: Connection, others: list[Connection]) -> None:
    """In the fork: runs the groups of tests that arrive, until one without tests."""
    for other in others:
        other.close()
    atexit._clear()
    _separate_output(session.config)
    events = Events(session.config)
    session.config.pluginmanager.register(events)
    events.take()  # older warnings, which are reported
    item = session.items[0]
    try:
        while tests := [session.items[number] for number in connection.recv()]:
            # Fixtures of the session last for the next group.
            for item, following in zip(tests, [*tests[1:], session], strict=True):
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                connection.send((True, events.take()))
    except (EOFError, OSError, KeyboardInterrupt):
        pass  # the run has been stopped
    finally:
        end = pytest.CallInfo.from_call(lambda: session._setupstate.teardown_exact(None), "teardown")
        if end.excinfo is not None:
            report = item.ihook.pytest_runtest_makereport(item=item, call=end)
            events.pytest_runtest_logreport(report)
            with contextlib.suppress(OSError):
                connection.send((False, events.take()))
        warnings.simplefilter("ignore", ResourceWarning)  # as at the end of an interpreter
        atexit._run_exitfuncs()


def _separate_output(config: pytest.Config) -> None:
    """The fork captures output in files of its own, has temporary directories of its own, and reports nothing."""
    terminal: Any = config.pluginmanager.getplugin("terminalreporter")
    terminal._tw = create_terminal_writer(config, open(os.devnull, "w"))  # noqa: SIM115 - for its life
    capture: Any = config.pluginmanager.getplugin("capturemanager")
    capture.stop_global_capturing()
    capture.start_global_capturing()
    capture.suspend_global_capture()
    directories = temporary_directories(config)
    directories._basetemp = directories.mktemp("worker")


def kind_of(group: str) -> str:
    return group.partition("/")[0]


def group_of(item: pytest.Item) -> str:
    """The group of a test: its own id if any worker may run it beside the others of its file."""
    file = item.nodeid.partition("::")[0]
    if needs_spark(item):
        has_session = "spark" in getattr(item, "fixturenames", ())  # or it starts a process with a session of its own
        return f"{'spark-session' if has_session else 'spark-processes'}/{file}"
    if file.startswith(WAITING_FOLDERS) and not shares_fixtures(item):
        return item.nodeid
    return file


def shares_fixtures(item: pytest.Item) -> bool:
    """Whether the test uses a fixture of its module or class, which another worker would make a second time."""
    definitions = item._fixtureinfo.name2fixturedefs if isinstance(item, pytest.Function) else {}
    return any(each.scope in ("class", "module") for found in definitions.values() for each in found)
