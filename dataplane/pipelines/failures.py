"""Under which code a job is told to have failed: for good, as far as it knows, or this time."""

from py4j.protocol import Py4JNetworkError

from base.errors import MetaError


def code_of(error: BaseException, *, is_cancelled: bool = False) -> str:
    """`job-failed`: it was carried out, and does not work; whoever wants it tries a few times.
    `not-ready`: it was not carried out, since it was cancelled, the JVM is gone, or a disk."""
    if isinstance(error, MetaError):
        return error.code
    is_away = isinstance(error, OSError | Py4JNetworkError)
    return "not-ready" if is_cancelled or is_away else "job-failed"
