"""Become another program that the kernel kills when our parent dies: `leash.py PARENT ARGV...`.

Standard library only; run by path, so it costs a child some 20 ms. The death signal survives exec.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def tie_to(parent: int, number: signal.Signals = signal.SIGKILL) -> None:
    """Has the kernel send that signal to this process when its *parent* dies; ends it if that is
    dead already."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, number)
        if os.getppid() != parent:  # it died before we could ask
            sys.exit(1)


def main(parent: int, argv: list[str]) -> None:
    tie_to(parent)
    os.execv(argv[0], argv)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
