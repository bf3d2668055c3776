"""Certificates, passwords, users and access control lists change while clients produce and consume: none of those who
may is refused once. Clients do not retry, so that a failed request is seen."""

import os
import ssl
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import scramp
from confluent_kafka import Consumer, Producer

from odradek.local.running_broker import RunningBroker
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialUpsertion,
)
from odradek.protocol.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from odradek.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest, DeleteAclsResponse
from odradek.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from odradek.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from odradek.security.scram_credentials import ScramMechanism, salted_password
from tests.security.tls.certificates import HOSTS, CertificateFiles, authority, write_certificates
from tests.server.requests import create_topic, produce
from tests.wire import WireClient

pytestmark = pytest.mark.timeout(180)
LOAD_S = 12.0
PATIENCE_S = 60.0
TOPIC, GROUP = "orders", "billing"
SALT = b"salt of sixteen."
USERS = ("steady", "changing")
ANY, TOPIC_TYPE, GROUP_TYPE, LITERAL, PREFIXED = 1, 2, 3, 3, 4
READ, WRITE, DESCRIBE, DENY, ALLOW = 3, 4, 8, 2, 3


@dataclass
class Counts:
    """What has happened, by kind; failures with their reasons."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    done: dict[str, int] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    def add(self, kind: str, count: int = 1) -> None:
        with self.lock:
            self.done[kind] = self.done.get(kind, 0) + count

    def fail(self, kind: str, reason: object) -> None:
        with self.lock:
            self.failures.append(f"{kind}: {reason}")

    def note_delivery(self, error: object, _message: object) -> None:
        """Of a record, by librdkafka."""
        if error is None:
            self.add("records of librdkafka")
        else:
            self.fail("delivery", error)

    def note_error(self, error: object) -> None:
        """Of a producer of librdkafka."""
        self.fail("producer", error)


class Secured:
    """A broker with a SASL_SSL listener for clients, and a plain one for the administrator."""

    def __init__(self, directory: Path) -> None:
        self.files: CertificateFiles = write_certificates(directory)
        self.broker = RunningBroker(
            {
                "listeners": "SASL_SSL://127.0.0.1:0,PLAINTEXT://127.0.0.1:0",
                "sasl.enabled.mechanisms": "SCRAM-SHA-512",
                "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                "super.users": "User:ANONYMOUS",
                "connection.failed.authentication.delay.ms": "10",
                **self.files.listener_properties("none"),
            },
            host="127.0.0.1",
        )
        self._admin: WireClient | None = None
        self.passwords: dict[str, str] = {}
        self.login_locks = {user: threading.Lock() for user in USERS}

    def start(self) -> None:
        self.broker.start()
        self.port, self.admin_port = self.broker.ports.values()
        self._admin = WireClient(self.admin_port)
        create_topic(self.admin, TOPIC)

    def close(self) -> None:
        if self._admin is not None:
            self._admin.close()
        self.broker.close()

    def client(self, user: str) -> dict[str, str | int | bool]:
        """Settings of librdkafka, without retries."""
        return {
            "bootstrap.servers": f"127.0.0.1:{self.port}",
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": self.files.ca,
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": user,
            "sasl.password": self.passwords[user],
        }

    def log_in(self, user: str) -> WireClient:
        """A raw connection. A change of the password of the user waits until it is there, or the other way round."""
        wire = WireClient(self.port)
        context = ssl.create_default_context(cafile=self.files.ca)
        wire.socket = context.wrap_socket(wire.socket, server_hostname="127.0.0.1")
        scram = scramp.ScramClient(["SCRAM-SHA-512"], user, self.passwords[user])
        wire.call(SaslHandshakeRequest(mechanism="SCRAM-SHA-512"), SaslHandshakeResponse, 1)
        for message, receive in (
            (scram.get_client_first, scram.set_server_first),
            (scram.get_client_final, scram.set_server_final),
        ):
            request = SaslAuthenticateRequest(auth_bytes=message().encode())
            answer = wire.call(request, SaslAuthenticateResponse, 2)
            assert answer.error_code == ErrorCode.NONE, answer.error_message
            receive(bytes(answer.auth_bytes).decode())
        return wire

    # --- what the administrator changes

    @property
    def admin(self) -> WireClient:
        assert self._admin is not None
        return self._admin

    def set_password(self, user: str, password: str) -> None:
        salted = salted_password(ScramMechanism.SCRAM_SHA_512, password, SALT, 4096)
        upsertion = ScramCredentialUpsertion(name=user, mechanism=2, iterations=4096, salt=SALT, salted_password=salted)
        request = AlterUserScramCredentialsRequest(upsertions=[upsertion])
        answer = self.admin.call(request, AlterUserScramCredentialsResponse, 0)
        assert answer.results[0].error_code == ErrorCode.NONE
        self.passwords[user] = password

    def allow(self, user: str, pattern: int = LITERAL) -> None:
        creations = [self._rule(user, kind, operation, pattern) for kind, operation in RIGHTS]
        answer = self.admin.call(CreateAclsRequest(creations=creations), CreateAclsResponse)
        assert [each.error_code for each in answer.results] == [ErrorCode.NONE] * len(RIGHTS)

    def forbid(self, user: str) -> None:
        rule = self._rule(user, TOPIC_TYPE, READ, LITERAL)
        rule.permission_type = DENY
        answer = self.admin.call(CreateAclsRequest(creations=[rule]), CreateAclsResponse)
        assert answer.results[0].error_code == ErrorCode.NONE

    def remove_rules(self, user: str, pattern: int = LITERAL) -> int:
        wanted = DeleteAclsFilter(
            resource_type_filter=ANY,
            resource_name_filter=None,
            host_filter=None,
            pattern_type_filter=pattern,
            principal_filter=f"User:{user}",
            operation=ANY,
            permission_type=ANY,
        )
        answer = self.admin.call(DeleteAclsRequest(filters=[wanted]), DeleteAclsResponse)
        assert answer.filter_results[0].error_code == ErrorCode.NONE
        return len(answer.filter_results[0].matching_acls)

    def _rule(self, user: str, kind: int, operation: int, pattern: int) -> AclCreation:
        name = TOPIC if kind == TOPIC_TYPE else GROUP
        return AclCreation(
            resource_type=kind,
            resource_name=name if pattern == LITERAL else name[:3],
            resource_pattern_type=pattern,
            principal=f"User:{user}",
            host="*",
            operation=operation,
            permission_type=ALLOW,
        )

    def rotate_certificate(self) -> None:
        new = Path(f"{self.files.broker}.new")
        new.write_text(authority().issue("broker", HOSTS))
        os.replace(new, self.files.broker)

    def served_serial(self) -> str:
        with WireClient(self.port) as wire:
            context = ssl.create_default_context(cafile=self.files.ca)
            with context.wrap_socket(wire.socket, server_hostname="127.0.0.1") as secured:
                certificate = secured.getpeercert()
                assert certificate is not None
                return str(certificate["serialNumber"])


RIGHTS = ((TOPIC_TYPE, READ), (TOPIC_TYPE, WRITE), (TOPIC_TYPE, DESCRIBE), (GROUP_TYPE, READ))


@pytest.mark.more
def test_nobody_who_may_is_refused_while_everything_rotates(tmp_path: Path) -> None:
    secured = Secured(tmp_path)
    try:
        secured.start()
        for user in USERS:
            secured.set_password(user, f"{user} secret 0")
            secured.allow(user)
        counts, is_over = Counts(), threading.Event()
        loads: list[Callable[[Secured, Counts, threading.Event], None]] = [
            produce_by_librdkafka,
            consume_by_librdkafka,
            *(raw_load(user) for user in USERS),
        ]
        with ThreadPoolExecutor(len(loads)) as threads:
            running = [threads.submit(load, secured, counts, is_over) for load in loads]
            try:
                serials = rotate(secured, counts)
            finally:
                is_over.set()
            for each in running:
                each.result(PATIENCE_S)
        print(", ".join(f"{count} {kind}" for kind, count in sorted(counts.done.items())))
        print(f"{len(serials)} certificates served, {len(counts.failures)} failed requests of those who may")
        assert not counts.failures
        assert len(serials) >= 3
        assert counts.done["records consumed"] > 100
        for user in USERS:
            assert counts.done[f"raw logins of {user}"] > 3
    finally:
        secured.close()


def rotate(secured: Secured, counts: Counts) -> set[str]:
    """Until the time is over. The serial numbers of the certificates that were served."""
    serials = {secured.served_serial()}
    began, number = time.monotonic(), 0
    while time.monotonic() - began < LOAD_S or len(serials) < 3:
        assert time.monotonic() - began < PATIENCE_S, "certificates are not replaced"
        number += 1
        secured.rotate_certificate()
        counts.add("certificates written")
        with secured.login_locks["changing"]:
            secured.set_password("changing", f"changing secret {number}")
        counts.add("passwords changed")
        for user in USERS:  # the rights are never absent: those of the prefix come before the others go
            secured.allow(user, PREFIXED)
            assert secured.remove_rules(user) == len(RIGHTS)
            secured.allow(user)
            assert secured.remove_rules(user, PREFIXED) == len(RIGHTS)
            counts.add("rules replaced", 4 * len(RIGHTS))
        newcomer = f"new-{number}"
        secured.set_password(newcomer, "secret of the newcomer")
        secured.allow(newcomer)
        try:
            with secured.log_in(newcomer) as wire:
                produce(wire, TOPIC, b"first record of a new user")
            counts.add("new users that produced at once")
        except (OSError, AssertionError) as problem:
            counts.fail("a new user", problem)
        secured.forbid(f"mallory-{number}")
        serials.add(secured.served_serial())
        time.sleep(0.2)  # a poll's pause, so that clients get the processor
    return serials


def raw_load(user: str) -> Callable[[Secured, Counts, threading.Event], None]:
    """Requests on raw connections, each of which lives for a few requests: logins with every password."""

    def run(secured: Secured, counts: Counts, is_over: threading.Event) -> None:
        while not is_over.is_set():
            try:
                with secured.login_locks[user]:
                    wire = secured.log_in(user)
                counts.add(f"raw logins of {user}")
                with wire:
                    for _ in range(20):
                        produce(wire, TOPIC, b"raw")
                        counts.add("raw requests")
            except (OSError, AssertionError) as problem:
                counts.fail(f"raw {user}", repr(problem))
                return
            is_over.wait(0.05)

    return run


def produce_by_librdkafka(secured: Secured, counts: Counts, is_over: threading.Event) -> None:
    """One connection that stays, and a new producer each second."""
    settings = {"retries": 0, "linger.ms": 0, "error_cb": counts.note_error}
    with secured.login_locks["changing"]:  # it logs in before its password changes
        staying = Producer({**secured.client("changing"), **settings})
        staying.produce(TOPIC, b"value", on_delivery=counts.note_delivery)
        assert staying.flush(PATIENCE_S) == 0
    while not is_over.is_set():
        passing = Producer({**secured.client("steady"), **settings})
        until = time.monotonic() + 1
        while time.monotonic() < until and not is_over.is_set():
            for producer in (staying, passing):
                producer.produce(TOPIC, b"value", on_delivery=counts.note_delivery)
                producer.poll(0)
            is_over.wait(0.01)  # a hundred records a second
        assert passing.flush(PATIENCE_S) == 0
    assert staying.flush(PATIENCE_S) == 0


def consume_by_librdkafka(secured: Secured, counts: Counts, is_over: threading.Event) -> None:
    def failed(error: object) -> None:
        counts.fail("consumer", error)

    consumer = Consumer(
        {**secured.client("steady"), "group.id": GROUP, "auto.offset.reset": "earliest", "error_cb": failed}
    )
    consumer.subscribe([TOPIC])
    while not is_over.is_set():
        for message in consumer.consume(500, 0.2):
            if message.error() is None:
                counts.add("records consumed")
            else:
                counts.fail("fetch", message.error())
        if counts.done.get("records consumed"):
            consumer.commit(asynchronous=False)
            counts.add("commits")
    consumer.close()
