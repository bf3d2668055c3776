"""Keys of token issuers: read again when they are due or unknown, and kept when they cannot be read."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from joserfc import jwk

from odradek.handlers.issuer_keys import SHORTEST_INTERVAL_MS, IssuerKeys
from odradek.security.sasl.json_web_tokens import InvalidToken, UnknownKey
from tests.metadata.inline_host import inline_host

URL = "https://issuer/keys"


class Issuer:
    def __init__(self) -> None:
        self.document: bytes | None = None
        self.asked: list[str] = []

    def publish(self, key_id: str) -> None:
        key: Any = jwk.ECKey.generate_key("P-256", {"kid": key_id})
        self.document = json.dumps({"keys": [key.as_dict(private=False)]}).encode()

    def read(self, url: str) -> bytes:
        self.asked.append(url)
        if self.document is None:
            raise OSError("the issuer is away")
        return self.document


async def test_keys_are_replaced_and_stay_when_the_issuer_is_away() -> None:
    issuer = Issuer()
    keys = IssuerKeys(replace(inline_host(), read_document=issuer.read))
    with pytest.raises(InvalidToken):
        keys.find(URL)
    await keys.read(URL)  # the issuer is away
    with pytest.raises(InvalidToken):
        keys.find(URL)
    issuer.publish("one")
    await keys.read(URL)
    assert keys.find(URL).find("one").key_id == "one"
    issuer.publish("two")
    await keys.read(URL)
    with pytest.raises(UnknownKey):
        keys.find(URL).find("one")
    for document in (None, b"not JSON"):
        issuer.document = document
        await keys.read(URL)
        assert keys.find(URL).find("two").key_id == "two"
    assert issuer.asked == [URL] * 5


async def test_keys_are_due_after_an_interval() -> None:
    issuer = Issuer()
    keys = IssuerKeys(replace(inline_host(), read_document=issuer.read))
    assert keys.is_due(URL, 1e9)
    await keys.read(URL)
    assert not keys.is_due(URL, 1e9)
    assert keys.is_due(URL, 0)


async def test_keys_that_could_never_be_read_are_read_again_soon() -> None:
    """The issuer may be away for a moment while the broker starts; the usual interval is an hour."""

    class FixedClock:
        now_ms = 0.0

        def monotonic_ms(self) -> float:
            return self.now_ms

    issuer, clock = Issuer(), FixedClock()
    host: Any = replace(inline_host(), read_document=issuer.read)
    keys = IssuerKeys(replace(host, clock=clock))
    await keys.read(URL)
    assert not keys.is_due(URL, 3_600_000)
    clock.now_ms += SHORTEST_INTERVAL_MS
    assert keys.is_due(URL, 3_600_000)
    issuer.publish("one")
    await keys.read(URL)
    clock.now_ms += SHORTEST_INTERVAL_MS
    assert not keys.is_due(URL, 3_600_000)


async def test_keys_come_from_a_file(tmp_path: Path) -> None:
    issuer = Issuer()
    issuer.publish("one")
    file = tmp_path / "keys of the issuer.json"
    file.write_bytes(issuer.document or b"")
    keys = IssuerKeys(inline_host())
    await keys.read(file.as_uri())
    assert len(keys.find(file.as_uri())) == 1
