"""The consoles of users: each identity has its own connections, watches and so its own history. Nothing that was
read for one user is kept where a page of another could find it.

An identity is a user with a secret. Sessions of the same identity share its watches, which end with the last of them.
The secret of an OIDC login is its access token, so that each of these logins is an identity: the rights of two tokens
may differ.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from odradek.console.cluster.pipelines import PipelineWatch
from odradek.console.cluster.rigs import RigWatch
from odradek.console.cluster.watch import ClusterWatch, PollingShare
from odradek.console.context import STREAMS_OF_SESSION, Console

if TYPE_CHECKING:
    from odradek.console.cluster.connection import Cluster
    from odradek.console.context import Threads
    from odradek.console.settings import ConsoleSettings
    from odradek.console.web.rendering import Renderer

MOST_IDENTITIES = 25
UNWATCHED_S = 60.0  # the cluster is not polled for a user who has requested no page for so long


class TooManyIdentities(Exception):
    """As many different users are logged in as the console watches the cluster for."""


@dataclass(slots=True)
class _Identity:
    cluster: Cluster
    watch: ClusterWatch
    pipelines: PipelineWatch
    rigs: RigWatch
    consoles: list[Console] = field(default_factory=list)


class Identities:
    """Only the event loop uses it."""

    def __init__(
        self, settings: ConsoleSettings, renderer: Renderer, threads: Threads, most: int = MOST_IDENTITIES
    ) -> None:
        self._settings = settings
        self._renderer = renderer
        self._threads = threads
        self._most = most
        self._share = PollingShare()
        self._key = secrets.token_bytes(32)
        self._identities: dict[tuple[str, bytes], _Identity] = {}

    def __len__(self) -> int:
        return len(self._identities)

    def is_full_for(self, user: str, secret: str) -> bool:
        """Whether `open` would raise TooManyIdentities."""
        return len(self._identities) >= self._most and self._key_of(user, secret) not in self._identities

    def users_with_several(self) -> set[str]:
        """Users who have more than one identity."""
        return {user for user, count in Counter(user for user, _secret in self._identities).items() if count > 1}

    def _key_of(self, user: str, secret: str) -> tuple[str, bytes]:
        return user, hmac.digest(self._key, secret.encode(), hashlib.sha256)

    def open(self, user: str, secret: str, cluster: Cluster) -> Console:
        """A console with connections of the user. The caller has logged in with this cluster."""
        key = self._key_of(user, secret)
        identity = self._identities.get(key)
        if identity is None:
            if self.is_full_for(user, secret):
                raise TooManyIdentities
            watch = ClusterWatch(cluster, self._settings.sample_interval_s, share=self._share, unwatched_s=UNWATCHED_S)
            identity = _Identity(cluster, watch, PipelineWatch(cluster), RigWatch(cluster, self._settings.preparation))
            identity.watch.start()
            self._identities[key] = identity
        console = Console(
            self._settings,
            identity.cluster,
            identity.watch,
            self._renderer,
            self._threads,
            STREAMS_OF_SESSION,
            identity.pipelines,
            identity.rigs,
        )
        identity.consoles.append(console)
        return console

    def close(self, console: Console) -> None:
        """End the streams of a console; and its watch, if no other session of the identity uses it."""
        console.close()
        for key, identity in list(self._identities.items()):
            if console in identity.consoles:
                identity.consoles.remove(console)
                if not identity.consoles:
                    del self._identities[key]
                    console.stop_watches(wait=False)
