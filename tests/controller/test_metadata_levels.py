"""The controller of a cluster that is being upgraded commits nothing that an older broker cannot read."""

from dataclasses import replace
from pathlib import Path

from odradek.controller.decisions.brokers import LiveBroker
from odradek.controller.decisions.scram_credentials import ScramUpsertion
from odradek.controller.decisions.topics import NewTopic
from odradek.controller.requests import AlterScramCredentials, CreateTopics
from odradek.metadata.metadata_level import FIRST_LEVEL, NEWEST_LEVEL
from odradek.protocol.errors import ErrorCode
from tests.controller.clusters import broker
from tests.controller.local_controller import running

USER = [ScramUpsertion("ada", 1, 4096, b"salt" * 4, b"p" * 32)]


async def test_a_user_is_added_when_every_registered_broker_can_read_it(tmp_path: Path) -> None:
    async with running(tmp_path, node_id="1") as (channel, cache):
        cluster = channel._controller.cluster
        new = LiveBroker(broker(1, epoch=1000), [], NEWEST_LEVEL)
        old = LiveBroker(broker(2, epoch=1000), [], FIRST_LEVEL)

        await cluster.follow_live_brokers({1: new, 2: old})
        (refused,) = await channel.ask(AlterScramCredentials(USER))
        assert refused.error is ErrorCode.UNSUPPORTED_VERSION
        assert "brokers 2 run an older version" in (refused.message or "")
        assert "ada" not in str(cache.image.users)
        (topic,) = await channel.ask(CreateTopics([NewTopic(name="t")]))
        assert topic.error is ErrorCode.NONE, "changes that older brokers can read are committed"

        await cluster.follow_live_brokers({1: new, 2: replace_level(old)})
        (accepted,) = await channel.ask(AlterScramCredentials(USER))
        assert accepted.error is ErrorCode.NONE


def replace_level(old: LiveBroker) -> LiveBroker:
    """The broker after its upgrade."""
    return LiveBroker(replace(old.broker, broker_epoch=1001), [], NEWEST_LEVEL)


async def test_a_new_controller_waits_until_it_knows_the_brokers(tmp_path: Path) -> None:
    async with running(tmp_path, node_id="1") as (channel, _):
        channel._controller._writer.known_levels = None
        (refused,) = await channel.ask(AlterScramCredentials(USER))
        assert refused.error is ErrorCode.NOT_CONTROLLER
