"""A file that appears under its name once it is whole."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import typer

from metasrv.cli.progress import EXIT_INTERRUPTED

MODE = 0o666  # less what the user's umask takes


@contextmanager
def whole_file(file: Path, mode: int = MODE) -> Iterator[BinaryIO]:
    """The file to write, beside its place until the block ends; it replaces one of that name, and
    is on the disk then. A device or a pipe is written as it is. Raises BadParameter; an interrupt
    leaves no file and ends the command."""
    if file.exists() and not file.is_file() and not file.is_dir():
        with _as_it_is(file) as out:
            yield out
        return
    target = file.resolve() if file.is_symlink() else file
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        opened = os.open(part, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, mode)
        with os.fdopen(opened, "wb") as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
        part.replace(target)
        _sync(target.parent)
    except OSError as error:
        raise typer.BadParameter(f"FILE {file}: {error.strerror or error}") from error
    except KeyboardInterrupt:
        typer.echo(f"interrupted; {file} was not written", err=True)
        raise typer.Exit(EXIT_INTERRUPTED) from None
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def _as_it_is(file: Path) -> Iterator[BinaryIO]:
    try:
        with file.open("wb") as out:
            yield out
    except OSError as error:
        raise typer.BadParameter(f"FILE {file}: {error.strerror or error}") from error


def _sync(folder: Path) -> None:
    """Syncs a folder: an entry that is not synced may be gone after a loss of power."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
