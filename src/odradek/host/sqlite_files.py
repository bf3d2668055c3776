"""Files of SQLite that several connections may open at once."""

import sqlite3
import time

_CONVERSION_SECONDS = 30.0
_RETRY_SECONDS = 0.01
_PRIMARY_ERROR_CODE = 0xFF  # the bits above it say which kind of the error


def use_write_ahead_log(connection: sqlite3.Connection) -> None:
    """Set the journal mode of a file, and retry while another connection sets it.

    The first connection to a new file converts it. SQLite answers the others at once that the file is locked: its
    own wait for locks does not apply to this statement.
    """
    deadline = time.monotonic() + _CONVERSION_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            is_busy = error.sqlite_errorcode & _PRIMARY_ERROR_CODE == sqlite3.SQLITE_BUSY
            if not is_busy or time.monotonic() > deadline:
                raise
            time.sleep(_RETRY_SECONDS)
        else:
            return
