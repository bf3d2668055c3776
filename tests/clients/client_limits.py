"""What each client cannot do or show, each with its reason. A step that a client cannot do is done by a stand-in
(confluent-kafka), so that the scenario goes on and its later answers stay comparable.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from tests.clients.scenario.steps import Step


@dataclass(frozen=True, slots=True)
class ClientLimits:
    hidden_fields: frozenset[str] = frozenset()  # fields of an answer that the client does not expose
    stand_in: dict[str, str] = field(default_factory=dict)  # verb or name of a step: why the client cannot do it

    stand_in_when: Callable[[Step], str | None] = lambda step: None  # the same, where it depends on the arguments

    def needs_stand_in(self, step: Step) -> bool:
        return step.verb in self.stand_in or step.name in self.stand_in or self.stand_in_when(step) is not None


def _console_cannot(step: Step) -> str | None:
    """The console tools take no timestamp, partition or bytes that are not text, and cannot only validate."""
    if any(record["timestamp"] is not None for record in step.arguments.get("records", ())):
        return "kafka-console-producer has no option for a record's time"
    if step.arguments.get("validate_only"):
        return "kafka-topics cannot only validate"
    if any(operation in ("append", "subtract") for operation, *_change in step.arguments.get("operations", ())):
        return "kafka-configs neither appends nor subtracts"
    return None


_NO_BROKER_DEFAULT = "refuses the empty name that stands for all brokers"
_BROKER_DEFAULT_STEPS = {"set for all brokers": _NO_BROKER_DEFAULT, "delete for all brokers": _NO_BROKER_DEFAULT}

_JAVA = ClientLimits(stand_in={"replace_configs": "AlterConfigs was removed from the Java client in 4.0"})

LIMITS: dict[str, ClientLimits] = {
    "java": _JAVA,
    "java-4.3": _JAVA,
    "confluent-kafka": ClientLimits(stand_in=_BROKER_DEFAULT_STEPS),
    "kafka-python": ClientLimits(
        stand_in={
            **_BROKER_DEFAULT_STEPS,
            "replace_configs": "adds the settings that are there already, so it never replaces",
            "describe no topic": "drops the error of DescribeConfigs",
            "produce shape 4": "refuses a header without a value",
        },
    ),
    "aiokafka": ClientLimits(
        hidden_fields=frozenset({"leader_epoch", "topic_id"}),
        stand_in={
            "create with the broker's own numbers": "wants explicit numbers",
            "describe what is not there": "its Metadata request creates the topic",
            "describe the deleted": "its Metadata request creates the topic",
            "no key for a compacted topic": "does not know the error INVALID_RECORD",
            "alter_configs": "has no IncrementalAlterConfigs",
            "offset at max_timestamp of times-0": "has no such look-up",
            "offset at max_timestamp of times-1": "has no such look-up",
        },
    ),
    "franz-go": ClientLimits(
        hidden_fields=frozenset({"read_only"}),
        stand_in={
            "offset at 1600000000000 of times-1": "gives the end where no record is that late",
            "offset at 1600000007001 of times-0": "gives the end where no record is that late",
        },
    ),
    "kafka-tools": ClientLimits(
        hidden_fields=frozenset({"leader_epoch", "internal", "controller", "read_only", "at_timestamp"}),
        stand_in={
            "create with no replicas": "kafka-topics refuses it itself",
            "create with no partitions": "kafka-topics refuses it itself",
            "create with a malformed setting": "kafka-topics refuses it itself",
            "replace_configs": "kafka-configs has no AlterConfigs",
            **dict.fromkeys(("produce_in_transaction", "copy", "committed", "fence"), "no tool writes transactions"),
        },
        stand_in_when=_console_cannot,
    ),
}
