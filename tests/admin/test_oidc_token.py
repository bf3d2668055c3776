"""OAUTHBEARER by client credentials: what the provider is asked, what is refused, and when a token is replaced."""

from __future__ import annotations

import base64
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from odradek.admin import cluster as clusters
from odradek.admin.cluster import Cluster
from odradek.admin.oidc_token import fetch_token
from odradek.conventions.failures import Failure

if TYPE_CHECKING:
    from collections.abc import Iterator


class Provider:
    def __init__(self) -> None:
        self.requests: list[tuple[str, str]] = []
        self.status = 200
        self.answer = json.dumps({"access_token": "t0", "expires_in": 600}).encode()
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"])).decode()
                provider.requests.append((self.headers["authorization"], body))
                self.send_response(provider.status)
                self.send_header("location", "/other")
                self.end_headers()
                self.wfile.write(provider.answer)

            def log_message(self, *_arguments: Any) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def properties(self, **changes: str) -> dict[str, str]:
        return {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanisms": "OAUTHBEARER",
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.client.id": "rig",
            "sasl.oauthbearer.client.secret": "s3cret",
            "sasl.oauthbearer.scope": "kafka",
            "sasl.oauthbearer.token.endpoint.url": f"http://127.0.0.1:{self.server.server_port}/token",
            **changes,
        }


@pytest.fixture
def provider() -> Iterator[Provider]:
    provider = Provider()
    yield provider
    provider.server.shutdown()
    provider.server.server_close()


def test_a_token_is_asked_for_with_the_secret_of_the_client(provider: Provider) -> None:
    token = fetch_token(provider.properties())
    assert (token.user, token.value) == ("rig", "t0")
    assert 590 < token.expires_s - time.time() <= 600
    basic = base64.b64encode(b"rig:s3cret").decode()
    assert provider.requests == [(f"Basic {basic}", "grant_type=client_credentials&scope=kafka")]
    assert "s3cret" not in repr(token)


@pytest.mark.parametrize(
    ("status", "answer"),
    [(302, b""), (401, b"{}"), (200, b"no JSON"), (200, b"[]"), (200, b"{}"), (200, b"1" * 70_000)],
)
def test_an_answer_without_a_token_is_a_failure(provider: Provider, status: int, answer: bytes) -> None:
    provider.status, provider.answer = status, answer
    with pytest.raises(Failure, match="no token from http") as raised:
        fetch_token(provider.properties())
    assert "s3cret" not in raised.value.message
    assert len(provider.requests) == 1  # redirects are not followed


def test_a_secret_is_sent_to_https_addresses_only() -> None:
    with pytest.raises(Failure, match="expected an https address"):
        fetch_token({"sasl.oauthbearer.token.endpoint.url": "http://issuer.example/token"})


def test_a_token_is_replaced_before_its_end(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster("127.0.0.1:1", provider.properties())
    first, second = (cluster.address("h", 1).security for _ in range(2))
    assert first is second
    now_s = time.time() + 600 - clusters.TOKEN_MARGIN_S
    monkeypatch.setattr(time, "time", lambda: now_s)
    assert cluster.address("h", 1).security is not first
    assert len(provider.requests) == 2
