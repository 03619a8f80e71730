"""The Python Database API 2.0 (PEP 249) over SQL of metasrv: `from metasrv import dbapi`.

Rows go to frontends, statements about the catalog to metasrv (docs/sql.md). What it raises is in
metasrv/dbapi/errors.py. It needs neither Arrow nor a parser of SQL.
"""

from datetime import date as Date  # noqa: N812 - the names are PEP 249's
from datetime import time as Time  # noqa: N812

from metasrv.dbapi.connection import Connection, connect
from metasrv.dbapi.cursor import Cursor
from metasrv.dbapi.errors import (
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    OutcomeUnknownError,
    PartlyDoneError,
    ProgrammingError,
    Warning,
)
from metasrv.dbapi.types import BINARY, DATETIME, NUMBER, ROWID, STRING
from metasrv.dbapi.types import date_from_ticks as DateFromTicks  # noqa: N812
from metasrv.dbapi.types import time_from_ticks as TimeFromTicks  # noqa: N812
from metasrv.dbapi.types import timestamp_from_ticks as TimestampFromTicks  # noqa: N812
from metasrv.dbapi.types import utc_timestamp as Timestamp  # noqa: N812

apilevel = "2.0"
threadsafety = 2
"""Threads may share the module and connections, not cursors."""
paramstyle = "qmark"
Binary = bytes

__all__ = [
    "BINARY",
    "DATETIME",
    "NUMBER",
    "ROWID",
    "STRING",
    "Binary",
    "Connection",
    "Cursor",
    "DataError",
    "DatabaseError",
    "Date",
    "DateFromTicks",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "NotSupportedError",
    "OperationalError",
    "OutcomeUnknownError",
    "PartlyDoneError",
    "ProgrammingError",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "Warning",
    "apilevel",
    "connect",
    "paramstyle",
    "threadsafety",
]
