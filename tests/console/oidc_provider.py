"""A small OpenID Connect provider in a process of its own: discovery, authorization code with PKCE, keys.

It logs in the user of the query of its authorization endpoint (`user=`), or `ann`. `python -m
tests.console.oidc_provider` prints its issuer. A client can change what it issues with `POST /behaviour`.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import subprocess
import sys
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlencode, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator

CLIENT_ID, CLIENT_SECRET = "console", "the client's secret"


class Provider(ThreadingHTTPServer):
    def __init__(self) -> None:
        from joserfc import jwk

        super().__init__(("127.0.0.1", 0), Handler)
        self.issuer = f"http://127.0.0.1:{self.server_port}"
        self.key = jwk.RSAKey.generate_key(2048, {"kid": "one", "use": "sig", "alg": "RS256"})
        self.codes: dict[str, dict[str, str]] = {}
        self.behaviour: dict[str, Any] = {}

    def token(self, **claims: Any) -> str:
        from joserfc import jwt

        now_s = int(time.time())
        content = {"iss": self.issuer, "iat": now_s, "exp": now_s + 600, **claims}
        return jwt.encode({"alg": "RS256", "kid": "one"}, content, self.key, algorithms=["RS256"])


class Handler(BaseHTTPRequestHandler):
    server: Provider

    def log_message(self, *_arguments: Any) -> None:
        pass

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        fields = {name: values[0] for name, values in parse_qs(parts.query).items()}
        issuer = self.server.issuer
        if parts.path == "/.well-known/openid-configuration":
            self.reply(
                {
                    "issuer": issuer,
                    "authorization_endpoint": f"{issuer}/authorize",
                    "token_endpoint": f"{issuer}/token",
                    "jwks_uri": f"{issuer}/keys",
                }
            )
        elif parts.path == "/keys":
            self.reply({"keys": [self.server.key.as_dict(private=False)]})
        elif parts.path == "/authorize":
            expected = {"response_type": "code", "client_id": CLIENT_ID, "code_challenge_method": "S256"}
            if any(fields.get(name) != value for name, value in expected.items()):
                self.reply({"error": "invalid_request"}, 400)
                return
            code = secrets.token_urlsafe(16)
            self.server.codes[code] = {"user": self.server.behaviour.get("user", "ann"), **fields}
            query = urlencode({"code": code, "state": fields["state"], "iss": issuer})
            self.send_response(302)
            self.send_header("location", f"{fields['redirect_uri']}?{query}")
            self.end_headers()
        else:
            self.reply({"error": "not_found"}, 404)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.path == "/behaviour":
            self.server.behaviour = json.loads(body)
            self.reply({})
            return
        fields = {name: values[0] for name, values in parse_qs(body.decode()).items()}
        is_renewal = fields.get("grant_type") == "refresh_token"
        begun = self.server.codes.pop(fields.get("refresh_token" if is_renewal else "code", ""), None)
        pair = base64.b64encode(f"{CLIENT_ID}:{CLIENT_SECRET.replace(' ', '%20').replace(chr(39), '%27')}".encode())
        digest = hashlib.sha256(fields.get("code_verifier", "").encode()).digest()
        is_genuine = (
            begun is not None
            and self.headers.get("authorization") == f"Basic {pair.decode()}"
            and (is_renewal or begun["code_challenge"] == base64.urlsafe_b64encode(digest).decode().rstrip("="))
            and (is_renewal or begun["redirect_uri"] == fields.get("redirect_uri"))
        )
        if begun is None or not is_genuine:
            self.reply({"error": "invalid_grant"}, 400)
            return
        id_claims = {"sub": begun["user"], "aud": CLIENT_ID, "nonce": begun["nonce"]}
        id_token = self.server.token(**{**id_claims, **self.server.behaviour.get("id_claims", {})})
        access_token = self.server.token(
            sub=begun["user"],
            aud=self.server.behaviour.get("audience", "kafka"),
            exp=int(time.time()) + self.server.behaviour.get("expires_in", 600),
        )
        refresh_token = secrets.token_urlsafe(16)
        if self.server.behaviour.get("gives_refresh_token"):
            self.server.codes[refresh_token] = begun
        self.reply(
            {
                "token_type": "Bearer",
                "access_token": access_token,
                "id_token": id_token,
                **({"refresh_token": refresh_token} if refresh_token in self.server.codes else {}),
                "expires_in": self.server.behaviour.get("expires_in", 600),
            }
        )

    def reply(self, document: Any, status: int = 200) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def running_provider() -> Iterator[str]:
    """The issuer of a provider in a process of its own."""
    command = [sys.executable, "-m", "tests.console.oidc_provider"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()
            process.wait(60)


if __name__ == "__main__":
    provider = Provider()
    print(provider.issuer, flush=True)
    provider.serve_forever()
