"""Under which code a job is told to have failed: for good, as far as it knows, or this time."""

import re

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from metasrv_base.errors import MetaError

AWAY = re.compile(
    r"ExecutorLostFailure|FetchFailed|Python worker (exited unexpectedly|failed to connect)"
    r"|OutOfMemoryError|^MemoryError|No space left on device|\[[Ee]rrno \d+\]"
    r"|SparkContext was shut down|stopped SparkContext"
    r"|Master removed our application|masters are unresponsive",
    re.MULTILINE,
)
"""What Java and its workers say of an executor, a worker, memory, a disk, the session that is gone,
and of a system call that failed."""


def code_of(error: BaseException, *, is_cancelled: bool = False) -> str:
    """`job-failed`: it was carried out, and does not work; whoever wants it tries a few times.
    `not-ready`: it was not carried out, since it was cancelled, or something is away that it needs:
    Java, an executor, memory, room on a disk."""
    if isinstance(error, MetaError):
        return error.code
    return "not-ready" if is_cancelled or _is_away(error) else "job-failed"


def _is_away(error: BaseException) -> bool:
    match error:
        case OSError() | MemoryError():
            return True
        case Py4JJavaError() | PySparkException():
            return _says_so(error)
        case Py4JError():  # no word of Java's: it is not there to say one
            return True
    return False


def _says_so(error: BaseException) -> bool:
    try:
        return AWAY.search(str(error)) is not None
    except (OSError, Py4JError):  # Java has the text, and has gone since
        return True
