"""The connection of PEP 249. Each statement is a transaction of its own, and durable when it
returns."""

from collections.abc import Sequence
from concurrent.futures import CancelledError
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypedDict, Unpack

from metasrv.dbapi import errors
from metasrv.dbapi.cursor import Cursor
from metasrv.dbapi.session import ConnectionSession, ConnectionTarget
from metasrv.sdk.portal import ClosedPortal, Portal
from metasrv.sdk.urls import urls_of
from metasrv_base.errors import Unknown

if TYPE_CHECKING:
    from metasrv_base.wire.language.sql import StatementResult


class Connection:
    """Made by `connect`; threads may share it, each with cursors of its own. A context, which
    closes it."""

    autocommit = True
    """Always."""

    Warning = errors.Warning
    Error = errors.Error
    InterfaceError = errors.InterfaceError
    DatabaseError = errors.DatabaseError
    DataError = errors.DataError
    OperationalError = errors.OperationalError
    IntegrityError = errors.IntegrityError
    InternalError = errors.InternalError
    ProgrammingError = errors.ProgrammingError
    NotSupportedError = errors.NotSupportedError

    def __init__(self, session: ConnectionSession, portal: Portal) -> None:
        """Wraps *session*, whose event loop runs in *portal*; closing the connection closes the
        portal."""
        self._session, self._portal = session, portal
        self._is_closed = False

    def cursor(self) -> Cursor:
        self.must_be_open()
        return Cursor(self)

    def commit(self) -> None:
        """Does nothing: what returned is durable. Several statements about the catalog are one
        change as `BEGIN; ..; COMMIT` in one `execute`."""
        self.must_be_open()

    def rollback(self) -> None:
        """Raises NotSupportedError: what returned is done, and stays."""
        self.must_be_open()
        raise errors.NotSupportedError("Each statement is committed by itself: no rollback.")

    def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        try:
            self._portal.call(self._session.close())
        finally:
            self._portal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # -- for cursors

    def must_be_open(self) -> None:
        if self._is_closed:
            raise errors.InterfaceError("The connection is closed.")

    def run(self, text: str, results: "list[StatementResult]") -> None:
        """Adds the results of the statements of a text. Raises the errors of the SDK: what was
        added is done. Unknown: also if another thread closes the connection meanwhile."""
        try:
            self._portal.call(self._session.run(text, results))
        except ClosedPortal as error:
            raise errors.InterfaceError("The connection is closed.") from error
        except CancelledError as error:
            raise Unknown(reason="the connection was closed meanwhile") from error


class ConnectOptions(TypedDict, total=False):
    """Keyword arguments of `connect`."""

    catalog: str
    """Holds the schemas that are named without a catalog; by default `main`."""
    schema: str
    """Holds the objects that are named without a schema; by default `public`."""
    token: str | None
    """The secret of a service that asks for one."""
    patience_ms: int
    """The time for which a request waits for a service that is silent; by default 15,000."""
    wait_s: float
    """Seconds for one `execute`, by default 60; then OutcomeUnknownError is raised, and a change of
    the catalog goes on."""
    max_lag: int | None
    """The age in ms that rows of queries may have, 1 to 3,600,000, so that copies may answer.
    Default, and None: leaders answer, with all rows."""


def connect(url: str | Sequence[str], **options: Unpack[ConnectOptions]) -> Connection:
    """A connection to the service at *url*, or at several. Nothing need be there yet."""
    with errors.translated():
        target = ConnectionTarget(urls_of(url), **options)
    portal = Portal()
    with ExitStack() as undo:
        undo.callback(portal.close)
        session = portal.call(_opened(target))
        undo.pop_all()
    return Connection(session, portal)


async def _opened(target: ConnectionTarget) -> ConnectionSession:
    session = ConnectionSession(target)
    await session.open()
    return session
