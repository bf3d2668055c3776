"""What was read for one user is kept apart from others: each identity has its own connections and watches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from odradek.admin.cluster import Cluster
from odradek.console.cluster.connection import cluster_of_token, cluster_of_user
from odradek.console.context import Threads
from odradek.console.login.logins import UNWATCHED_S, Identities, Logins, TooManyLogins
from odradek.console.settings import ConsoleSettings, SaslLogin

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.console.context import Console

NOWHERE = "127.0.0.1:1"


@pytest.fixture
def identities() -> Iterator[Identities]:
    threads = Threads()
    kept = Identities(ConsoleSettings(), threads, most=3)
    yield kept
    for console in opened:
        kept.close(console)
    opened.clear()
    threads.stop()


opened: list[Console] = []


def open_console(identities: Identities, user: str, secret: str) -> Console:
    console = identities.open(user, secret, Cluster(NOWHERE, {}))
    opened.append(console)
    return console


def test_users_share_nothing_that_was_read(identities: Identities) -> None:
    ann, ben = open_console(identities, "ann", "a"), open_console(identities, "ben", "b")
    for part in ("cluster", "watch", "pipelines", "examples"):
        assert getattr(ann, part) is not getattr(ben, part), part
    assert ann.watch.samples is not ben.watch.samples


def test_users_share_the_processor_time_of_polling_and_their_watches_pause(identities: Identities) -> None:
    ann, ben = open_console(identities, "ann", "a"), open_console(identities, "ben", "b")
    assert ann.watch._share is ben.watch._share
    assert ann.watch._unwatched_s == ben.watch._unwatched_s == UNWATCHED_S


def test_another_password_is_another_identity(identities: Identities) -> None:
    first, second = open_console(identities, "ann", "old"), open_console(identities, "ann", "new")
    assert first.cluster is not second.cluster


def test_sessions_of_an_identity_share_its_watch_until_the_last_ends(identities: Identities) -> None:
    first, second = open_console(identities, "ann", "a"), open_console(identities, "ann", "a")
    assert first is not second
    assert first.watch is second.watch
    identities.close(first)
    assert first.is_stopping
    assert not second.is_stopping
    assert not second.cluster.is_stopped()
    assert len(identities) == 1
    identities.close(second)
    assert len(identities) == 0
    third = open_console(identities, "ann", "a")
    assert third.watch is not first.watch


def test_identities_are_bounded(identities: Identities) -> None:
    for user in ("ann", "ben", "cid"):
        open_console(identities, user, "x")
    with pytest.raises(TooManyLogins):
        open_console(identities, "dora", "x")
    open_console(identities, "ann", "x")
    identities.close(opened[1])
    open_console(identities, "dora", "x")


def test_the_user_of_the_console_gives_nothing_to_those_who_log_in() -> None:
    given = {
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": "ca.pem",
        "sasl.mechanisms": "PLAIN",
        "sasl.username": "root",
        "sasl.password": "root's secret",
    }
    cluster = Cluster(NOWHERE, given)
    own = cluster_of_user(cluster, "SCRAM-SHA-512", "ann", "ann's secret")
    assert own.properties == {
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": "ca.pem",
        "sasl.mechanisms": "SCRAM-SHA-512",
        "sasl.username": "ann",
        "sasl.password": "ann's secret",
    }
    by_token = cluster_of_token(cluster, "ann", "the token", 0.0)
    assert "root" not in str(by_token.properties)
    assert "the token" not in repr(by_token.__dict__)


@pytest.fixture
def logins() -> Iterator[Logins]:
    threads = Threads()
    settings = ConsoleSettings(login=SaslLogin())
    kept = Logins(settings, Cluster(NOWHERE, {}), threads)
    kept._identities = Identities(settings, threads, most=3)
    yield kept
    kept.sessions.end_all()
    threads.stop()


def begin(logins: Logins, user: str, token: str) -> str:
    return logins.begin(user, token, Cluster(NOWHERE, {})).id


def test_the_next_token_of_a_user_takes_the_place_of_the_one_used_least_recently(logins: Logins) -> None:
    first, second, third = (begin(logins, "ann", f"token {number}") for number in range(3))
    assert logins.sessions.find(first)
    fourth = begin(logins, "ann", "token 3")
    assert logins.sessions.find(second) is None
    for session in (first, third, fourth):
        assert logins.sessions.find(session)


def test_tokens_of_one_user_do_not_keep_others_out(logins: Logins) -> None:
    own = [begin(logins, "ann", f"token {number}") for number in range(3)]
    for user in ("ben", "cid"):
        assert begin(logins, user, "token")
    assert [logins.sessions.find(each) is not None for each in own] == [False, False, True]
    with pytest.raises(TooManyLogins):
        begin(logins, "dora", "token")
    assert logins.sessions.find(own[2])
