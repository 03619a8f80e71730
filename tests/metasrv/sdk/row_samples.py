"""Rows that tests of the client write."""

from typing import Any

ROWS: list[dict[str, Any]] = [{"id": id, "a": id, "b": f"w{id}"} for id in range(10)]
