"""The nodes of a cluster in ZooKeeper: their paths, and their contents as bytes. Pure.

Nodes that Kafka had keep Kafka's paths and JSON. The metadata is a log of commits under `/odradek/metadata`: the head
says which commits and which snapshot there are, and what the head does not name does not exist for readers.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from odradek.conventions.dataclass import dataclass
from odradek.protocol.malformed import MalformedMessage

if TYPE_CHECKING:
    from collections.abc import Mapping

CLUSTER_ID = "/cluster/id"
BROKER_IDS = "/brokers/ids"
CONTROLLER = "/controller"
CONTROLLER_EPOCH = "/controller_epoch"
METADATA = "/odradek/metadata"
HEAD = f"{METADATA}/head"
CHANGES = f"{METADATA}/changes"
PARTS = f"{METADATA}/parts"
SNAPSHOTS = f"{METADATA}/snapshots"

# Parents first.
PERSISTENT_PARENTS = ("/cluster", "/brokers", BROKER_IDS, "/odradek", METADATA, CHANGES, PARTS, SNAPSHOTS)

HEAD_FORMAT = 1


def broker_path(node_id: int) -> str:
    return f"{BROKER_IDS}/{node_id}"


def change_path(version: int) -> str:
    return f"{CHANGES}/{version:010d}"


def version_in(name: str) -> int:
    """The version in the name of a change, of a snapshot, or of the parts of a commit."""
    return int(name.partition("-")[0])


def parts_name(version: int, token: str) -> str:
    return f"{version:010d}-{token}"


@dataclass(frozen=True, slots=True)
class Head:
    """Commits from `history_version` + 1 to `version` can be read; the snapshot is the image at `snapshot_version`.
    `commit_bytes` is the size of the commits after the snapshot. `snapshot_name` is empty for the empty image."""

    version: int = 0
    history_version: int = 0
    snapshot_version: int = 0
    snapshot_name: str = ""
    snapshot_parts: int = 0
    snapshot_bytes: int = 0
    commit_bytes: int = 0


def encode_head(head: Head) -> bytes:
    fields = {name: getattr(head, name) for name in Head.__slots__}
    return json.dumps({"format": HEAD_FORMAT, **fields}, separators=(",", ":")).encode()


def decode_head(data: bytes) -> Head:
    fields = _object(data, HEAD)
    if fields.pop("format", None) != HEAD_FORMAT:
        raise MalformedMessage(f"{HEAD} was written by another version of Odradek: {data[:100]!r}")
    try:
        return Head(**fields)  # type: ignore[arg-type]  # a missing or unknown field is a TypeError
    except TypeError as problem:
        raise MalformedMessage(f"{HEAD} has unexpected fields: {problem}") from problem


@dataclass(frozen=True, slots=True)
class ChangeNode:
    """One commit: `changes` are its encoded changes, or empty when they are in `part_count` nodes of their own. `token`
    identifies the attempt that wrote it."""

    controller_epoch: int
    token: str
    part_count: int = 0
    changes: bytes = b""


def encode_change(node: ChangeNode) -> bytes:
    header = {"controller_epoch": node.controller_epoch, "token": node.token, "parts": node.part_count}
    return json.dumps(header, separators=(",", ":")).encode() + b"\n" + node.changes


def decode_change(data: bytes) -> ChangeNode:
    header, separator, changes = data.partition(b"\n")
    fields = _object(header, CHANGES)
    try:
        if not separator:
            raise KeyError("changes")
        return ChangeNode(
            int(str(fields["controller_epoch"])), str(fields["token"]), int(str(fields["parts"])), changes
        )
    except (KeyError, ValueError) as problem:
        raise MalformedMessage(f"a node under {CHANGES} cannot be read: {problem!r}") from problem


def encode_cluster_id(cluster_id: str) -> bytes:
    return json.dumps({"version": "1", "id": cluster_id}).encode()


def decode_cluster_id(data: bytes) -> str:
    found = _object(data, CLUSTER_ID).get("id")
    if not isinstance(found, str) or not found:
        raise MalformedMessage(f"{CLUSTER_ID} has no id")
    return found


def encode_controller(node_id: int, timestamp_ms: int) -> bytes:
    return json.dumps({"version": 1, "brokerid": node_id, "timestamp": str(timestamp_ms)}).encode()


def decode_controller(data: bytes) -> int:
    found = _object(data, CONTROLLER).get("brokerid")
    if not isinstance(found, int):
        raise MalformedMessage(f"{CONTROLLER} names no broker")
    return found


def decode_epoch(data: bytes) -> int:
    try:
        return int(data)
    except ValueError as problem:
        raise MalformedMessage(f"{CONTROLLER_EPOCH} is not a number: {data[:100]!r}") from problem


def _object(data: bytes, path: str) -> dict[str, object]:
    try:
        found: Mapping[str, object] = json.loads(data)
        return dict(found)
    except (ValueError, TypeError) as problem:
        raise MalformedMessage(f"{path} is not a JSON object: {data[:100]!r}") from problem
