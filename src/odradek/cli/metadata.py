"""`odradek metadata`: a single broker becomes the first broker of a cluster, with its logs where they are."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from typing import Any

from odradek.cli.framework.commands import group
from odradek.cli.framework.options import (
    confirm,
    flag,
    format_option,
    option,
    properties_argument,
    repeatable,
    yes_option,
)
from odradek.cli.framework.output import print_json, say
from odradek.conventions.figures import count_text
from odradek.local.child_process import command_name


@group(
    (
        "make a single broker the first broker of a cluster",
        "odradek metadata migrate server.properties --to 127.0.0.1:2181/odradek",
    ),
)
def metadata() -> None:
    """Move the metadata of a broker on this machine."""


@metadata.command(
    ("the broker of a properties file", "odradek metadata migrate server.properties --to zk:2181/odradek"),
    ("a broker without a file", "odradek metadata migrate --to zk:2181 --override log.dirs=data"),
    ("what would be moved", "odradek metadata migrate server.properties --to zk:2181/odradek --dry-run"),
    short_help="Move a single broker's metadata into a cluster's ZooKeeper.",
)
@properties_argument
@option("--to connect", "HOST:PORT/CHROOT", str, "The cluster's ZooKeeper. Default: zookeeper.connect.")
@repeatable("--override overrides", "KEY=VALUE", str, "As of `odradek broker`.")
@flag("--dry-run", "Show what would be moved only.")
@yes_option
@format_option
def migrate(
    properties: str | None, connect: str | None, overrides: tuple[str, ...], dry_run: bool, yes: bool, as_json: bool
) -> None:
    """Move topics, settings, quotas, users and access rules of a single broker into a cluster's ZooKeeper.

    The broker must be stopped. Its logs, with committed offsets and transactions, stay where they are; topic ids,
    epochs and producer ids carry over. The broker's own metadata file is kept under another name. A cluster with
    metadata is accepted if no name is in both, and while none of its brokers runs. All its brokers must have a version
    that knows the metadata level of what is moved (docs/clusters.md#upgrade).

    A member of a cluster cannot become a single broker again: it changes leader epochs and partitions in ZooKeeper, and
    not in the kept file. To be able to return, copy the log directories while the broker is stopped. Without a copy,
    start a new single broker, and copy the records with a client or MirrorMaker.
    """
    from odradek.server.main import migrate_metadata

    os.environ.setdefault("ODRADEK_LOG_LEVEL", "warning")  # sessions of ZooKeeper are of no interest here
    given = [*overrides, *([f"zookeeper.connect={connect}"] if connect else [])]
    planned = migrate_metadata(properties, given, is_dry_run=True)
    if not as_json:
        say(counts_text(planned))
    if not dry_run:
        question = (
            f"Move this to the cluster {planned['cluster_id']}? All its brokers must know metadata level "
            f"{planned['metadata_level']}: one of an older version cannot start afterwards."
        )
        confirm(question, yes, refusal="nothing was moved")
        planned = migrate_metadata(properties, given, is_dry_run=False)
    if as_json:
        print_json({**planned, "migrated": not dry_run})
    elif not dry_run:
        kept = planned["kept_file"]
        say(f"moved to the cluster {planned['cluster_id']}; the broker's own metadata is kept in {kept}")
        say("start the broker as a member of the cluster, then others, and give topics more replicas:")
        say(f"  {next_command(properties, given)}")
        say(f"  {command_name()} partition reassign TOPIC --replication-factor 3")


def counts_text(facts: dict[str, Any]) -> str:
    nouns = ("setting", "quota", "user", "delegation token", "access rule")
    parts = [
        f"{count_text(facts['topics'], 'topic')} with {count_text(facts['partitions'], 'partition')}",
        *(count_text(facts[f"{noun.replace(' ', '_')}s"], noun) for noun in nouns),
    ]
    present = facts["present_topics"]
    rest = f" ({count_text(present, 'topic')} moved before)" if present else ""
    left_out = "".join(
        f"\ndefault {name}={value} of the broker is left out: that of the cluster, or of its first controller's "
        f"properties, counts; `odradek config alter broker-default --set {name}={value}` sets it in the cluster"
        for name, value in facts["left_out"].items()
    )
    return f"broker {facts['node_id']} has {', '.join(parts)}{rest}{left_out}"


def next_command(properties: str | None, overrides: Sequence[str]) -> str:
    options = [word for override in overrides for word in ("--override", override)]
    return f"{command_name()} {shlex.join(['broker', *([properties] if properties else []), *options])}"
