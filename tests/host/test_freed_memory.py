"""Memory of large blocks is returned to the system when they are freed, and that of the broker's reads is kept."""

import platform
import subprocess
import sys
from pathlib import Path

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
for _ in range(8):
    blocks += [bytearray(b"x" * (2 << 20)), bytearray(2_000)]
held = resident_bytes() - before
del blocks[:-1]
print(held, resident_bytes() - before)
"""

READS_SCRIPT = """
import os, resource, sys
from odradek.host.freed_memory import return_freed_memory
from odradek.log import batch_scan, read_check
from odradek.replica.moves import copying

return_freed_memory()
chunk_bytes = max(batch_scan._CHUNK_BYTES, read_check.CHUNK_BYTES, copying.CHUNK_BYTES)
with open(sys.argv[1], "rb") as file:
    for number in range(60):
        if number == 10:
            before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        assert len(os.pread(file.fileno(), chunk_bytes, 0)) == chunk_bytes
print((resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / 50)
"""

pytestmark = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries are left as they are")


def test_freed_blocks_are_returned_though_a_later_one_is_held() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, check=True, text=True)
    held, left = map(int, done.stdout.split())
    assert held >= 16 << 20
    assert left < 4 << 20


def test_reads_of_log_files_use_the_same_memory_again(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(bytes(4 << 20))
    done = subprocess.run([sys.executable, "-c", READS_SCRIPT, path], capture_output=True, check=True, text=True)
    assert float(done.stdout) < 10, "page faults of a read; new memory costs 256 for each MiB"
