"""A lock between worker threads that work on the same log. The event loop never takes one: it would stand still."""

from threading import Lock as WorkerLock

__all__ = ["WorkerLock"]
