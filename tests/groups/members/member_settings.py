"""The settings of a member, passed to its process as JSON, the same for every client."""

from __future__ import annotations

import dataclasses
import json

CLASSIC = "classic"
CONSUMER = "consumer"  # KIP-848
CALM_SESSION_MS = 20_000  # no member is expelled because a busy machine paused; tests that expect it set less


@dataclasses.dataclass(frozen=True, slots=True)
class MemberSettings:
    servers: str
    name: str
    topics: tuple[str, ...]
    group: str = "group"
    protocol: str = CLASSIC
    assignor: str = "range"
    session_ms: int = CALM_SESSION_MS  # of the classic protocol; in the newer one the broker's settings say it
    heartbeat_ms: int = 300
    batch: int = 2000  # records of one poll, at most
    commit_pause_ms: int = 0  # between processing a batch and committing it
    client: tuple[tuple[str, str], ...] = ()  # settings of the client itself, by its own names

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> MemberSettings:
        fields = json.loads(text)
        lists = {"topics": tuple(fields["topics"]), "client": tuple(map(tuple, fields["client"]))}
        return cls(**{**fields, **lists})
