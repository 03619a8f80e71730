"""Error codes of failed jobs: whether a job fails for good, as far as it knows, or this time."""

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
"""Messages of Java, Spark and Python workers about a lost executor, worker or session, a lack of
memory or disk space, or a failed system call."""


def code_of(error: BaseException, *, is_cancelled: bool = False) -> str:
    """`job-failed`: the job ran and does not work; the caller tries a few times. `not-ready`: the
    job did not run to its end, since it was cancelled, or something that it needs is away: Java, an
    executor, memory, disk space."""
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
