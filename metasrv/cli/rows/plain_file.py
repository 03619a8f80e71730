"""A file of rows that can be read twice: stdin and packed files are copied to a temporary one."""

import gzip
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO

from metasrv.cli.errors.places import FILE
from metasrv.cli.rows.row_format import GZIP, STDIN
from metasrv_base.errors import Refused


@contextmanager
def plain_file(file: Path, ending: str | None) -> Iterator[Path]:
    """A path to the unpacked rows. *ending*: of the format, instead of that of the name, as
    `.csv`. Raises Refused for a file that is not there or is not packed as its name says."""
    is_packed = file.suffix.lower() == GZIP
    name = file.with_suffix("") if is_packed else file
    if str(file) != STDIN and not is_packed and ending in (None, file.suffix.lower()):
        yield file
        return
    with TemporaryDirectory() as folder:
        copy = Path(folder) / f"{name.stem or 'stdin'}{ending or name.suffix}"
        try:
            with _opened(file, is_packed) as source, copy.open("wb") as target:
                shutil.copyfileobj(source, target)
        except (OSError, EOFError) as error:
            raise Refused(
                "invalid-request", pointer=FILE, path=str(file), reason=str(error)
            ) from error
        yield copy


@contextmanager
def _opened(file: Path, is_packed: bool) -> Iterator[BinaryIO]:
    if str(file) == STDIN:
        yield sys.stdin.buffer
        return
    with gzip.open(file) if is_packed else file.open("rb") as source:
        yield source  # type: ignore[misc]  # a GzipFile reads as a BinaryIO does
