"""Names of settings: the list of topic settings is that of the broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from odradek.admin.settings import TOPIC_SETTINGS, suggesting_names
from odradek.conventions.failures import Failure

if TYPE_CHECKING:
    from tests.commands import Run


def test_every_topic_setting_of_the_broker_is_listed(odradek: Run, topic: str) -> None:
    described = odradek("topic", "describe", topic, "--all-configs", "--format", "json").row
    assert set(described["configs"]) <= set(TOPIC_SETTINGS)
    assert list(TOPIC_SETTINGS) == sorted(TOPIC_SETTINGS)


def test_a_failure_gets_a_suggestion_for_an_unknown_name() -> None:
    with pytest.raises(Failure) as caught, suggesting_names(["retention.mss", "segment.ms"]):
        raise Failure("no such setting")
    assert caught.value.message == "no such setting; did you mean retention.ms?"


def test_a_failure_for_another_reason_stays_as_it_is() -> None:
    with pytest.raises(Failure) as caught, suggesting_names(["segment.ms"]):
        raise Failure("the value is too large")
    assert caught.value.message == "the value is too large"
