"""Logs: one JSON object a line on standard error, events constant, everything else a field."""

import logging
import sys
from contextlib import AbstractContextManager, nullcontext

import structlog


def log_to_stderr(**always: str) -> None:
    """Configures logging for a whole program; *always* goes into every line. Call it in main."""
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    structlog.contextvars.bind_contextvars(**always)


def lines_of_request(request_id: str) -> AbstractContextManager[None]:
    """Every line inside, and of tasks begun inside, bears *request_id*; empty: nobody asked."""
    if structlog.contextvars.get_contextvars().get("request_id") == (request_id or None):
        return nullcontext()
    return structlog.contextvars.bound_contextvars(request_id=request_id or None)
