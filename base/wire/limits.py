"""Limits of stored rows and of statements, in one place. Beyond one: 422 `limit-exceeded`, which
names it.

They are checked where a statement enters: by the frontend, by jobs, and by the region itself.
"""

KEY_BYTES_MAX = 4 << 10
"""Of a row's primary key, encoded (base/schema/keycodec.py). Keys stand in page tokens, in plans of
jobs, and shortened in manifests."""
ENTRY_KEY_BYTES_MAX = 2 * KEY_BYTES_MAX
"""Of an index entry's key: the indexed values and, unless the index is unique, the row's key."""
ROW_BYTES_MAX = 8 << 20
"""Of all values of a row, its key included. An answer holds one row at least."""
BATCH_BYTES_MAX = 64 << 20
"""Of one batch for one region: the part of a statement that is atomic."""
BATCH_ROWS_MAX = 1_000_000
"""Of one batch: bounds rows of few bytes."""
