"""Calls a hook at each call and return of product code, in this thread and those begun later."""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from metasrv.host.toolchain import checkout

PACKAGES = frozenset({"metasrv_base", "serving", "keys", "procedures", "metasrv", "dataplane"})
ROOT = str(checkout()) + "/"


@contextmanager
def profiled(hook: Callable[[FrameType, str, object], None]) -> Iterator[None]:
    """*hook* is given the frame, the event (`sys.setprofile`) and the value returned."""
    threading.setprofile(hook)
    sys.setprofile(hook)
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def product_file(frame: FrameType) -> str | None:
    """The path of the frame's code in the checkout; None: it is not the product's."""
    name = frame.f_code.co_filename.removeprefix(ROOT)
    return name if Path(name).parts[0] in PACKAGES else None
