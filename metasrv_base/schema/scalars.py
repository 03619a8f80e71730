"""Constants and types of the schema for models of tables; imports no Arrow."""

PARTITIONS_MAX = 1024  # a route of more regions outgrows 256 KiB (docs/protocols.md P1)

JsonScalar = bool | int | float | str
"""A value of a column in JSON form; null stands beside it."""
