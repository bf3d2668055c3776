"""Declared pipelines on Spark: sources → steps → sinks, in YAML or in Python, run as a stream or as a batch."""

from odradek.pipelines.definition.decorators import Pipeline

__all__ = ["Pipeline"]
