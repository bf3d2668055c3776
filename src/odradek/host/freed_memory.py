"""How the C library keeps memory that Python has freed."""

import ctypes

_MMAP_THRESHOLD, _TRIM_THRESHOLD = -3, -1  # of glibc's malloc.h
MAPPED_BYTES = (1 << 20) + (64 << 10)
"""Larger blocks are mapped, and returned when they are freed. A mapped block costs a page fault for each 4 KiB, which
takes longer than to read it: this lies above the chunks of 1 MiB in which log files are read. Few responses are as
large, and batches are received into buffers that are kept."""
KEPT_BYTES = 2 << 20  # free memory at the end of the heap


def return_freed_memory() -> None:
    """Lets glibc return freed memory to the system. By default each large block that is freed raises the size from
    which blocks are mapped, up to 32 MiB: after one large request, later ones leave a heap of blocks that are free and
    resident. Other C libraries are left as they are."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, MAPPED_BYTES)
        mallopt(_TRIM_THRESHOLD, KEPT_BYTES)
