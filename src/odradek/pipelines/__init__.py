"""Declarative pipelines on Spark: sources → steps → sinks, defined in YAML or Python, run as a stream or as a batch."""

from odradek.pipelines.definition.decorators import Pipeline

__all__ = ["Pipeline"]
