"""Which sources a measured broker loads."""

import subprocess
import sys
from pathlib import Path

from bench.odradek_broker import Odradek


def test_broker_loads_the_given_sources_instead_of_the_installed_ones(tmp_path: Path) -> None:
    (tmp_path / "odradek").mkdir()
    (tmp_path / "odradek" / "__init__.py").write_text("")
    (tmp_path / "odradek" / "__main__.py").write_text("print(__file__)")
    kind = Odradek(key="before", source=tmp_path)
    done = subprocess.run(kind.command(tmp_path, 1), env=kind.environment(), capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(tmp_path / "odradek" / "__main__.py")
    assert kind.command(tmp_path, 1)[0] == sys.executable


def test_given_command_has_port_and_directory_filled_in(tmp_path: Path) -> None:
    assert Odradek("serve --port {port} {directory}").command(tmp_path, 7) == [
        "serve",
        "--port",
        "7",
        f"{tmp_path}/data",
    ]
