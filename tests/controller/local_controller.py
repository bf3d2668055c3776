"""A controller, a cache and the channel between them on an embedded store, for tests."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from odradek.configuration.broker_configs import BrokerConfig
from odradek.configuration.listeners import Endpoint
from odradek.controller.channel import LocalControllerChannel
from odradek.controller.controller import Controller
from odradek.metadata.cache import MetadataCache
from odradek.metadata.embedded_store import EmbeddedStore
from odradek.metadata.entities import BrokerImage
from tests.metadata.inline_host import inline_host


@contextlib.asynccontextmanager
async def running(path: Path, **properties: str) -> AsyncIterator[tuple[LocalControllerChannel, MetadataCache]]:
    host = inline_host()
    config = BrokerConfig.from_properties({name.replace("_", "."): value for name, value in properties.items()})
    store = EmbeddedStore(host, str(path / "metadata"))
    controller = Controller(store, config, host.entropy)
    cache = MetadataCache(store, config, host.clock)
    channel = LocalControllerChannel(controller, cache)
    await controller.start()
    await cache.load()
    await channel.register_broker(BrokerImage(config.node_id, {"PLAINTEXT": Endpoint("localhost", 9092)}))
    yield channel, cache
    await controller.stop_writing()
    await cache.close()
    await store.close()
