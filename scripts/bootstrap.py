"""Set this checkout up, then do one thing in it: setup, demo, test, test-fast or check.

Standard library only, and readable by any Python 3, so that an old one gets one clear line.
"""

import os
import shutil
import subprocess
import sys

OLDEST = (3, 11)
FIX = "needs Python 3.11 or later: apt install python3.12-venv | brew install python@3.12"


def reexec_with_newer_python():
    # type: () -> None
    """Go on with a newer Python from PATH when the one that was called is too old."""
    for name in ("python3.13", "python3.12", "python3.11"):
        newer = shutil.which(name)
        if newer and works(newer):
            os.execv(newer, [newer, os.path.abspath(__file__), *sys.argv[1:]])
    sys.exit("metasrv " + FIX)


def works(python):
    # type: (str) -> bool
    """A shim of a version manager may lead nowhere."""
    with open(os.devnull, "w") as nowhere:
        return subprocess.call([python, "-c", "import venv"], stderr=nowhere) == 0


def main():
    # type: () -> int
    if sys.version_info < OLDEST:
        reexec_with_newer_python()
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    sys.path.insert(0, root)
    from scripts.setup import run

    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
