"""Storage that cannot be read makes a region *lost*: said loudly, never taken for an empty one."""

from collections.abc import Iterator
from contextlib import contextmanager

from base.errors import NotFound, Unavailable

CODE = "region-lost"


@contextmanager
def lost_if_unreadable(root: str, file: str | None = None) -> Iterator[None]:
    """Turns a file or folder that is gone or cannot be read into Unavailable `region-lost`."""
    try:
        yield
    except (NotFound, Unavailable) as error:
        if error.code == CODE:
            raise
        where = {"root": root} if file is None else {"root": root, "file": file}
        raise Unavailable(CODE, **where) from error
