"""Performs a step for a client that cannot: confluent-kafka, and by hand what not even that will send."""

from tests.clients.drivers.confluent_driver import ConfluentDriver
from tests.clients.error_names import error_name
from tests.clients.scenario.steps import Json
from tests.clients.wire.connection import Connection, array, int8, string

INCREMENTAL_ALTER_CONFIGS = 44
BROKER_RESOURCE = 4
OPERATIONS = ("set", "delete", "append", "subtract")


class StandIn(ConfluentDriver):
    def __init__(self, bootstrap_servers: str, plain_servers: str | None = None) -> None:
        super().__init__(bootstrap_servers)
        self._bootstrap_servers = plain_servers or bootstrap_servers

    def alter_configs(self, arguments: dict[str, Json]) -> Json:
        if arguments["resource"] != "broker-default":
            return super().alter_configs(arguments)
        changes = array(
            string(key) + int8(OPERATIONS.index(operation)) + string(value)
            for operation, key, value in arguments["operations"]
        )
        resources = array([int8(BROKER_RESOURCE) + string("") + changes])
        with Connection(self._bootstrap_servers) as connection:
            answer = connection.ask(INCREMENTAL_ALTER_CONFIGS, 0, resources + int8(0))
        answer.int32()  # throttle time
        (code,) = answer.array(answer.int16)[:1]
        return {"error": error_name(code)}
