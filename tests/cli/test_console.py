"""`odradek console` as a command: its address, and what it refuses before it listens."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.commands import Run

SOAK = pytest.mark.soak  # of rules that tests/console/test_secured_connections.py checks without a process
SASL = ["-X", "security.protocol=SASL_SSL"]
WITHOUT_STARLETTE = """
import sys
sys.modules["starlette"] = None
from odradek.cli.main import run
sys.exit(run(["console"]))
"""


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--listen", "0.0.0.0:8484"], "other machines could open the console"),
        pytest.param(["--listen", "console.example:8484"], "it has no login", marks=SOAK),
        (["--listen", "127.0.0.1:99999"], "is not an address"),
        (["--listen", "0.0.0.0:8484", "--login", "sasl"], "security.protocol is plaintext"),
        pytest.param(["--listen", "0.0.0.0:8484", "--login", "sasl", *SASL], "would be sent unencrypted", marks=SOAK),
        pytest.param(
            ["--listen", "0.0.0.0:8484", "--login", "sasl", *SASL, "--behind-proxy"], "--public-url", marks=SOAK
        ),
        (["--login", "sasl", *SASL, "-X", "sasl.mechanisms=GSSAPI"], "not GSSAPI"),
        (["--login", "oidc", *SASL], "needs --oidc-issuer"),
        (["--oidc-issuer", "https://issuer.example"], "need --login oidc"),
        pytest.param(["--public-url", "https://console.example"], "it has no login", marks=SOAK),
        pytest.param(["--behind-proxy"], "it has no login", marks=SOAK),
        (["--tls-cert", __file__], "belong together"),
        (["--listen", "127.0.0.1:0", "--tls-cert", __file__, "--tls-key", __file__], "--tls-key"),
        (["--mask", "card.number"], "is not a masking rule"),
        (["--mask", "$.a["], "is not a JSON path"),
        (["--schema", "orders"], "is not TOPIC=FILE.avsc"),
        (["--schema", "orders=/no/such.avsc"], "no such file"),
    ],
)
def test_what_it_cannot_serve_is_refused(offline: Run, options: list[str], words: str) -> None:
    ran = offline("console", *options)
    assert ran.code in (1, 2)
    assert words in ran.errors


def test_missing_packages_are_named_with_the_command_that_installs_them() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_STARLETTE], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "pip install 'odradek[console]'" in done.stderr
    assert "starlette" in done.stderr


def test_it_serves_until_it_is_stopped(bootstrap_server: str) -> None:
    command = [sys.executable, "-m", "odradek", "console", "-b", bootstrap_server, "--listen", "127.0.0.1:0"]
    with subprocess.Popen([*command, "--format", "json"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            address = json.loads(process.stdout.readline())["console"]
            with urllib.request.urlopen(address, timeout=60) as response:
                assert "Overview" in response.read().decode()
        finally:
            process.terminate()
        assert process.wait(60) in (0, -15)
