"""A short round of coverage-guided fuzzing in `make more`; `make fuzz` goes on for longer."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.instrumented import all_but

ROOT = Path(__file__).resolve().parents[2]
# To instrument every package takes three times as long as this fuzzing.
QUICK = {**os.environ, "FUZZ_PACKAGES": "odradek.protocol odradek.handlers"}


@pytest.mark.skipif(
    importlib.util.find_spec("atheris") is None,
    reason="atheris has no wheel for this Python and platform: coverage-guided fuzzing is left out",
)
@pytest.mark.more
@pytest.mark.timeout(600)
def test_any_frame_is_answered_or_refused(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    _write_seeds(corpus)
    fuzzing = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.fuzz_wire", f"-artifact_prefix={tmp_path}/", "-max_total_time=2",
         "-max_len=2048", "-rss_limit_mb=1024", str(corpus)],
        cwd=ROOT, env=QUICK, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert fuzzing.returncode == 0, fuzzing.stderr[-4000:]


@pytest.mark.skipif(
    importlib.util.find_spec("atheris") is None,
    reason="atheris has no wheel for this Python and platform: coverage-guided fuzzing is left out",
)
@pytest.mark.more
@pytest.mark.timeout(600)
def test_any_bytes_before_authentication_are_parsed_or_refused(tmp_path: Path) -> None:
    fuzzing = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.fuzz_parsers", "first", f"-artifact_prefix={tmp_path}/",
         "-max_total_time=1", "-max_len=512", "-rss_limit_mb=1024", "-timeout=20"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert fuzzing.returncode == 0, fuzzing.stderr[-4000:]


def _write_seeds(corpus: Path) -> None:
    """One well-formed request of every API in its oldest and newest version."""
    from odradek.handlers.registry import build_registry
    from tests.wire import encode_request

    for api in build_registry().values():
        for version in {api.min_version, api.max_version}:
            (corpus / f"{api.name}-{version}").write_bytes(encode_request(api.request(), version)[4:])


def test_only_the_packages_that_guide_the_fuzzer_are_instrumented() -> None:
    others = all_but("odradek.protocol.batch", "odradek.handlers")
    assert {"odradek", "odradek.protocol", "odradek.protocol.records", "odradek.log.segment"} <= {*others}
    assert not [name for name in others if name.startswith(("odradek.protocol.batch", "odradek.handlers"))]


@pytest.mark.parametrize(
    ("packages", "problem"),
    [
        (["odradek.protocol", "odradek.handler"], "is named odradek.handler;"),
        (["protocol"], "is named protocol;"),
        ([], "no package is named;"),
    ],
)
def test_a_package_that_does_not_exist_is_refused(packages: list[str], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        all_but(*packages)
