"""The scenario performed by one driver on one broker: normalised answers, and where they differ from the recorded ones.

Normalised are only the run's topic prefix, topic ids and the cluster id (numbered as they appear, so that "the same id"
and "another id" stay visible), node ids (one node), and times within the run.
"""

import json
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.clients.accepted_differences import accepted_in_scenario
from tests.clients.client_limits import ClientLimits
from tests.clients.conftest import ODRADEK
from tests.clients.drivers.driver import Driver, DriverEnded
from tests.clients.recorded import UNRECORDED
from tests.clients.scenario.steps import DONE, NOW, Json, Step
from tests.clients.wire.connection import Connection
from tests.clients.wire.waiting import await_deletion, await_topic

# Metadata is eventually consistent in Kafka itself, so requests that only read are repeated for a while.
READ_ONLY_VERBS = frozenset({"cluster", "list_topics", "describe_topic", "offset", "describe_configs", "committed"})
PATIENCE_SECONDS = 30.0
UNRECORDED_PATIENCE_SECONDS = 2.0  # no answer ends the wait for a step that is to be recorded
CLOCK_ALLOWANCE_MS = 5_000
PREFIXED = frozenset({"topic", "target", "group", "transactional_id"})
NODE_FIELDS = frozenset({"leader", "replicas", "in_sync", "nodes", "controller"})


@dataclass(frozen=True, slots=True)
class Difference:
    step: Step
    expected: Json
    answer: Json

    def __str__(self) -> str:
        lines = [f"{self.step.name} ({self.step.verb} {json.dumps(self.step.arguments)[:160]})"]
        lines += [
            f"    {place}: expected {left}, got {right}" for place, left, right in _unlike(self.expected, self.answer)
        ]
        return "\n".join(lines)


def _unlike(expected: Json, answer: Json, place: str = "answer") -> list[tuple[str, str, str]]:
    """The innermost places where two answers differ: a long transcript is unreadable as a whole."""
    if isinstance(expected, dict) and isinstance(answer, dict) and expected.keys() == answer.keys():
        return [each for key in expected for each in _unlike(expected[key], answer[key], f"{place}.{key}")]
    if isinstance(expected, list) and isinstance(answer, list) and len(expected) == len(answer):
        pairs = enumerate(zip(expected, answer, strict=True))
        return [each for index, (left, right) in pairs for each in _unlike(left, right, f"{place}[{index}]")]
    return [] if expected == answer else [(place, json.dumps(expected)[:300], json.dumps(answer)[:700])]


class Transcript:
    """Performs steps and remembers what it must to normalise answers: the ids seen and when the run began."""

    def __init__(
        self, driver: Driver, stand_in: Driver, limits: ClientLimits, broker_name: str, connection: Connection,
        prefix: str = "",
    ) -> None:  # fmt: skip
        """`prefix` is that of all names; by default one that no other transcript has."""
        self._driver = driver
        self._stand_in = stand_in
        self._limits = limits
        self._broker_name = broker_name
        self._connection = connection
        self._prefix = prefix or f"t{uuid.uuid4().hex[:8]}-"
        self._ids: dict[str, list[str]] = {"topic": [], "cluster": []}
        self._started_ms = time.time_ns() // 1_000_000
        self.differences: list[Difference] = []

    def perform(self, steps: Sequence[Step], recorded: Sequence[Json]) -> list[Json]:
        """The answers to the steps; those that differ from the recorded ones are added to `differences`.

        An UNRECORDED step has no difference: its answer is to be recorded.
        """
        answers = []
        for step, recorded_answer in zip(steps, recorded, strict=True):
            expected = self._without_hidden(recorded_answer)
            accepted = accepted_in_scenario(self._broker_name, step)
            is_recorded = expected != UNRECORDED
            patience = PATIENCE_SECONDS if is_recorded else UNRECORDED_PATIENCE_SECONDS
            deadline = time.monotonic() + (patience if step.verb in READ_ONLY_VERBS else 0)
            while True:
                answer = self._answer(step)
                is_right = answer in (expected, *accepted)
                if is_right or time.monotonic() > deadline:
                    break
                time.sleep(0.05)  # a poll's pause
            answers.append(answer)
            if is_recorded and not is_right:
                self.differences.append(Difference(step, expected, answer))
            if answer == DONE and self._broker_name != ODRADEK:  # Odradek has applied a change when it answers
                self._settle(step)
        return answers

    def _settle(self, step: Step) -> None:
        """Apache Kafka applies a change after its answer: a partition without a leader would lose records of acks=0."""
        topic = self._prefix + step.arguments.get("topic", "")
        match step.verb:
            case "create_topic" if not step.arguments["validate_only"]:
                await_topic(self._connection, topic, max(1, step.arguments["partitions"]))
            case "create_partitions":
                await_topic(self._connection, topic, step.arguments["count"])
            case "delete_topic":
                await_deletion(self._connection, topic)

    def _answer(self, step: Step) -> Json:
        performer = self._stand_in if self._limits.needs_stand_in(step) else self._driver
        arguments = dict(step.arguments)
        for key in PREFIXED & arguments.keys():
            arguments[key] = self._prefix + arguments[key]
        try:
            answer = performer.perform(step.verb, arguments)
        except DriverEnded:
            raise
        except Exception as failure:  # a client's bug or ours: shown as the answer, and the scenario goes on
            return {"exception": f"{type(failure).__name__}: {failure}"[:1500]}
        if step.verb == "list_topics":
            answer = sorted(name.removeprefix(self._prefix) for name in answer if name.startswith(self._prefix))
        return self._without_hidden(self._normalised(answer))

    def _without_hidden(self, answer: Json) -> Json:
        if isinstance(answer, dict):
            kept = {key: value for key, value in answer.items() if key not in self._limits.hidden_fields}
            return {key: self._without_hidden(value) for key, value in kept.items()}
        return [self._without_hidden(each) for each in answer] if isinstance(answer, list) else answer

    def _normalised(self, answer: Json) -> Json:
        if isinstance(answer, list):
            return [self._normalised(each) for each in answer]
        if not isinstance(answer, dict):
            return answer
        return {
            key: self._normalised_field(key, value)
            for key, value in answer.items()
            if not (key == "at_timestamp" and value == -1)
        }

    def _normalised_field(self, key: str, value: Any) -> Json:
        if key in ("topic_id", "cluster_id"):
            return self._numbered(key.removesuffix("_id"), str(value))
        if key in NODE_FIELDS:
            return ["node" for _ in value] if isinstance(value, list) else "node"
        if key == "timestamp" and self._is_now(value):
            return NOW
        return self._normalised(value)

    def _is_now(self, timestamp_ms: int) -> bool:
        now_ms = time.time_ns() // 1_000_000
        return self._started_ms - CLOCK_ALLOWANCE_MS <= timestamp_ms <= now_ms + CLOCK_ALLOWANCE_MS

    def _numbered(self, kind: str, identity: str) -> str:
        seen = self._ids[kind]
        if identity not in seen:
            seen.append(identity)
        return f"{kind} {seen.index(identity) + 1}"
