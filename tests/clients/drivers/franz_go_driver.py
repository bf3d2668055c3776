"""franz-go's driver: the Go program in tests/clients/go."""

from pathlib import Path

from tests.clients.drivers.driver import LineDriver
from tests.clients.go_build import go_program, missing

__all__ = ["franz_go_driver", "missing"]

SOURCE_DIRECTORY = Path(__file__).parent.parent / "go"


def franz_go_driver(bootstrap_servers: str) -> LineDriver:
    return LineDriver([str(go_program(SOURCE_DIRECTORY, "franz-go")), bootstrap_servers])
