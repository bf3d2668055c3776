"""The local channel: an answer comes once this broker has applied the change, or the reason of a refusal."""

import asyncio
from pathlib import Path

from odradek.controller.decisions.topics import NewTopic
from odradek.controller.requests import AllocateProducerIds, CreateTopics
from odradek.metadata.entities import BrokerImage
from odradek.metadata.image import MetadataImage
from odradek.protocol.errors import ErrorCode
from tests.controller.local_controller import running


async def test_answers_wait_for_the_applier(tmp_path: Path) -> None:
    async with running(tmp_path) as (channel, cache):
        entered, may_go_on = asyncio.Event(), asyncio.Event()

        async def follow(before: MetadataImage, after: MetadataImage) -> None:
            entered.set()
            await may_go_on.wait()

        cache.subscribe(follow)
        creating = asyncio.ensure_future(channel.ask(CreateTopics([NewTopic(name="t")])))
        await entered.wait()
        again = asyncio.ensure_future(channel.ask(CreateTopics([NewTopic(name="t")])))
        for _ in range(20):
            await asyncio.sleep(0)
        assert not creating.done()
        assert not again.done(), "the topic that exists is not visible here before the applier is done"
        may_go_on.set()
        assert (await creating)[0].error is ErrorCode.NONE
        assert (await again)[0].error is ErrorCode.TOPIC_ALREADY_EXISTS


async def test_producer_ids_do_not_wait_for_the_applier(tmp_path: Path) -> None:
    """The ids are reserved once they are committed: a log that takes long to open must not stop new producers."""
    async with running(tmp_path) as (channel, cache):
        may_go_on = asyncio.Event()

        async def follow(before: MetadataImage, after: MetadataImage) -> None:
            await may_go_on.wait()

        cache.subscribe(follow)
        try:
            async with asyncio.timeout(10):
                first = await channel.ask(AllocateProducerIds(10))
                assert await channel.ask(AllocateProducerIds(10)) == first + 10
        finally:
            may_go_on.set()


async def test_registration_is_part_of_the_image_and_survives(tmp_path: Path) -> None:
    async with running(tmp_path) as (channel, cache):
        registered = cache.image.brokers[0]
        assert registered.broker_epoch == cache.image.version
        epoch = await channel.register_broker(BrokerImage(0, {}, "rack"))
        assert cache.image.brokers[0] == BrokerImage(0, {}, "rack", epoch)
        assert epoch == registered.broker_epoch + 1
        first = cache.image
    async with running(tmp_path) as (_, cache):
        assert cache.image.controller_id == 0
        assert cache.image.controller_epoch == first.controller_epoch + 1
        assert cache.image.brokers[0].broker_epoch > epoch
