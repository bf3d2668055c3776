"""Memory of large blocks is returned to the system when they are freed."""

import platform
import subprocess
import sys

import pytest

SCRIPT = """
import resource
from pathlib import Path
from odradek.host.freed_memory import return_freed_memory

def resident_bytes():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

return_freed_memory()
before = resident_bytes()
bytearray(b"x" * (16 << 20))  # the largest request
blocks = []
for _ in range(16):
    blocks += [bytearray(b"x" * (1 << 20)), bytearray(2_000)]
held = resident_bytes() - before
del blocks[:-1]
print(held, resident_bytes() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries are left as they are")
def test_freed_blocks_are_returned_though_a_later_one_is_held() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, check=True, text=True)
    held, left = map(int, done.stdout.split())
    assert held >= 16 << 20
    assert left < 4 << 20
