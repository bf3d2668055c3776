"""Which cluster a command connects to. Of profile, `--secure`, `--command-config`, `-b` and `-X`, the later wins."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from odradek.admin.profiles.java_properties import java_properties
from odradek.admin.profiles.profiles import read_profile
from odradek.conventions.properties_file import read_properties_file

if TYPE_CHECKING:
    from collections.abc import Mapping

CLIENT_FILE = "client.properties"
SERVERS = "bootstrap.servers"


def chosen_properties(
    *,
    profile: str | None,
    secure: str | None,
    command_config: str | None,
    given: Mapping[str, str],
    bootstrap_server: str | None,
    default_server: str,
) -> dict[str, str]:
    """Properties with librdkafka's names, `bootstrap.servers` among them."""
    properties = {SERVERS: default_server}
    if profile is not None:
        properties |= read_profile(profile)
    if secure is not None:
        properties |= read_client_file(str(Path(secure) / CLIENT_FILE))
    if command_config is not None:
        properties |= read_client_file(command_config)
    if bootstrap_server is not None:
        properties[SERVERS] = bootstrap_server
    return properties | dict(given)


def read_client_file(path: str) -> dict[str, str]:
    """The client properties in a file with Kafka's names, under librdkafka's names."""
    from odradek.admin.profiles.kafka_properties import (  # noqa: PLC0415 - it loads cryptography
        librdkafka_properties,
    )

    return librdkafka_properties(read_kafka_file(path), lambda location: Path(location).read_bytes())


def chosen_kafka_properties(*, profile: str | None, secure: str | None, command_config: str | None) -> dict[str, str]:
    """Properties with Kafka's names, for clients in Java; `bootstrap.servers` is among them where the choice has it."""
    properties: dict[str, str] = {}
    if profile is not None:
        properties |= java_properties(read_profile(profile), lambda location: Path(location).read_text())
    if secure is not None:
        properties |= read_kafka_file(str(Path(secure) / CLIENT_FILE))
    if command_config is not None:
        properties |= read_kafka_file(command_config)
    return properties


def read_kafka_file(path: str) -> dict[str, str]:
    """The properties in a file. Stores that it names by a relative path are beside it."""
    found = read_properties_file(path)
    for name in ("ssl.keystore.location", "ssl.truststore.location"):
        if name in found:
            found[name] = str(Path(path).absolute().parent / found[name])
    return found
