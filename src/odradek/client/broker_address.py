"""Where one registration of a broker is reached."""

from typing import NamedTuple


class BrokerAddress(NamedTuple):
    """`broker_epoch` tells the registrations of a broker apart: a broker that restarts gets a higher one."""

    node_id: int
    broker_epoch: int
    host: str
    port: int

    def __str__(self) -> str:
        return f"broker {self.node_id} at {self.host}:{self.port}"
