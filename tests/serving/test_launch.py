"""A program begins with the collector at rest, and runs with it."""

import subprocess
import sys
from pathlib import Path

import pytest

from serving.launch import program

MAIN = """
import gc

at_import = gc.isenabled()

def main(args):
    print(at_import, gc.isenabled(), gc.get_freeze_count() > 0, *args)
    return int(args[0])
"""


@pytest.mark.parametrize("code", [0, 78])
def test_given_a_module_when_begun_then_its_main_has_the_flags_and_its_code_is_ours(
    code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "its_main.py").write_text(MAIN)
    root = Path(__file__).parents[2]
    monkeypatch.setenv("PYTHONPATH", f"{root}:{tmp_path}")

    ended = subprocess.run(
        [*program("its_main"), str(code), "--flag"], capture_output=True, text=True, check=False
    )

    assert (ended.stdout, ended.returncode) == (f"False True True {code} --flag\n", code)
    assert program("its_main")[0] == sys.executable
