"""`odradek broker`: read the settings, run one broker in the foreground, shut it down cleanly on SIGTERM or Ctrl-C."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
from typing import TYPE_CHECKING

from odradek.configuration.config_types import ConfigError
from odradek.conventions.failures import Failure
from odradek.conventions.properties_file import PropertiesError, parse_properties
from odradek.host.freed_memory import return_freed_memory
from odradek.host.host import real_host
from odradek.host.logs import configure_logs, get_logger
from odradek.host.network import raise_descriptor_limit, run_on_fast_loop
from odradek.host.service_manager import READY, STOPPING, notify_service_manager
from odradek.log.log_directory import LogDirectoryError
from odradek.metadata.metadata_level import level_of
from odradek.metadata.store import StoreError
from odradek.security.tls.store_problem import StoreProblem
from odradek.server import process_settings as settings_of_processes
from odradek.server.broker import Broker
from odradek.server.properties import broker_config, load_properties

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.configuration.broker_configs import BrokerConfig
    from odradek.server.process_settings import ProcessSettings

log = get_logger(__name__)

# Variables with the prefix of properties that are not properties.
OTHER_VARIABLES = (
    "ODRADEK_BOOTSTRAP_SERVER",
    "ODRADEK_FORKS",
    "ODRADEK_LOG_LEVEL",
    "ODRADEK_LOG_FORMAT",
    "ODRADEK_NO_STATUS_TOPIC",
    "ODRADEK_PROFILE",
)
SECURE_FILE = "broker.properties"  # in a directory of `odradek secure init`
LOG_LEVELS = ("info", "debug", "warning", "error")
LOG_FORMATS = ("text", "json")


def run_broker(
    properties_path: str | None, overrides: Sequence[str], *, as_json: bool = False, secure: str | None = None
) -> None:
    """Run until SIGTERM or SIGINT. With `as_json` the ready line is a JSON object. `secure` is a directory of `odradek
    secure init`, whose properties come before those of the file."""
    config = configure(properties_path, overrides, secure)
    raise_descriptor_limit()
    return_freed_memory()
    try:
        run_on_fast_loop(lambda: _serve(config, as_json=as_json))
    except (ConfigError, StoreError, StoreProblem, LogDirectoryError, OSError) as problem:
        raise Failure(str(problem)) from problem


def configure(properties_path: str | None, overrides: Sequence[str], secure: str | None = None) -> BrokerConfig:
    """Configure the log of this process by the environment, and read the broker's configuration."""
    try:
        configure_logs(level=_choice("ODRADEK_LOG_LEVEL", LOG_LEVELS), style=_choice("ODRADEK_LOG_FORMAT", LOG_FORMATS))
        return _read_config(properties_path, overrides, secure)
    except (PropertiesError, OSError) as problem:
        raise Failure(str(problem)) from problem


def configure_processes(
    properties_path: str | None, overrides: Sequence[str], count: int, secure: str | None = None
) -> list[ProcessSettings]:
    """The settings of `count` brokers that one supervisor runs."""
    config = configure(properties_path, overrides, secure)
    try:
        return settings_of_processes.process_settings(config, count)
    except PropertiesError as problem:
        raise Failure(str(problem)) from problem


def migrate_metadata(properties_path: str | None, overrides: Sequence[str], *, is_dry_run: bool) -> dict[str, object]:
    """Move the metadata of the broker with these settings into the ZooKeeper of `zookeeper.connect`."""
    from odradek.server.migration import migrate  # noqa: PLC0415 - a broker does not migrate

    config = configure(properties_path, overrides)
    try:
        done = asyncio.run(migrate(config, real_host(), is_dry_run=is_dry_run))
    except (StoreError, LogDirectoryError, OSError) as problem:
        raise Failure(str(problem)) from problem
    migration = done.migration
    return {
        "node_id": config.node_id,
        "cluster_id": done.cluster_id,
        "topics": migration.topics,
        "partitions": migration.partitions,
        "settings": migration.settings,
        "quotas": migration.quotas,
        "users": migration.users,
        "delegation_tokens": migration.tokens,
        "access_rules": migration.rules,
        "metadata_level": level_of(migration.changes),
        "present_topics": migration.present_topics,
        "left_out": migration.left_out,
        "kept_file": done.kept_file,
    }


def add_user(
    properties_path: str | None,
    overrides: Sequence[str],
    user: str,
    password: str,
    mechanisms: Sequence[str],
    iterations: int,
) -> str:
    """Write a SCRAM user into the metadata of a broker that does not run; returns where it was written."""
    from odradek.server import user_store  # noqa: PLC0415 - a broker needs none

    config = configure(properties_path, overrides)
    try:
        return asyncio.run(user_store.add_user(config, real_host(), user, password, mechanisms, iterations))
    except (StoreError, LogDirectoryError, OSError) as problem:
        raise Failure(str(problem)) from problem


def _choice(variable: str, choices: Sequence[str]) -> str:
    """The value of the environment variable, or the first choice if it is not set. PropertiesError if it is unknown."""
    chosen = os.environ.get(variable, choices[0]).lower()
    if chosen not in choices:
        raise PropertiesError(f"environment variable {variable}: {chosen} is none of {', '.join(choices)}")
    return chosen


def _read_config(properties_path: str | None, overrides: Sequence[str], secure: str | None) -> BrokerConfig:
    text = None
    if properties_path is not None:
        with open(properties_path, encoding="latin-1") as file:
            text = file.read()
    properties = load_properties(
        text,
        os.environ,
        overrides,
        file_name=properties_path or "",
        other_variables=OTHER_VARIABLES,
    )
    if secure is not None:
        path = os.path.join(secure, SECURE_FILE)
        with open(path, encoding="latin-1") as file:
            properties = {**parse_properties(file.read(), path), **properties}
    return broker_config(properties)


async def _serve(config: BrokerConfig, *, as_json: bool) -> None:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _on_signal, number, stopping)
    broker = Broker(config, real_host())
    gc.disable()  # a start makes many objects and next to no garbage
    await broker.start()
    gc.freeze()  # objects of the start live until the end: garbage collections skip them
    gc.enable()
    print(json.dumps(broker.ready_facts) if as_json else broker.ready_line, flush=True)
    notify_service_manager(READY)
    failure = asyncio.ensure_future(broker.wait_for_failure())
    failure.add_done_callback(lambda _: stopping.set())
    await stopping.wait()
    notify_service_manager(STOPPING)
    await broker.stop()
    if failure.done():
        raise LogDirectoryError(failure.result())
    failure.cancel()
    log.info("stopped")


def _on_signal(number: signal.Signals, stopping: asyncio.Event) -> None:
    if stopping.is_set():
        os._exit(128 + number)  # a second signal: exit without a clean shutdown
    log.info("stopping", signal=signal.Signals(number).name)
    stopping.set()
