"""kafka-go's tests of its package `kafka` that talk to a broker: broker 1, which is the only one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.client_suites.brokers import running
from tests.client_suites.go_suite import GoPackage
from tests.client_suites.suite import Suite

if TYPE_CHECKING:
    from odradek.local.running_broker import Property
    from tests.client_suites.suite import Outcome, Run

MODULE = "github.com/segmentio/kafka-go"
PACKAGE = GoPackage(MODULE, MODULE, needs_broker="newLocalClient|makeTopic|createTopic|DialLeader")
PROPERTIES: dict[str, Property] = {  # of kafka-go's docker-compose.yml
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
        return PACKAGE.test(run, environment, {"9092": port, 'TCP("localhost")': f'TCP("localhost:{port}")'})


_CREATES = "asks for the deleted topic in a way that creates it (docs/reference.md: differences)"
_SASL = "needs a listener with SASL on port 9093"
LEFT_OUT = {
    "TestConn/test_delete_topics": _CREATES,
    "TestConn/test_delete_topics_with_an_invalid_topic": _CREATES,
    "TestDialerResolver": "dials an address without a port, which means port 9092",
    "TestReaderConsumerGroup": "panics on every broker: getOffsets makes a ConsumerGroup without its function connect",
    "TestReaderReadCompactedMessage": "creates a topic with segment.bytes=200, which Kafka refuses since 4.0",
    "TestUnsupportedSASLMechanism": _SASL,
    "TestWriter/writing_a_message_with_SASL_Plain_authentication": _SASL,
}
SUITE = Suite("kafka-go", (1,), execute, PACKAGE.names, 30, LEFT_OUT)
