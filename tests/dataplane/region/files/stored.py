"""A file of a region as it was written, for tests that read it."""

import pyarrow as pa


def key(number: int) -> bytes:
    return f"k{number:08}".encode()


def stored(numbers: range, version: int = 1, op: int = 0) -> pa.Table:
    count = len(numbers)
    return pa.table(
        {
            "_key": pa.array([key(number) for number in numbers], pa.binary()),
            "_version": pa.array([version] * count, pa.int64()),
            "_op": pa.array([op] * count, pa.uint8()),
            "c1": pa.array(list(numbers), pa.int64()),
            "c2": pa.array([None] * count, pa.string()),
        }
    )
