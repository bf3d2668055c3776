"""A lock between worker threads that work on the same log. The event loop never takes one: waiting would block it."""

from threading import Lock as WorkerLock

__all__ = ["WorkerLock"]
