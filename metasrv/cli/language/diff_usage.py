"""Wrong usage of `metasrv diff` has the exit code of a fault: 2 says that there is a difference."""

from typing import Any

import typer
from typer.core import TyperCommand

EXIT_FAULT = 1
_USAGE_ERROR: Any = typer.BadParameter.__bases__[0]
"""typer has it from click, or from its own copy of click."""


class DiffCommand(TyperCommand):
    """Elsewhere a wrong option ends with 2 (docs/decisions/0320)."""

    def make_context(self, *given: Any, **extra: Any) -> Any:
        try:
            return super().make_context(*given, **extra)
        except _USAGE_ERROR as error:
            error.exit_code = EXIT_FAULT
            raise
