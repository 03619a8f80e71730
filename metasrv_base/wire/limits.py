"""Limits of stored rows and of statements, in one place. Beyond one: 422 `limit-exceeded`, which
names it.

They are checked where a statement enters: by the frontend, by jobs, and by the region itself.
"""

KEY_BYTES_MAX = 4 << 10
"""The longest primary key of a row, in bytes, encoded (metasrv_base/schema/keycodec.py). Page
tokens and plans of jobs hold keys whole; manifests hold them shortened.
"""
ENTRY_KEY_BYTES_MAX = 2 * KEY_BYTES_MAX
"""The longest key of an index entry, in bytes: the indexed values and, unless the index is unique,
the row's key."""
ROW_BYTES_MAX = 8 << 20
"""The largest row, in bytes: all its values, its key included. An answer holds one row at least."""
BATCH_BYTES_MAX = 64 << 20
"""The largest batch for one region, in bytes. A batch is the part of a statement that is atomic."""
BATCH_ROWS_MAX = 1_000_000
"""The most rows of one batch. The limit bounds batches whose rows have few bytes."""
RECORD_BYTES_MAX = BATCH_BYTES_MAX + (16 << 20)
"""The largest record of a region's log, in bytes. A batch is logged with all columns of its table,
also those that its sender left out, as a delete does, and may be refused for their bytes."""
MAX_LAG_MS_MAX = 3_600_000
"""The largest `max_lag` of a read, in ms: the age of the rows that it takes from a copy."""
