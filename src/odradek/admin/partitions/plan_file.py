"""The JSON file of kafka-reassign-partitions: `{"version": 1, "partitions": [{"topic", "partition", "replicas"}]}`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from odradek.conventions.failures import Failure

if TYPE_CHECKING:
    from collections.abc import Iterable

    from odradek.admin.cluster_state import PartitionState

Assignment = dict[tuple[str, int], tuple[int, ...]]


def read_plan_file(path: str) -> Assignment:
    """The replicas of each partition; a Failure names what is wrong."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    try:
        content = json.loads(text)
        found = {
            (str(each["topic"]), int(each["partition"])): tuple(int(broker) for broker in each["replicas"])
            for each in content["partitions"]
        }
    except ValueError as problem:
        raise Failure(f"{path} is no valid plan: {problem}") from None
    except (KeyError, TypeError) as problem:
        raise Failure(
            f"{path} is no plan ({type(problem).__name__}: {problem}): expected "
            '{"version": 1, "partitions": [{"topic": "pump", "partition": 0, "replicas": [1, 2]}]}'
        ) from None
    if not found:
        raise Failure(f"{path} has no partitions")
    return found


def plan_object(partitions: Iterable[tuple[PartitionState, tuple[int, ...]]]) -> dict[str, Any]:
    return {
        "version": 1,
        "partitions": [
            {"topic": each.topic, "partition": each.index, "replicas": list(replicas)} for each, replicas in partitions
        ],
    }
