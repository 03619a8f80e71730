"""The names that users import from `metasrv.sdk` are there, and are loaded when they are used."""

import subprocess
import sys

import pytest

import metasrv.sdk
from metasrv_base import errors

HEAVY = ("httpx", "pyarrow", "pydantic")


@pytest.mark.parametrize("name", metasrv.sdk.__all__)
def test_given_a_name_of_the_sdk_when_imported_then_it_is_the_one_of_its_module(name: str) -> None:
    value = getattr(metasrv.sdk, name)

    assert value.__name__ == name
    assert getattr(sys.modules[value.__module__], name) is value


def test_given_the_errors_then_users_can_name_each_of_them() -> None:
    ours = {
        name for name, value in vars(errors).items() if isinstance(value, type) and name[0] != "_"
    }

    assert {name for name in ours if issubclass(getattr(errors, name), Exception)} <= set(
        metasrv.sdk.__all__
    )


def test_given_a_name_that_the_sdk_does_not_have_then_it_says_so() -> None:
    with pytest.raises(ImportError, match="connekt"):
        from metasrv.sdk import connekt  # noqa: F401


@pytest.mark.process
def test_given_the_package_when_imported_then_nothing_heavy_is_loaded() -> None:
    code = f"import sys, metasrv.sdk; print(sorted(sys.modules.keys() & set({HEAVY})))"

    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert told.stdout.strip() == "[]"


def test_given_the_package_then_a_shell_completes_what_users_import() -> None:
    assert dir(metasrv.sdk) == sorted(metasrv.sdk.__all__)
