"""Programs of a page of docs/, run as they stand against a cluster."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
CODE = re.compile(r"```python\n(.*?)```", re.DOTALL)


def programs_of(page: str) -> list[str]:
    """The blocks of Python of `docs/PAGE`, in order."""
    programs: list[str] = CODE.findall((ROOT / "docs" / page).read_text())
    return programs


def output_of(program: str, url: str) -> str:
    """Runs *program* with METASRV_URL in a process of its own. Returns its stdout; asserts that it
    ended well."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "METASRV_URL": url, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
