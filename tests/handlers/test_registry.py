"""The table of APIs, whose handlers are loaded when they are needed."""

import subprocess
import sys

from odradek.handlers import audited_actions
from odradek.handlers.registry import build_cluster_registry, build_registry

COUNT_LOADED = """
import asyncio, sys
from odradek.handlers.dispatch import Dispatcher
from odradek.handlers.registry import build_registry
loaded = lambda: sum(api.is_loaded for api in build_registry().values())
print(loaded())
apis = build_registry()
apis[18].request
print(loaded(), apis[18].handle.__module__)
dispatcher = Dispatcher.__new__(Dispatcher)
dispatcher._apis = apis
for _ in dispatcher.load_handlers(): pass
print(loaded() == len(apis))
"""


def test_versions_in_the_table_are_those_of_the_messages() -> None:
    for api in build_cluster_registry().values():
        assert (api.key, (api.min_version, api.max_version)) == (api.request.api_key, api.request.versions), api.name
        assert api.response.__name__ == f"{api.name}Response"
        assert callable(api.handle)
        assert not api.audit or callable(getattr(audited_actions, api.audit))


def test_a_single_broker_serves_no_api_of_brokers() -> None:
    between = {key for key, api in build_cluster_registry().items() if api.is_between_brokers}
    assert between
    assert build_registry().keys() == build_cluster_registry().keys() - between


def test_handlers_are_loaded_by_their_first_request_or_one_at_a_time() -> None:
    ran = subprocess.run([sys.executable, "-c", COUNT_LOADED], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines() == ["0", "1 odradek.handlers.api_versions", "True"]
