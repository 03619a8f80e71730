"""Starts a program: `python -m serving.launch MODULE ARGS` runs `main(ARGS)` of MODULE.

What is imported stays, so nobody looks for garbage meanwhile: an eighth of the start of a program.
"""

import gc
import sys
from collections.abc import Sequence
from importlib import import_module


def program(module: str) -> tuple[str, ...]:
    """The command that begins it; its flags follow."""
    return (sys.executable, "-m", "serving.launch", module)


def begin(module: str, args: Sequence[str]) -> int:
    gc.disable()
    imported = import_module(module)
    gc.freeze()
    gc.enable()
    code: int = imported.main(args)
    return code


if __name__ == "__main__":
    sys.exit(begin(sys.argv[1], sys.argv[2:]))
