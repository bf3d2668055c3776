"""Checks before the start that the brokers that a pipeline writes to support transactions."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException, Producer

from odradek.pipelines.definition.model import TopicTarget
from odradek.pipelines.operating.client_settings import librdkafka_settings
from odradek.pipelines.spark.sessions.failures import PipelineError
from odradek.pipelines.spark.writing.kafka_records import producer_of
from odradek.pipelines.spark.writing.transactional_writer import DEFAULTS

if TYPE_CHECKING:
    from odradek.pipelines.definition.model import Pipeline
    from odradek.pipelines.spark.writing.kafka_records import Producer as Settings

CHECK_S = 30.0
SLICE_S = 0.5
REFUSAL = "INVALID_REQUEST"  # the error of a broker without transactions in FindCoordinator


class TransactionsMissing(PipelineError):
    """A broker does not support transactions, which exactly_once needs."""


def producers_of(pipeline: Pipeline) -> list[Settings]:
    """The producers of the pipeline: each cluster that it writes to, with its settings."""
    found = [producer_of(pipeline, sink.target) for sink in pipeline.sinks if isinstance(sink.target, TopicTarget)]
    if pipeline.dead_letters is not None:
        found.append(producer_of(pipeline))
    return list(dict.fromkeys(found))


class Refusals(logging.Handler):
    """Detects the refusal in the client's log; the client itself retries endlessly without an error."""

    def __init__(self) -> None:
        super().__init__()
        self.is_refused = False

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if "coordinator" in text and REFUSAL in text:
            self.is_refused = True


def check_transactions(pipeline: Pipeline, servers: str, settings: dict[str, str]) -> None:
    refusals = Refusals()
    listener = logging.getLogger(f"{__name__}.{pipeline.name}")
    listener.setLevel(logging.DEBUG)
    listener.propagate = False
    listener.handlers = [refusals]
    failure = f"{pipeline.place}: {servers} cannot deliver exactly once"
    own = {"bootstrap.servers": servers, "transactional.id": f"odradek.{pipeline.name}.check", "debug": "eos"}
    give_up_at = time.monotonic() + CHECK_S
    try:
        client = Producer({**DEFAULTS, **librdkafka_settings(settings), **own}, logger=listener)
        while not refusals.is_refused and time.monotonic() < give_up_at:
            try:
                client.init_transactions(SLICE_S)
            except KafkaException as error:
                client.poll(0)  # delivers log messages
                if not error.args[0].retriable():
                    raise
            else:
                return
    except KafkaException as error:
        raise TransactionsMissing(f"{failure}: {error.args[0].str()}") from None
    why = f"no transaction could be started within {CHECK_S:.0f} s"
    why = "the broker does not support transactions" if refusals.is_refused else why
    raise TransactionsMissing(f"{failure}: {why}; use delivery: at_least_once, or a broker with transactions")
