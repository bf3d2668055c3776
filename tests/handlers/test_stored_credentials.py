"""Credentials of the metadata: stand-ins look like the users, and tokens are derived on a worker, a few at a time."""

import asyncio
import threading
from typing import Any

import pytest

from odradek.configuration.broker_configs import BrokerConfig
from odradek.handlers import stored_credentials as module
from odradek.handlers.stored_credentials import StoredCredentials
from odradek.host.host import real_host
from odradek.metadata.cache import MetadataCache
from odradek.metadata.changes import DelegationTokenChanged, ScramCredentialChanged, StandInKeyChosen
from odradek.security.delegation_tokens import DelegationToken, token_credential
from odradek.security.principals import Principal
from odradek.security.sasl.outcome import Deferred
from odradek.security.sasl.scram import TokenCredential
from odradek.security.scram_credentials import ScramMechanism, credential_from_password
from odradek.security.scram_stand_ins import shape_of
from tests.metadata.key_value_store import KeyValueStore, Table

SHA_256, SHA_512 = ScramMechanism
OWNER = Principal("User", "alice")


async def credentials(*changes: Any, key: str = "key") -> StoredCredentials:
    host = real_host()
    store = KeyValueStore(Table(), 10)
    epoch = await store.claim_controller(0)
    await store.commit(changes, expected_version=0, controller_epoch=epoch)
    cache = MetadataCache(store, BrokerConfig.from_properties({"delegation.token.secret.key": key}), host.clock)
    await cache.load()
    return StoredCredentials(cache, host)


def token(token_id: str) -> DelegationTokenChanged:
    return DelegationTokenChanged(DelegationToken(token_id, OWNER, OWNER, (), 0, 2**60, 2**60))


async def test_an_unknown_user_looks_like_the_users_of_the_mechanism() -> None:
    real = credential_from_password(SHA_256, "x", b"abcdefghijklmnopqrstuvwxyz", 8192)
    stored = await credentials(ScramCredentialChanged("alice", SHA_256, real), StandInKeyChosen(b"k" * 32))
    assert shape_of(stored.stand_in(SHA_256, "nobody")) == shape_of(real)
    assert shape_of(stored.stand_in(SHA_512, "nobody")).iterations == 4096
    assert stored.stand_in(SHA_256, "nobody") == stored.stand_in(SHA_256, "nobody")


async def test_tokens_are_derived_by_few_workers_and_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    stored = await credentials(*(token(f"token-{index}") for index in range(10)))
    running = 0
    most = 0
    threads = set()
    lock = threading.Lock()

    def derive(*arguments: Any) -> Any:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
            threads.add(threading.get_ident())
        try:
            return token_credential(*arguments)
        finally:
            with lock:
                running -= 1

    monkeypatch.setattr(module, "token_credential", derive)
    deferred = [stored.token(SHA_256, f"token-{index}") for index in range(10)]
    assert all(isinstance(each, Deferred) for each in deferred)
    await asyncio.gather(*(each.compute() for each in deferred if isinstance(each, Deferred)))
    assert threading.get_ident() not in threads
    assert most <= module.MOST_DERIVATIONS
    found = stored.token(SHA_256, "token-3")
    assert isinstance(found, TokenCredential)
    assert found.credential == token_credential(SHA_256, "key", "token-3")
    assert stored.token(SHA_256, "other") is None


async def test_kept_credentials_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_KEPT", 2)
    stored = await credentials(*(token(f"token-{index}") for index in range(3)))
    for index in range(3):
        deferred = stored.token(SHA_256, f"token-{index}")
        assert isinstance(deferred, Deferred)
        await deferred.compute()
    assert isinstance(stored.token(SHA_256, "token-0"), Deferred)
    assert isinstance(stored.token(SHA_256, "token-2"), TokenCredential)


@pytest.mark.parametrize("key", ["", " "])
async def test_without_a_key_a_token_that_is_in_the_metadata_authenticates_nobody(key: str) -> None:
    """It was made while there was a key. Without one everybody could compute its password."""
    stored = await credentials(token("token"), key=key)
    assert stored.token(SHA_256, "token") is None


async def test_another_key_gives_a_token_another_password() -> None:
    """So a new `delegation.token.secret.key` ends all tokens."""
    passwords = set()
    for key in ("key", "other"):
        stored = await credentials(token("token"), key=key)
        deferred = stored.token(SHA_256, "token")
        assert isinstance(deferred, Deferred)
        await deferred.compute()
        found = stored.token(SHA_256, "token")
        assert isinstance(found, TokenCredential)
        passwords.add(found.credential)
    assert len(passwords) == 2
