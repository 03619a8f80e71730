"""The handler of the catalog log that runs in this task, if one does. It may neither commit nor
wait for a version: its own version counts only once it has ended."""

from contextvars import ContextVar

HANDLING: ContextVar[str | None] = ContextVar("update_handler", default=None)
"""Name of the handler; tasks that it starts inherit it."""


def must_not_be_handling(what: str) -> None:
    """Asserts that no handler asks for *what*: it would wait for itself."""
    assert HANDLING.get() is None, f"the update handler {HANDLING.get()!r} must not {what}"
