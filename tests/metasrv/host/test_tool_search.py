"""The shim passes every argument to Java as it was, but one."""

import shlex
import subprocess
from pathlib import Path

import pytest

from metasrv.host.tool_search import SHIM, VECTOR


@pytest.mark.process
def test_given_the_shim_when_spark_calls_java_then_only_the_vector_module_is_dropped(
    tmp_path: Path,
) -> None:
    java = tmp_path / "a folder" / "java"
    java.parent.mkdir()
    java.write_text('#!/bin/sh\nfor one do echo "[$one]"; done\n')
    java.chmod(0o755)
    shim = tmp_path / "shim"
    shim.write_text(SHIM.format(java=shlex.quote(str(java)), vector=VECTOR))

    argv = ["sh", str(shim), "-Da=b c", VECTOR, "", "--add-modules=java.base", "Main"]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)

    assert done.stdout.splitlines() == ["[-Da=b c]", "[]", "[--add-modules=java.base]", "[Main]"]
