"""All brokers and ZooKeeper stop together: what cannot be written down any more is a warning, not a defect."""

import asyncio
import logging

import pytest

from tests.cluster.story import Story
from tests.cluster.watched_cluster import ZOOKEEPER


class StopStory(Story):
    async def _tell(self) -> None:
        await self._start_cluster()
        for member in self._members:
            self._network.cut(member.name, ZOOKEEPER)
        await asyncio.sleep(1.0)  # a poll's pause
        await asyncio.gather(*(member.stop() for member in self._members))


def test_a_stop_of_everything_logs_no_error(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "odradek"):
        result = StopStory(0).run()
    assert not result.anomalies, result.anomalies
    assert "ZooKeeper does not answer; the broker stops without it" in caplog.messages
    assert [each.getMessage() for each in caplog.records if each.levelno >= logging.ERROR or each.exc_info] == []
    fields = [vars(each)["odradek_fields"] for each in caplog.records]
    assert [each for each in fields if "exc_info" in each or each.get("reason") == ""] == []
