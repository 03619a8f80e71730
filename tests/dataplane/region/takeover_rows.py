"""Rows that were flushed, and rows that were not, when a region is taken over."""

NEVER = 0  # operations count from 1


UNFLUSHED = "rows stay in the log: "
