"""Modules left out of programs; pyarrow without a pandas is tested in tests/process."""

import sys
from importlib import import_module

import pytest

from serving.left_out import leave_out_httpx_command, leave_out_pandas, leave_out_sniffio


def test_given_a_program_without_pandas_when_imported_then_it_is_as_if_not_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    monkeypatch.delitem(sys.modules, "pandas", raising=False)
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)

    leave_out_pandas()

    with pytest.raises(ModuleNotFoundError):
        import_module("pandas")
    assert import_module("colorsys").__name__ == "colorsys"


def test_given_a_program_without_the_command_of_httpx_then_only_that_is_not_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    monkeypatch.delitem(sys.modules, "httpx._main", raising=False)

    leave_out_httpx_command()

    with pytest.raises(ModuleNotFoundError):
        import_module("httpx._main")
    assert import_module("httpx").get.__name__ == "get"


def test_given_a_program_without_sniffio_when_asked_for_then_no_folder_is_searched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    searched: list[str] = []

    class Finder:
        def find_spec(self, name: str, _path: object, _target: object = None) -> None:
            searched.append(name)

    monkeypatch.setattr(sys, "meta_path", [Finder(), *sys.meta_path])
    monkeypatch.delitem(sys.modules, "sniffio")

    leave_out_sniffio()

    with pytest.raises(ModuleNotFoundError):
        import_module("sniffio")
    assert searched == []
