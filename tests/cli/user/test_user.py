"""`odradek user`: users over the wire on any cluster, and the first user of a broker that does not run."""

from __future__ import annotations

import stat
import uuid
from typing import TYPE_CHECKING

from odradek.testing import broker

if TYPE_CHECKING:
    from pathlib import Path

    from tests.commands import Run

BOTH = ["SCRAM-SHA-256", "SCRAM-SHA-512"]
CLIENT = ("-X", "security.protocol=SASL_PLAINTEXT", "-X", "sasl.mechanism=SCRAM-SHA-256", "-X", "sasl.username=admin")


def name() -> str:
    return f"user-{uuid.uuid4().hex[:8]}"


def iterations(odradek: Run, user: str) -> dict[str, int]:
    rows = odradek("user", "list", "--format", "json").rows
    return {row["mechanism"]: row["iterations"] for row in rows if row["user"] == user}


def test_a_user_is_added_listed_changed_and_removed(odradek: Run) -> None:
    user = name()
    added = odradek("user", "add", user, "--iterations", "5000", "--format", "json", stdin=b"secret\n")
    assert added.row == {"user": user, "mechanisms": BOTH, "iterations": 5000}
    assert iterations(odradek, user) == dict.fromkeys(BOTH, 5000)
    again = odradek("user", "add", user, stdin=b"other\n")
    assert again.code == 1
    assert f"odradek user password {user}" in again.errors
    changed = odradek("user", "password", user, "--mechanism", "SCRAM-SHA-512", stdin=b"other\n")
    assert changed.output == f"changed the password of user {user} for SCRAM-SHA-512\n"
    assert iterations(odradek, user) == dict.fromkeys(BOTH, 5000)
    raised = ("--mechanism", "SCRAM-SHA-512", "--iterations", "6000")
    assert odradek("user", "password", user, *raised, stdin=b"other\n").code == 0
    kept = odradek("user", "password", user, "--format", "json", stdin=b"third\n").row["iterations"]
    assert kept == iterations(odradek, user) == dict(zip(BOTH, (5000, 6000), strict=True))
    assert odradek("user", "remove", user, "--yes").output == f"removed user {user}\n"
    missing = odradek("user", "remove", user, "--yes")
    assert missing.code == 1
    assert f"there is no user {user}" in missing.errors
    assert odradek("user", "password", user, stdin=b"x\n").code == 1


def test_a_password_on_the_command_line_gets_a_warning(odradek: Run, tmp_path: Path) -> None:
    user = name()
    given = odradek("user", "add", user, "--password", "secret")
    assert given.code == 0
    assert "warning: --password" in given.errors
    file = tmp_path / "secret"
    file.write_text("from a file\n")
    assert odradek("user", "password", user, "--password-file", str(file)).code == 0
    assert odradek("user", "password", user, "--password-file", str(file), "--password", "x").code == 2
    assert "the password is empty" in odradek("user", "password", user, stdin=b"\n").errors
    assert odradek("user", "remove", user, "--yes").code == 0


def test_the_first_user_is_added_before_the_broker_runs(odradek: Run, tmp_path: Path) -> None:
    directory = tmp_path / "data"
    file = tmp_path / "server.properties"
    settings = {"listeners": "SASL_PLAINTEXT://127.0.0.1:0", "sasl.enabled.mechanisms": "SCRAM-SHA-256"}
    properties = "".join(f"{key}={value}\n" for key, value in settings.items())
    file.write_text(f"{properties}log.dirs={directory}\n")
    added = odradek("user", "add", "admin", "--config", str(file), stdin=b"secret\n")
    assert added.output == f"added user admin with SCRAM-SHA-256 and SCRAM-SHA-512 to {directory}\n"
    assert stat.S_IMODE((directory / "odradek-metadata.sqlite").stat().st_mode) == 0o600
    odradek("user", "add", "admin", "--data-dir", str(directory), stdin=b"second secret\n")  # replaces the password
    with broker({**settings, "log.dirs": str(directory)}) as running:
        client = ("-b", running.bootstrap_servers, *CLIENT)
        listed = odradek("user", "list", *client, "-X", "sasl.password=second secret", "--format", "json")
        assert {row["user"] for row in listed.rows} == {"admin"}
        refused = odradek("user", "add", "other", "--config", str(file), stdin=b"x\n")
        assert refused.code == 1
        assert "is used by a running broker" in refused.errors
    assert b"second secret" not in (directory / "odradek-metadata.sqlite").read_bytes()
