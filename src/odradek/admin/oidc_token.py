"""Access tokens for OAUTHBEARER by client credentials (RFC 6749, 4.4), with librdkafka's properties for it."""

from __future__ import annotations

import base64
import json
import ssl
import time
import urllib.request
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from odradek.admin.security import BearerToken
from odradek.conventions.addresses import is_loopback
from odradek.conventions.failures import Failure
from odradek.host.web_document import read_start

METHOD, URL = "sasl.oauthbearer.method", "sasl.oauthbearer.token.endpoint.url"
TIMEOUT_S = 10.0
LARGEST_ANSWER_BYTES = 64 * 1024
DEFAULT_LIFETIME_S = 300.0


def uses_client_credentials(properties: Mapping[str, str]) -> bool:
    mechanism = properties.get("sasl.mechanisms", properties.get("sasl.mechanism", ""))
    is_sasl = properties.get("security.protocol", "").lower().startswith("sasl")
    return is_sasl and mechanism == "OAUTHBEARER" and properties.get(METHOD, "").lower() == "oidc"


def fetch_token(properties: Mapping[str, str]) -> BearerToken:
    """Failure unless the provider, at an https address, grants a token. Redirects are not followed."""
    url, client = properties.get(URL, ""), properties.get("sasl.oauthbearer.client.id", "")
    parts = urlsplit(url)
    if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(parts.hostname or "")):
        raise Failure(f"-X {URL}={url}: expected an https address")
    secret = properties.get("sasl.oauthbearer.client.secret", "")
    pair = f"{quote(client, safe='')}:{quote(secret, safe='')}"
    headers = {
        "Accept": "application/json",
        "Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}",
        "Content-Type": "application/x-www-form-urlencoded",
    }
    fields = {"grant_type": "client_credentials"}
    if scope := properties.get("sasl.oauthbearer.scope"):
        fields["scope"] = scope
    try:
        file, data = properties.get("https.ca.location"), properties.get("https.ca.pem")
        context = ssl.create_default_context(cafile=file, cadata=data)
        request = urllib.request.Request(url, urlencode(fields).encode(), headers)
        answer: Any = json.loads(read_start(request, LARGEST_ANSWER_BYTES, TIMEOUT_S, context))
    except (OSError, ValueError, RecursionError) as problem:
        raise Failure(f"no token from {url}: {problem}") from None
    token = answer.get("access_token") if isinstance(answer, dict) else None
    if not isinstance(token, str):
        raise Failure(f"no token from {url}: the answer has no access_token")
    lifetime = answer.get("expires_in")
    lifetime_s = float(lifetime) if isinstance(lifetime, int | float) else DEFAULT_LIFETIME_S
    return BearerToken(client, token, time.time() + lifetime_s)
