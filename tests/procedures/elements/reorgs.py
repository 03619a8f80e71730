"""Backfills at any point of their progress."""

from procedures.elements.reorg import (
    BuiltFiles,
)


def made(number: int, rows: int = 10) -> BuiltFiles:
    return BuiltFiles(
        region=number, epoch=1, attempt=f"attempts/p-{number}", files=(), rows=rows, entries=rows,
        bytes=100,
    )  # fmt: skip
