"""kafka-go's tests of its package `kafka` that talk to a broker: a broker of its own on a port that they name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.client_suites.brokers import running
from tests.client_suites.go_suite import GoPackage
from tests.client_suites.suite import Suite

if TYPE_CHECKING:
    from tests.client_suites.suite import Outcome, Run

MODULE = "github.com/segmentio/kafka-go"
PACKAGE = GoPackage(MODULE, MODULE, needs_broker="newLocalClient|makeTopic|createTopic|DialLeader")
PROPERTIES = {  # of kafka-go's docker-compose.yml
    "auto.create.topics.enable": True,
    "message.max.bytes": 200_000_000,
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": True,
    "super.users": "User:ANONYMOUS",
}


def execute(run: Run) -> dict[str, Outcome]:
    with running(run.brokers, PROPERTIES) as bootstrap_servers:
        port = bootstrap_servers.partition(",")[0].rpartition(":")[2]
        environment = {"KAFKA_VERSION": "4.0.0", "KAFKA_SKIP_NETTEST": "1"}  # as kafka-go's own CI
        named = {'"localhost:9092"', '"127.0.0.1:9092"', 'TCP("localhost")'}
        return PACKAGE.test(run, environment, {name: name_port(name, port) for name in named})


def name_port(text: str, port: str) -> str:
    """The Go expression of an address, with this port in place of the default one."""
    return text.removesuffix('"').removesuffix('")').removesuffix(":9092") + f':{port}"' + ")" * text.endswith(")")


SUITE = Suite("kafka-go", (1, 3), execute, PACKAGE.names)
