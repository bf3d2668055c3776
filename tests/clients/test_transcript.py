"""A transcript reports the answers that differ from the recorded ones."""

from typing import TYPE_CHECKING, Any, cast

import pytest

from tests.clients import transcript
from tests.clients.client_limits import ClientLimits
from tests.clients.conftest import ODRADEK
from tests.clients.recorded import UNRECORDED
from tests.clients.scenario.steps import Json, Step
from tests.clients.transcript import Transcript

if TYPE_CHECKING:
    from tests.clients.drivers.driver import Driver
    from tests.clients.wire.connection import Connection

GROW = Step("grow", "create_partitions", {"count": 3})


class AnsweringDriver:
    """Gives the same answer to every request."""

    def perform(self, _verb: str, _arguments: dict[str, Any]) -> Json:
        return "three"


def perform(step: Step, recorded: Json) -> Transcript:
    driver = cast("Driver", AnsweringDriver())
    made = Transcript(driver, driver, ClientLimits(), ODRADEK, cast("Connection", None))
    assert made.perform([step], [recorded]) == ["three"]
    return made


def test_another_answer_than_the_recorded_one_is_a_difference() -> None:
    assert perform(GROW, "three").differences == []
    (difference,) = perform(GROW, "four").differences
    assert "grow" in str(difference)


@pytest.mark.parametrize("step", [GROW, Step("show", "describe_topic", {})])
def test_a_step_without_a_recorded_answer_has_no_difference(step: Step, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcript, "UNRECORDED_PATIENCE_SECONDS", 0.0)
    assert perform(step, UNRECORDED).differences == []
