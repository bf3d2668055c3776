"""Kafka client settings of definitions for librdkafka, with failures that are messages of a pipeline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.conventions.client_properties import UntranslatableSetting
from odradek.pipelines.operating.client_settings import translate_settings
from odradek.pipelines.spark.failures import PipelineError

if TYPE_CHECKING:
    from collections.abc import Mapping


class SettingRefused(PipelineError):
    """A setting that cannot be translated for librdkafka."""


def librdkafka_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings for librdkafka; names that librdkafka itself knows are kept."""
    try:
        return translate_settings(settings)
    except UntranslatableSetting as error:
        raise SettingRefused(str(error)) from None
