"""Shared by all tests: the choice of the suite, groups and order of tests; one Apache Kafka for the whole run, or one
line that says why there is none; the settings of Spark and Hypothesis."""

import gc
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest
from _pytest.assertion.rewrite import AssertionRewritingHook

from odradek.testing import RunningZooKeeper
from tests.forks.brokers import start_brokers_as_forks
from tests.jvm import build_cache, jars
from tests.jvm.shared_kafka import KafkaAddress, SharedKafka, connect
from tests.slow_files import ProcessorTimes, write_report
from tests.suites import DEFAULT_SUITE, SUITES, chosen_suites, needs_spark, refuse_apache_kafka, start_order, suite_of

pytest_plugins = ["tests.commands", "tests.parallel"]

_SHARED = pytest.StashKey[SharedKafka]()
_TIMES = pytest.StashKey[ProcessorTimes]()

# An example takes as long as it takes: by default 200 ms are a failure, and a busy machine may pause for longer.
_UNHURRIED = hypothesis.settings(deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
# `make test` and `make more` draw the same examples every time: a change is not refused for a defect that it did not
# cause. `make more` draws more of them, `make soak` new ones.
hypothesis.settings.register_profile("repeatable", _UNHURRIED, derandomize=True, max_examples=25)
hypothesis.settings.register_profile("many", _UNHURRIED, derandomize=True, max_examples=100)
hypothesis.settings.register_profile("random", _UNHURRIED)
hypothesis.settings.load_profile("repeatable")


@pytest.fixture(scope="session")
def odradek_session_broker_properties() -> dict[str, int]:
    """Tests write records of fixed dates, which are older than the retention time: it must not be checked meanwhile."""
    return {"log.retention.check.interval.ms": 24 * 3600 * 1000}


def pytest_addoption(parser: pytest.Parser) -> None:
    suites = f"which tests to run: a comma-separated list of {', '.join(SUITES)} (see docs/testing.md)"
    parser.addoption("--suite", default=DEFAULT_SUITE, help=suites)
    parser.addoption("--update", action="store_true", help="record the answers of Apache Kafka again (--suite oracle)")
    parser.addoption("--slow-files", type=int, metavar="N", help="report the N files with the most processor time")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if (times := config.stash.get(_TIMES, None)) is not None:
        write_report(terminalreporter, times, config.getoption("slow_files"))


def pytest_configure(config: pytest.Config) -> None:
    # Started in the background of a script, this process ignores Ctrl-C, and so would every command that it starts.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.setdefault("SPARK_CONF_DIR", str(Path(__file__).parent / "spark_conf"))
    build_cache.announcing = config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled
    # The package has a plugin, for which pytest would rewrite all of its modules: as many lines as the tests have.
    if isinstance(hook := config.pluginmanager.rewrite_hook, AssertionRewritingHook):  # none with --assert=plain
        hook._must_rewrite.discard("odradek")
        hook._marked_for_rewrite_cache.clear()
    start_brokers_as_forks()
    config.stash[_SHARED] = SharedKafka()
    if config.getoption("slow_files"):
        config.stash[_TIMES] = ProcessorTimes()
        config.pluginmanager.register(config.stash[_TIMES])


def pytest_unconfigure(config: pytest.Config) -> None:
    if (shared := config.stash.get(_SHARED, None)) is not None:
        shared.close()


@pytest.hookimpl(tryfirst=True)
def pytest_collection() -> None:
    gc.disable()  # collecting tests makes a million objects, which live until the end


def pytest_collection_finish() -> None:
    gc.freeze()  # garbage collections during the tests skip the modules and the collected tests
    gc.enable()


@pytest.hookimpl(trylast=True)  # after -k and -m
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    suites = chosen_suites(config.getoption("suite"))
    others = [item for item in items if suite_of(item) not in suites]
    if others:
        items[:] = [item for item in items if suite_of(item) in suites]
        config.hook.pytest_deselected(items=others)
    refuse_apache_kafka(items)
    if any(needs_spark(item) for item in items):
        from tests.jvm.spark_archive import use_archive

        use_archive()
    items.sort(key=start_order)


@pytest.fixture(scope="session")
def jvm() -> None:
    """Skips, with the reason, where there is no JVM or no way to fetch Apache Kafka."""
    if reason := jars.missing():
        pytest.skip(reason)


@pytest.fixture(scope="session")
def apache_kafka(jvm: None, request: pytest.FixtureRequest) -> KafkaAddress:
    """The oracle: Apache Kafka, one for the whole run. Use topic names of your own."""
    return connect(request.config.stash[_SHARED].directory)


@pytest.fixture(scope="module")
def zookeeper_server() -> Iterator[RunningZooKeeper]:
    """A real ZooKeeper for the tests of a module. Use a chroot of your own."""
    if shutil.which("java") is None:
        pytest.skip("needs Java, 11 or newer, on the PATH")
    from odradek.testing import zookeeper

    with zookeeper() as running:
        yield running
