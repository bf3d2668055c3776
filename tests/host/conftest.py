"""Certificates, and event loops of the kind that a broker uses."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvloop

from tests.security.tls.certificates import CertificateFiles, write_certificates


@pytest.fixture
def files(tmp_path: Path) -> CertificateFiles:
    return write_certificates(tmp_path)


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        yield runner
