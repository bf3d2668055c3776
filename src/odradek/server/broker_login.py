"""The login of this broker to other brokers, by the properties of the listener of brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.configuration.broker_credentials import broker_credentials

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.client.sasl_login import Exchange, SaslLogin
    from odradek.configuration.broker_configs import BrokerConfig
    from odradek.host.host import Host


class BrokerLogin:
    """Reads the configuration at each login, so that changed credentials apply to the next connection."""

    def __init__(self, config: Callable[[], BrokerConfig], host: Host) -> None:
        self._config = config
        self._host = host

    def exchange(self) -> Exchange:
        config = self._config()
        credentials = broker_credentials(config.texts, config.inter_broker_listener_name)
        return credentials.exchange(self._host.entropy.uuid().hex)

    async def take(self, login: SaslLogin, response: Any) -> None:
        """On a worker: the key of a password takes milliseconds to compute."""
        await self._host.workers.run(login.take, response)
