"""Storage that is gone makes a region *lost*: said loudly, never taken for an empty one.

Storage that is there and cannot be read *now* does not: the process has no descriptor left, the
device answers with an error, a mount is away for a moment. That is Unavailable `not-ready` with the
`errno`, and is tried again.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from metasrv_base.errors import Corrupt, MetaError, NotFound, Unavailable

CODE = "region-lost"


@contextmanager
def lost_if_missing(root: str, file: str | None = None) -> Iterator[None]:
    """Turns a file or folder that does not exist into Unavailable `region-lost`."""
    try:
        yield
    except NotFound as error:
        where = {"root": root} if file is None else {"root": root, "file": file}
        raise Unavailable(CODE, **where) from error


def is_lost(error: MetaError) -> bool:
    """Whether storage is gone or damaged."""
    return isinstance(error, Corrupt) or error.code == "region-lost"
