"""Parts of libraries that a program does not use, and would import only because they are there."""

import sys
from collections.abc import Collection, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType


class _LeftOut:
    """An import of one of *names* fails as if it were not installed."""

    def __init__(self, names: Collection[str]) -> None:
        self._names = names

    def find_spec(
        self, name: str, _path: Sequence[str] | None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name in self._names:
            raise ModuleNotFoundError("this program does not use it", name=name)
        return None


def leave_out_pandas() -> None:
    """Keeps pandas from being imported in this program. Call it before any conversion: pyarrow
    would import pandas with the first value (a quarter of a second, 36 MB)."""
    sys.meta_path.insert(0, _LeftOut(("pandas",)))


def leave_out_httpx_command() -> None:
    """Keeps the command of httpx from being imported in this program. Call it before httpx is
    imported: the command needs click, rich and pygments, a third of the import."""
    sys.meta_path.insert(0, _LeftOut(("httpx._main",)))


def leave_out_sniffio() -> None:
    """Keeps httpx from looking for sniffio in this program, which it does with each request: it is
    not installed, and the search through all of `sys.path` takes a fifth of a millisecond."""
    sys.modules["sniffio"] = None  # type: ignore[assignment]  # "not found", without a search


def leave_out_typer_values() -> None:
    """For a TAB, which needs words of a line as they are: the adapters of typer import pydantic to
    convert them, a third of the time. A value of another type than text is None then."""
    unconverted = ModuleType("typer._adapters")
    vars(unconverted)["try_build_adapter"] = _no_adapter
    sys.modules[unconverted.__name__] = unconverted


def _no_adapter(**_: object) -> None:  # typer passes a value on then, if it has the right type
    return None
