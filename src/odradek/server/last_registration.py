"""The last registration of a broker, in a file of its first log directory. A broker that has lost no records since
names it when it registers again, and stays in the sets of in-sync and eligible replicas (KIP-966)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from odradek.protocol.sentinels import NO_BROKER_EPOCH

if TYPE_CHECKING:
    from odradek.host.host import Host

FILE_NAME = "odradek-registration.json"


def read_previous_epoch(directory: str, host: Host, *, was_cleanly_shut_down: bool) -> int:
    """The epoch of the last registration; −1 if there is none, or if records may have been lost since: without a clean
    shutdown, the writes of a process survive it as long as the machine does not restart."""
    path = f"{directory}/{FILE_NAME}"
    try:
        fields = json.loads(host.disk.read_file(path))
        broker_epoch, boot_id = int(fields["broker_epoch"]), str(fields["boot_id"])
    except (OSError, ValueError, KeyError, TypeError):
        return NO_BROKER_EPOCH
    is_same_boot = boot_id != "" and boot_id == host.boot_id
    return broker_epoch if was_cleanly_shut_down or is_same_boot else NO_BROKER_EPOCH


def write_epoch(directory: str, host: Host, broker_epoch: int) -> None:
    content = json.dumps({"broker_epoch": broker_epoch, "boot_id": host.boot_id}).encode()
    host.disk.replace_file(f"{directory}/{FILE_NAME}", content)
