"""Backfills at any point of their progress."""

from procedures.elements.reorg import (
    Made,
)


def made(number: int, rows: int = 10) -> Made:
    return Made(
        region=number, epoch=1, attempt=f"attempts/p-{number}", files=(), rows=rows, entries=rows,
        bytes=100,
    )  # fmt: skip
