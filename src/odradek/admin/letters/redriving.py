"""Writes dead letters back to their source topics: the original key, value and headers, each at most once.

Records and the entries of the ledger (`pipelines/letters/ledger`) are written in one transaction, under a transactional
id that belongs to the dead-letter topic. The ledger is read after `init_transactions` has fenced every other redrive of
the topic, so that no letter is written twice, even by redrives that run at the same time.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaException, Producer

from odradek.admin.letters.letter_reading import LEDGER_PARTITION, find_letters, read_ledger
from odradek.admin.letters.redrive_plan import BY_KEY, FoundLetter, Redrive, Selection
from odradek.conventions.failures import Failure
from odradek.pipelines.letters import ledger as ledgers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from odradek.admin.cluster import Cluster
    from odradek.pipelines.letters.ledger import Ledger

MOST_BYTES = 64 * 1024 * 1024
TRANSACTION_LETTERS = 1_000
TIMEOUT_S = 30.0


def plan_redrive(cluster: Cluster, selection: Selection, *, again: bool = False) -> Redrive:
    """What a redrive would write; nothing is changed."""
    plan, _letters = _choose(cluster, selection, read_ledger(cluster, selection.topic), again=again)
    _check_targets(cluster, plan)
    return plan


def redrive(cluster: Cluster, selection: Selection, *, again: bool = False) -> Redrive:
    """Write the letters back. Failure unless the cluster has committed all of them; it says how many it has."""
    cluster.describe_topic(selection.topic)
    if not cluster.has_topic(ledgers.TOPIC):  # the permission Create is needed for the first redrive only
        cluster.create_topic(ledgers.TOPIC, 1, configs=ledgers.TOPIC_CONFIG)
    producer = cluster.producer(
        {
            "partitioner": "murmur2_random",  # the partition that Kafka's own clients choose for a key
            "message.max.bytes": 10_000_000,
            "client.id": "odradek-redrive",
        },
        **{"transactional.id": f"odradek-redrive-{selection.topic}"},
    )
    done = 0
    try:
        producer.init_transactions(TIMEOUT_S)
        ledger = read_ledger(cluster, selection.topic)
        plan, letters = _choose(cluster, selection, ledger, again=again)
        partitions = _check_targets(cluster, plan)
        starts = cluster.earliest_offsets(selection.topic, cluster.choose_partitions(selection.topic, ()))
        for first in range(0, len(letters), TRANSACTION_LETTERS):
            part = letters[first : first + TRANSACTION_LETTERS]
            _write(producer, ledger, part, partitions, ledger.outdated(starts) if not first else [])
            done += len(part)
    except KafkaException as error:
        advice = "a redrive again repeats all of them" if again else "run it again: none of them is written twice"
        raise Failure(
            f"topic {selection.topic}: {error.args[0].str()}; {done:,} dead letters were written back, the others "
            f"may not have been; {advice}"
        ) from None
    return plan


def _write(
    producer: Producer, ledger: Ledger, letters: Sequence[FoundLetter], partitions: Mapping[str, int],
    outdated: Sequence[bytes],
) -> None:  # fmt: skip
    producer.begin_transaction()
    try:
        for each in letters:
            topic, partition = each.letter.source_topic, each.source_partition
            chosen = partition if partition < partitions[topic] else BY_KEY
            _produce(producer, topic, each.value, each.key, chosen, list(each.letter.headers))
        for key in outdated:
            _produce(producer, ledgers.TOPIC, None, key, LEDGER_PARTITION)
        for key, value in ledger.add(each.position for each in letters):
            _produce(producer, ledgers.TOPIC, value, key, LEDGER_PARTITION)
        _commit(producer)
    except KafkaException:
        with contextlib.suppress(KafkaException):  # fenced by another redrive: the coordinator has aborted it
            producer.abort_transaction(TIMEOUT_S)
        raise


def _commit(producer: Producer) -> None:
    producer.commit_transaction(TIMEOUT_S)


def _produce(
    producer: Producer, topic: str, value: bytes | None, key: bytes | None, partition: int,
    headers: Any = None,
) -> None:  # fmt: skip
    while True:
        try:
            producer.produce(topic, value, key, partition, headers=headers or None)
            return
        except BufferError:
            producer.poll(0.1)


def _choose(
    cluster: Cluster, selection: Selection, ledger: Ledger, *, again: bool
) -> tuple[Redrive, list[FoundLetter]]:
    plan = Redrive()
    letters: list[FoundLetter] = []
    for found in find_letters(cluster, selection, plan=plan, ledger=None if again else ledger):
        if not found.letter.can_be_redriven:
            plan.without_origin += 1
        elif not again and found.position in ledger:
            plan.done_before += 1
        elif len(letters) >= selection.limit or plan.size_bytes + found.size_bytes > MOST_BYTES:
            plan.is_cut = True
            break
        else:
            letters.append(found)
            plan.positions.append(found.position)
            plan.topics[found.letter.source_topic] += 1
            plan.reasons[found.letter.kind] += 1
            plan.size_bytes += found.size_bytes
    if again and plan.is_cut:
        raise Failure(
            f"topic {selection.topic} has more than {plan.records:,} such dead letters, the limit of one redrive, and "
            "writing them again begins with the oldest ones each time; select fewer: single records, or those of one "
            "pipeline, step or reason"
        )
    return plan, letters


def _check_targets(cluster: Cluster, plan: Redrive) -> dict[str, int]:
    """The number of partitions of each source topic; Failure if one does not exist."""
    return {topic: len(cluster.choose_partitions(topic, ())) for topic in plan.topics}
