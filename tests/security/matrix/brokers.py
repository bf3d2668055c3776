"""The two brokers of the matrix, behind one call: a client with an address sends a request and gets a response."""

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from odradek.handlers.context import ClientConnection
from odradek.protocol.schema import Request, Response
from tests.handlers.brokers import SimulatedBroker
from tests.waiting import eventually
from tests.wire import WireClient

AnyResponse = TypeVar("AnyResponse", bound="Response")

AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",  # until the administrator has rights
}


class MatrixBroker(Protocol):
    def call(
        self, host: str, request: Request, response: type[AnyResponse], version: int | None = None
    ) -> AnyResponse: ...

    def settle(self, condition: Callable[[], bool]) -> None: ...


class SimulatedMatrixBroker:
    """Odradek on a simulated host."""

    def __init__(self) -> None:
        named: dict[str, Any] = {name.replace(".", "_"): value for name, value in AUTHORIZER.items()}
        self.broker = SimulatedBroker(node_id="1", **named)  # as Apache Kafka in these tests

    def call(self, host: str, request: Request, response: type[AnyResponse], version: int | None = None) -> AnyResponse:
        self.broker.client = ClientConnection("PLAINTEXT", host)
        return self.broker.call(request, response, version)

    def settle(self, condition: Callable[[], bool]) -> None:
        assert condition()

    def close(self) -> None:
        self.broker.close()


class WireMatrixBroker:
    """A broker that listens, such as Apache Kafka: one connection from each address."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._clients: dict[str, WireClient] = {}

    def call(self, host: str, request: Request, response: type[AnyResponse], version: int | None = None) -> AnyResponse:
        if host not in self._clients:
            self._clients[host] = WireClient(self._port, source_host=host)
        try:
            return self._clients[host].call(request, response, version)
        except BaseException:
            self._clients.pop(host).close()
            raise

    def settle(self, condition: Callable[[], bool]) -> None:
        eventually(condition, "what the metadata says", seconds=120)

    def close(self) -> None:
        for client in self._clients.values():
            client.close()
