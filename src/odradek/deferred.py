"""Modules that run when something of them is first used, so that a process starts with what it needs.

`from odradek.log import partition_log` binds a module of the table without running it; `partition_log.PartitionLog`
runs it. A statement that imports a name of the module (`from odradek.log.partition_log import PartitionLog`) runs it at
once: that is for modules which are in use whenever the importing one is. Type checkers and other tools see ordinary
imports of ordinary modules.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

DEFERRED = frozenset(
    {
        # Requests, which are half of a broker (`Node.compose_serving`).
        "odradek.handlers.registry",
        "odradek.server.connection",
        "odradek.server.serving",
        # What the controller decides about requests.
        "odradek.controller.requests",
        "odradek.controller.decisions.offline_replicas",
        "odradek.controller.decisions.reassignment_requests",
        "odradek.controller.decisions.replica_replacement",
        "odradek.controller.decisions.request_results",
        "odradek.controller.decisions.requested_elections",
        # Partitions, of which a new broker has none.
        "odradek.log.partition_log",
        "odradek.log.producer_limits",
        "odradek.replica.moves.after_crash",
        "odradek.replica.moves.copying",
        "odradek.replica.moves.single_move",
        "odradek.replica.partition",
        # What is read of metrics.
        "odradek.metrics.catalog",
        "odradek.metrics.exposition",
        # TLS, SASL, access control and several processes: few brokers have them.
        "odradek.handlers.sasl_listeners",
        "odradek.host.tls_connection",
        "odradek.host.tls_network",
        "odradek.security.acls.decisions",
        "odradek.security.sasl_client.credentials",
        "odradek.security.tls.contexts",
        "odradek.server.listener_tls",
        "odradek.server.process_settings",
    }
)
_SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class DeferredModule(ModuleType):
    """A module of the table until it has run. Names with two underscores belong to the import system."""

    def __getattribute__(self, name: str) -> Any:
        if not name.startswith("__"):
            _run(self)
        return ModuleType.__getattribute__(self, name)

    def __setattr__(self, name: str, value: object) -> None:
        if not name.startswith("__"):
            _run(self)
        ModuleType.__setattr__(self, name, value)


class _Loader:
    """Other threads wait until the module has run. Import-time dependencies have no cycle, so two threads never wait
    for each other's module."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.is_running = False

    @staticmethod
    def find_spec(name: str, _path: Sequence[str] | None = None, _target: ModuleType | None = None) -> Any:
        if name not in DEFERRED:
            return None
        loader: Any = _Loader()  # an importlib.abc.Loader by its methods: that module is not needed
        spec = ModuleSpec(name, loader, origin=f"{os.path.join(_SOURCE, *name.split('.'))}.py")
        spec.has_location = True
        return spec

    def create_module(self, _spec: ModuleSpec) -> None:
        """The import system makes the module."""

    def exec_module(self, module: ModuleType) -> None:
        module.__class__ = DeferredModule


def _run(module: ModuleType) -> None:
    loader: Any = module.__loader__
    if not isinstance(loader, _Loader):
        return
    with loader.lock:
        if loader.is_running or module.__loader__ is not loader:
            return
        spec = PathFinder.find_spec(module.__name__, sys.modules[module.__package__ or ""].__path__)
        if spec is None or spec.loader is None:
            raise ModuleNotFoundError(f"No module named {module.__name__!r}", name=module.__name__)
        loader.is_running = True
        try:
            spec.loader.exec_module(module)
        finally:
            loader.is_running = False
        module.__spec__, module.__loader__ = spec, spec.loader
        module.__class__ = ModuleType


def load(name: str) -> None:
    """Import a module, and run it if it is deferred."""
    _run(importlib.import_module(name))


def load_bound() -> Iterator[None]:
    """Run the deferred modules that this process has imported, and those that they import: one at each step."""
    while bound := [name for name in sorted(DEFERRED) if type(sys.modules.get(name)) is DeferredModule]:
        for name in bound:
            load(name)
            yield


def install() -> None:
    """Called when the package is imported, before any other module of it."""
    sys.meta_path.insert(0, _Loader)  # the class is the finder
