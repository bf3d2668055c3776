"""`odradek config`: settings of topics, brokers and groups are described and altered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.completion.test_command import complete

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.testing import RunningBroker
    from tests.commands import Run


MIN_IN_SYNC = "min.insync.replicas"  # of the cluster, since its first start


def settings(run: Run, *entity: str, everything: bool = False) -> dict[str, Any]:
    ran = run("config", "describe", *entity, "--format", "json", *(["--all"] if everything else []))
    assert ran.code == 0, ran.errors
    return {row["setting"]: row for row in ran.rows}


def alter(run: Run, *arguments: str) -> str:
    ran = run("config", "alter", *arguments)
    assert ran.code == 0, ran.errors
    return ran.output


def test_a_topic_setting_is_set_and_deleted(odradek: Run, topic: str) -> None:
    assert settings(odradek, "topic", topic) == {}
    assert alter(odradek, "topic", topic, "--set", "retention.ms=1000") == f"topic {topic}: retention.ms = 1000\n"
    found = settings(odradek, "topic", topic)["retention.ms"]
    assert (found["value"], found["source"], found["default"], found["read_only"]) == (
        "1000", "dynamic topic", False, False,
    )  # fmt: skip
    alter(odradek, "topic", topic, "--delete", "retention.ms")
    assert settings(odradek, "topic", topic) == {}
    assert "retention.ms" in settings(odradek, "topic", topic, everything=True)


def test_a_list_grows_and_shrinks(odradek: Run, topic: str) -> None:
    alter(odradek, "topic", topic, "--append", "cleanup.policy=compact")
    assert settings(odradek, "topic", topic)["cleanup.policy"]["value"] == "delete,compact"
    alter(odradek, "topic", topic, "--subtract", "cleanup.policy=delete")
    assert settings(odradek, "topic", topic)["cleanup.policy"]["value"] == "compact"


def test_a_group_setting_is_set(odradek: Run, new_name: Callable[[], str]) -> None:
    group = new_name()
    alter(odradek, "group", group, "--set", "consumer.session.timeout.ms=50000")
    assert settings(odradek, "group", group)["consumer.session.timeout.ms"]["value"] == "50000"


def test_settings_of_a_broker_take_precedence_over_those_of_all(odradek_broker: RunningBroker, offline: Run) -> None:
    def run(*arguments: str) -> Any:
        return offline(*arguments, ODRADEK_BOOTSTRAP_SERVER=odradek_broker.bootstrap_servers)

    assert settings(run, "broker-default").keys() == {MIN_IN_SYNC}
    alter(run, "broker-default", "--set", "log.cleaner.backoff.ms=5000")
    assert settings(run, "broker-default")["log.cleaner.backoff.ms"]["value"] == "5000"
    assert settings(run, "broker")["log.cleaner.backoff.ms"]["source"] == "dynamic default broker"
    alter(run, "broker", "0", "--set", "log.cleaner.backoff.ms=7000")
    found = settings(run, "broker", "0")["log.cleaner.backoff.ms"]
    assert (found["value"], found["source"]) == ("7000", "dynamic broker")
    alter(run, "broker", "--delete", "log.cleaner.backoff.ms")
    closed_first = f"127.0.0.1:1,{odradek_broker.bootstrap_servers}"
    assert len(offline("config", "describe", "broker-default", "-b", closed_first, "--format", "json").rows) == 2
    deleted = offline("config", "alter", "broker-default", "--delete", "log.cleaner.backoff.ms", "-b", closed_first)
    assert (deleted.code, deleted.errors) == (0, "")
    assert "log.cleaner.backoff.ms" not in settings(run, "broker")
    assert settings(run, "broker-default").keys() == {MIN_IN_SYNC}
    refused = run("config", "alter", "broker-default", "--set", "log.cleaner.backoff.ms=x")
    assert refused.code == 1
    assert refused.errors.startswith("odradek: error: broker-default: ")


@pytest.mark.parametrize("broker", ["7", "x", "00"])
@pytest.mark.parametrize("arguments", [("describe",), ("alter", "--set", "log.cleaner.backoff.ms=1")])
def test_a_broker_that_does_not_exist_is_named_with_those_that_do(
    odradek: Run, arguments: tuple[str, ...], broker: str
) -> None:
    command, *options = arguments
    ran = odradek("config", command, "broker", broker, *options)
    assert (ran.code, ran.output) == (1, "")
    assert ran.errors == f"odradek: error: there is no broker {broker}; the cluster has broker 0\n"


def test_a_mistyped_broker_setting_is_refused_with_a_suggestion(odradek: Run) -> None:
    ran = odradek("config", "alter", "broker", "--set", "log.cleaner.bakoff.ms=1")
    assert ran.code == 1
    assert "there is no broker setting log.cleaner.bakoff.ms; did you mean log.cleaner.backoff.ms?" in ran.errors


@pytest.mark.parametrize(
    ("kind", "setting", "meant"),
    [("topic", "retention.mss", "retention.ms"), ("group", "consumer.session.timeout", "consumer.session.timeout.ms")],
)
def test_a_mistyped_setting_has_a_suggestion(odradek: Run, topic: str, kind: str, setting: str, meant: str) -> None:
    ran = odradek("config", "alter", kind, topic, "--set", f"{setting}=1")
    assert ran.code == 1
    assert f"did you mean {meant}?" in ran.errors


def test_a_setting_that_only_a_restart_changes_is_refused(odradek: Run) -> None:
    ran = odradek("config", "alter", "broker", "--set", "log.dirs=x")
    assert ran.code == 1
    assert "log.dirs" in ran.errors


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("describe", "topic"), "name the topic"),
        (("describe", "group"), "name the group"),
        (("describe", "broker-default", "0"), "broker-default takes no name"),
        (("alter", "broker"), "nothing to alter"),
    ],
)
def test_an_incomplete_command_line_is_wrong_usage(odradek: Run, arguments: tuple[str, ...], text: str) -> None:
    ran = odradek("config", *arguments)
    assert (ran.code, ran.output) == (2, "")
    assert text in ran.errors


def test_a_topic_that_does_not_exist_is_a_failure(odradek: Run, new_name: Callable[[], str]) -> None:
    ran = odradek("config", "describe", "topic", new_name())
    assert ran.code == 1
    assert "there is no such topic" in ran.errors


def test_names_and_settings_are_completed(odradek: Run, topic: str) -> None:
    assert complete(odradek, f"odradek config describe topic {topic[:-2]}") == [topic]
    assert complete(odradek, f"odradek config alter topic {topic} --set retention.") == [
        "retention.bytes=", "retention.ms=",
    ]  # fmt: skip
    assert complete(odradek, "odradek config alter broker 0 --set log.cleaner.back") == ["log.cleaner.backoff.ms="]
    assert complete(odradek, "odradek config alter broker-default --delete log.cleaner.back") == [
        "log.cleaner.backoff.ms"
    ]
    assert complete(odradek, "odradek config alter group g --set consumer.session") == ["consumer.session.timeout.ms="]
