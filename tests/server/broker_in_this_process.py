"""A broker with real sockets whose event loop runs in a thread of the test's process."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from odradek.configuration.broker_configs import BrokerConfig
from odradek.host.host import real_host
from odradek.replica.partition import Partition
from odradek.server.broker import Broker

T = TypeVar("T")


class BrokerInThisProcess:
    def __init__(self, directory: Path, **properties: str) -> None:
        named = {name.replace("_", "."): value for name, value in properties.items()}
        self._properties = {"log.dirs": str(directory), "listeners": "PLAINTEXT://127.0.0.1:0", **named}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._broker = self.run(self._start())

    async def _start(self) -> Broker:
        broker = Broker(BrokerConfig.from_properties(self._properties), real_host())
        await broker.start()
        return broker

    @property
    def port(self) -> int:
        return self._broker._listeners[0].port

    @property
    def bootstrap_servers(self) -> str:
        return f"127.0.0.1:{self.port}"

    def write(self, topic: str, work: Callable[[Partition], None]) -> None:
        """Call `work` with partition 0 of the topic, on the broker's event loop."""

        async def run() -> None:
            partition = self._broker._node.compose_serving().dispatcher._services.partitions.find(topic, 0)
            assert partition is not None
            work(partition)

        self.run(run())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` on the broker's event loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    def close(self) -> None:
        self.run(self._broker.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(30)
        self._loop.close()
