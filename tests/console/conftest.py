"""A console in a thread, over a broker of ours or any cluster (TEST_BOOTSTRAP_SERVER=host:port), and a visitor that
keeps cookies and sends forms as a browser does."""

from __future__ import annotations

import html
import http.client
import os
import re
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest
from confluent_kafka import Producer

from odradek.admin.cluster import Cluster
from odradek.console.server import address_of, listen, make_server
from odradek.console.settings import ConsoleSettings

STOP_TIMEOUT_S = 60.0
Fields = Mapping[str, str] | Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        """The page with its entities resolved, so that a test compares what a reader sees."""
        return html.unescape(self.source)

    @property
    def source(self) -> str:
        return self.body.decode()


class Visitor:
    """Requests with the cookies of one browser; `post` follows redirects and adds the token of the last page."""

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        self.address = address
        self.host, self.port = parts.hostname or "", parts.port or 0
        self.cookies: dict[str, str] = {}
        self.token = ""

    def request(
        self, method: str, path: str, body: str | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        connection = http.client.HTTPConnection(self.host, self.port, timeout=120)
        sent = {"Cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items()), **(headers or {})}
        if body is not None:
            sent.setdefault("Content-Type", "application/x-www-form-urlencoded")
        try:
            connection.request(method, path, body, sent)
            response = connection.getresponse()
            for line in response.headers.get_all("Set-Cookie") or []:
                name, _, value = line.partition(";")[0].partition("=")
                self.cookies[name] = value.strip('"')
            answer = Answer(response.status, dict(response.headers.items()), response.read())
        finally:
            connection.close()
        found = re.search(rb'name="token" value="([0-9a-f]+)"', answer.body)
        self.token = found[1].decode() if found else self.token
        return answer

    def get(self, path: str, **headers: str) -> Answer:
        return self.request("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})

    def post(self, path: str, fields: Fields, *, token: str | None = None, **headers: str) -> Answer:
        given = [*(fields.items() if isinstance(fields, Mapping) else fields)]
        body = urlencode([*given, ("token", self.token if token is None else token)])
        answer = self.request("POST", path, body, {name.replace("_", "-"): value for name, value in headers.items()})
        return self.get(answer.headers["location"]) if answer.status == 303 else answer

    def log_in(self, user: str, password: str, next_path: str = "/new-topic") -> Answer:
        self.get("/login")
        return self.post("/login", {"user": user, "password": password, "next": next_path})


@contextmanager
def running_console(
    bootstrap_server: str,
    properties: Mapping[str, str] | None = None,
    *,
    gives_listener: bool = False,
    sample_interval_s: float = 0.5,
    **settings: Any,
) -> Iterator[str]:
    """The address of a console on a free port; with `gives_listener` its own, not that of a proxy."""
    chosen = ConsoleSettings(port=0, sample_interval_s=sample_interval_s, **settings)
    with listen(chosen) as listener:
        server = make_server(Cluster(bootstrap_server, properties or {}), chosen)
        is_started = threading.Event()
        original = server.startup

        async def startup(sockets: Any = None) -> None:
            await original(sockets)
            is_started.set()

        server.startup = startup  # type: ignore[method-assign]  # to see that it has started
        thread = threading.Thread(target=lambda: server.run(sockets=[listener]), daemon=True)
        thread.start()
        assert is_started.wait(STOP_TIMEOUT_S)
        try:
            yield address_of(listener, None if gives_listener else chosen)
        finally:
            server.should_exit = True
            thread.join(STOP_TIMEOUT_S)


# Apache Kafka only in `make oracle`: the pages must be the same on it.
BROKERS = [pytest.param("apache_kafka", marks=[pytest.mark.jvm, pytest.mark.oracle]), "odradek_session_broker"]


@pytest.fixture(scope="session", params=BROKERS)
def bootstrap_server(request: pytest.FixtureRequest) -> str:
    given = os.environ.get("TEST_BOOTSTRAP_SERVER")
    if given:
        return given
    address: str = request.getfixturevalue(request.param).bootstrap_servers
    return address


@pytest.fixture(scope="session")
def console_address(bootstrap_server: str) -> Iterator[str]:
    with running_console(bootstrap_server) as address:
        yield address


@pytest.fixture
def visitor(console_address: str) -> Visitor:
    visitor = Visitor(console_address)
    assert visitor.get("/new-topic").status == 200
    return visitor


@pytest.fixture
def new_name() -> Callable[[], str]:
    return lambda: f"c-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def topic(bootstrap_server: str, new_name: Callable[[], str]) -> str:
    """A topic with two partitions."""
    name = new_name()
    assert Cluster(bootstrap_server, {}).create_topic(name, 2, 1)
    return name


@pytest.fixture
def produce(bootstrap_server: str) -> Callable[..., None]:
    """Write records to a topic: values, or pairs of key and value."""

    def write(topic: str, *records: Any, partition: int = -1, headers: Any = None) -> None:
        producer = Producer({"bootstrap.servers": bootstrap_server})
        for record in records:
            key, value = record if isinstance(record, tuple) else (None, record)
            producer.produce(topic, value, key, partition, headers=headers)
        assert producer.flush(60) == 0

    return write
