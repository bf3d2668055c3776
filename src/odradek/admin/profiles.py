"""Which cluster is meant: stored profiles, files of properties, and the options of a command. `-X` overrides `-b`, that
overrides `--command-config`, then `--secure`, then the profile.

A profile has the address of a cluster and the client properties for it, with librdkafka's names. It is a JSON file in
the user's configuration directory, which only the user may read.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path

from odradek.conventions.failures import Failure
from odradek.conventions.private_files import make_private_directory, write_private
from odradek.conventions.properties_file import read_properties_file

CLIENT_FILE = "client.properties"
SERVERS = "bootstrap.servers"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_SECRETS = re.compile(r"passphrase|password|secret|\.key\.pem$|token|jaas", re.IGNORECASE)


def profile_directory() -> Path:
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "odradek" / "profiles"


def profile_names() -> list[str]:
    return sorted(path.stem for path in profile_directory().glob("*.json"))


def read_profile(name: str) -> dict[str, str]:
    """The properties of a profile, with `bootstrap.servers`; Failure if there is no such profile."""
    path = _path(name)
    try:
        found = json.loads(path.read_text())
    except FileNotFoundError:
        known = ", ".join(profile_names())
        hint = f"the profiles are {known}" if known else "`odradek profile add` makes one"
        raise Failure(f"there is no profile {name}; {hint}") from None
    except (OSError, ValueError) as problem:
        raise Failure(f"{path} cannot be read: {problem}") from None
    if not isinstance(found, dict) or not all(isinstance(each, str) for pair in found.items() for each in pair):
        raise Failure(f"{path} is not a profile; remove it with `odradek profile remove {name}`")
    return found


def default_profile() -> str | None:
    """The profile of commands that name no cluster, chosen by `odradek profile use`."""
    try:
        return _default_path().read_text().strip() or None
    except FileNotFoundError:
        return None


def set_default_profile(name: str | None) -> None:
    """Failure if there is no such profile; None for no default."""
    if name is None:
        _default_path().unlink(missing_ok=True)
        return
    read_profile(name)
    write_private(_default_path(), name + "\n")


def write_profile(name: str, properties: dict[str, str]) -> Path:
    path = _path(name)
    make_private_directory(path.parent)
    write_private(path, json.dumps(properties, indent=2) + "\n")
    return path


def remove_profile(name: str) -> None:
    read = _path(name)
    if not read.exists():
        read_profile(name)  # says which there are
    read.unlink()
    if default_profile() == name:
        set_default_profile(None)


def has_profile(name: str) -> bool:
    return _path(name).exists()


def shown_properties(properties: dict[str, str]) -> dict[str, str]:
    """Without secrets, and PEM texts as their first line."""
    return {
        name: "(hidden)" if _SECRETS.search(name) else value.split("\n", 1)[0] if "-----BEGIN" in value else value
        for name, value in sorted(properties.items())
    }


def _default_path() -> Path:
    return profile_directory().parent / "default-profile"


def _path(name: str) -> Path:
    if not _NAME.fullmatch(name):
        raise Failure(f"{name!r} is not a name of a profile; letters, digits, dots, dashes and underscores are allowed")
    return profile_directory() / f"{name}.json"


def chosen_properties(
    *, profile: str | None, secure: str | None, command_config: str | None, given: Mapping[str, str],
    bootstrap_server: str | None, default_server: str,
) -> dict[str, str]:  # fmt: skip
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
    from odradek.admin.java_properties import librdkafka_properties  # noqa: PLC0415 - it loads cryptography

    return librdkafka_properties(read_kafka_file(path), lambda location: Path(location).read_bytes())


def chosen_kafka_properties(*, profile: str | None, secure: str | None, command_config: str | None) -> dict[str, str]:
    """Properties with Kafka's names, for clients in Java; `bootstrap.servers` is among them where the choice has it."""
    properties: dict[str, str] = {}
    if profile is not None:
        from odradek.admin.java_properties import java_properties  # noqa: PLC0415 - the same

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
