"""`odradek metadata`: the metadata of a broker on this machine."""

from __future__ import annotations

from odradek.cli.framework.commands import group


@group(
    lazy={
        "migrate": (
            "odradek.cli.metadata.migrate:migrate",
            "Move a single broker's metadata into a cluster's ZooKeeper.",
        ),
    },
    examples=[
        (
            "make a single broker the first broker of a cluster",
            "odradek metadata migrate server.properties --to 127.0.0.1:2181/odradek",
        )
    ],
)
def metadata() -> None:
    """Move the metadata of a broker on this machine."""
