"""A disk on which a process dies at a chosen SQL statement."""

import sqlite3
from typing import Any, cast

from odradek.host.real_disk import RealDisk


class Crash(Exception):
    """The process died."""


class CrashingConnection:
    """Executes some statements, then raises, before or after it executes the next one."""

    def __init__(self, connection: sqlite3.Connection, statements_left: int, *, after: bool) -> None:
        self._connection = connection
        self._statements_left = statements_left
        self._after = after
        self._has_crashed = False

    def execute(self, *args: Any) -> sqlite3.Cursor:
        return self._run(self._connection.execute, *args)

    def executemany(self, *args: Any) -> sqlite3.Cursor:
        return self._run(self._connection.executemany, *args)

    def _run(self, execute: Any, *args: Any) -> sqlite3.Cursor:
        if self._has_crashed:
            raise Crash
        self._has_crashed = self._statements_left <= 0
        self._statements_left -= 1
        if self._has_crashed and not self._after:
            raise Crash
        cursor: sqlite3.Cursor = execute(*args)
        if self._has_crashed:
            raise Crash
        return cursor

    @property
    def in_transaction(self) -> bool:
        return not self._has_crashed and self._connection.in_transaction  # a dead process does not roll back

    def close(self) -> None:
        self._connection.close()


class CrashingDisk(RealDisk):
    def __init__(self, statements: int, *, after: bool = False) -> None:
        self._statements = statements
        self._after = after
        self._connections: list[CrashingConnection] = []

    def open_database(self, path: str) -> sqlite3.Connection:
        connection = CrashingConnection(super().open_database(path), self._statements, after=self._after)
        self._connections.append(connection)
        return cast("sqlite3.Connection", connection)

    def close_databases(self) -> None:
        """What the operating system does for a process that died."""
        for connection in self._connections:
            connection.close()
