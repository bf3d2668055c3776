"""Whether the brokers that a pipeline writes to can deliver exactly once: asked before anything starts."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException, Producer

from odradek.pipelines.definition.model import TopicTarget
from odradek.pipelines.spark.client_settings import librdkafka_settings
from odradek.pipelines.spark.failures import PipelineError
from odradek.pipelines.spark.producers import producer_of
from odradek.pipelines.spark.transactional_writer import DEFAULTS

if TYPE_CHECKING:
    from odradek.pipelines.definition.model import Pipeline
    from odradek.pipelines.spark.producers import Producer as Settings

CHECK_S = 30.0
SLICE_S = 0.5
REFUSAL = "INVALID_REQUEST"  # what a broker without transactions says when it is asked who coordinates them


class TransactionsMissing(PipelineError):
    """Exactly once needs a broker with transactions."""


def producers_of(pipeline: Pipeline) -> list[Settings]:
    """Every cluster that is written to, with the settings that it is written with."""
    found = [producer_of(pipeline, sink.target) for sink in pipeline.sinks if isinstance(sink.target, TopicTarget)]
    if pipeline.dead_letters is not None:
        found.append(producer_of(pipeline))
    return list(dict.fromkeys(found))


class Refusals(logging.Handler):
    """Listens to the client, which asks for ever and tells only its log that the answer is no."""

    def __init__(self) -> None:
        super().__init__()
        self.is_refused = False

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if "coordinator" in text and REFUSAL in text:
            self.is_refused = True


def check_transactions(pipeline: Pipeline, servers: str, settings: dict[str, str]) -> None:
    heard = Refusals()
    listener = logging.getLogger(f"{__name__}.{pipeline.name}")
    listener.setLevel(logging.DEBUG)
    listener.propagate = False
    listener.handlers = [heard]
    own = {"bootstrap.servers": servers, "transactional.id": f"odradek.{pipeline.name}.check", "debug": "eos"}
    give_up_at = time.monotonic() + CHECK_S
    try:
        client = Producer({**DEFAULTS, **librdkafka_settings(settings), **own}, logger=listener)
        while not heard.is_refused and time.monotonic() < give_up_at:
            try:
                client.init_transactions(SLICE_S)
            except KafkaException as error:
                client.poll(0)  # the log comes this way
                if not error.args[0].retriable():
                    raise
            else:
                return
    except KafkaException as error:
        raise TransactionsMissing(f"{told(pipeline, servers)}: {error.args[0].str()}") from None
    why = "this broker has no transactions yet" if heard.is_refused else f"no transaction began in {CHECK_S:.0f} s"
    raise TransactionsMissing(f"{told(pipeline, servers)}: {why}; use at_least_once, or Apache Kafka")


def told(pipeline: Pipeline, servers: str) -> str:
    return f"{pipeline.place}: {servers} cannot deliver exactly once"
