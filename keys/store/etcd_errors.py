"""Translation of errors of gRPC and etcd into those of `metasrv_base.errors`, in one place.

Codes and texts: etcd 3.4, etcdserver/api/v3rpc/rpctypes/error.go. Of a call that may write, only
what the server refused while checking it is certain; everything else is Unknown (P1),
"no space" included: etcd may have applied the write all the same (op-guide/maintenance).
"""

import asyncio
from types import TracebackType

from aetcd import rpc
from grpc.aio import UsageError

from keys.store.kv import OUT_OF_SPACE
from metasrv_base.errors import Conflict, MetaError, Refused, Unavailable, Unknown

TOO_LARGE = ("too many operations", "request is too large", "larger than max")
NO_SPACE = "database space exceeded"
NO_LEASE = "requested lease not found"
COMPACTED = "has been compacted"
FUTURE = "is a future revision"
OLD_TOKEN = ("invalid auth token", "revision of auth store is old")


class TokenRefused(Unavailable):
    """etcd does not know who we are (any more), and did not look at what we ask for."""


class Translated:
    """Every foreign error of the block as one of ours, cause kept.

    A cancellation passes through, unless it is gRPC's own: a closed channel cancels its calls, and
    nobody asked this task to stop. Not a generator: it is entered for each call to etcd.
    """

    __slots__ = ("_call", "_writes")

    def __init__(self, call: str, *, writes: bool) -> None:
        self._call = call
        self._writes = writes

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        match error:
            case None:
                return
            case rpc.AioRpcError():
                status, details = error.code().name, error.details() or ""
                raise meaning(status, details, self._call, writes=self._writes) from error
            case UsageError():
                raise Unavailable(call=self._call, reason="closed") from error
            case asyncio.InvalidStateError():
                raise _not_known(self._call, self._writes, reason="stream-over") from error
            case asyncio.CancelledError():
                task = asyncio.current_task()
                if task is not None and not task.cancelling():
                    raise _not_known(self._call, self._writes, reason="closed") from error


def meaning(status: str, details: str, call: str, *, writes: bool) -> MetaError:
    """*status* is the name of gRPC's code, *details* the server's text."""
    refused = _refused(status, details, call)
    if refused is not None:
        return refused
    if NO_SPACE in details:
        return _not_known(call, writes, reason=OUT_OF_SPACE)
    return _not_known(call, writes, grpc=status, details=details)


def _refused(status: str, details: str, call: str) -> MetaError | None:
    """Returns the error of a call that the server certainly did not perform; None: unknown."""
    if COMPACTED in details:
        return Conflict("history-expired", call=call)
    if FUTURE in details:
        return Unavailable(call=call, reason="future-revision")
    if NO_LEASE in details:
        return Conflict(call=call, found="lease gone")
    if any(text in details for text in OLD_TOKEN):
        return TokenRefused(call=call, reason="token-refused")
    if any(text in details for text in TOO_LARGE):
        return Refused("ddl-too-large", call=call, details=details)
    if status in {"UNAUTHENTICATED", "PERMISSION_DENIED"}:
        return Refused("unauthenticated", call=call, details=details)
    if status == "INVALID_ARGUMENT":
        return Refused(call=call, details=details)
    return None


def _not_known(call: str, writes: bool, **facts: object) -> MetaError:
    return Unknown(call=call, **facts) if writes else Unavailable(call=call, **facts)
