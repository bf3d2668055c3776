"""The client library makes the requests of `odradek acl` where it alone can log in."""

from __future__ import annotations

from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from odradek.admin.acls import library_requests, requests
from odradek.admin.cluster import Cluster
from odradek.security.acls.bindings import AclFilter
from odradek.security.authorizer import ResourceType

if TYPE_CHECKING:
    import pytest

OIDC = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER", "sasl.oauthbearer.method": "oidc"}


class Library:
    """Knows no rules, and keeps what it was asked for."""

    def __init__(self) -> None:
        self.types: list[int] = []

    def describe_acls(self, wanted: Any, **_: object) -> Future[list[object]]:
        self.types.append(wanted.restype.value)
        found: Future[list[object]] = Future()
        found.set_result([])
        return found


def test_the_library_takes_the_place_of_our_sockets(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    library: Any = Library()
    cluster = Cluster("127.0.0.1:1", OIDC)
    monkeypatch.setattr(cluster, "admin", lambda: library)
    assert requests.find(cluster, [AclFilter(), AclFilter(ResourceType.GROUP)]) == []
    assert library.types == [*library_requests.TYPES, ResourceType.GROUP]
    assert "rules on users and delegation tokens are not shown" in capsys.readouterr().err
