"""Packages of the system, installed where we may: Debian's and Ubuntu's, as root."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from metasrv.host.tool_search import output_of
from scripts import children

QUIET = {"DEBIAN_FRONTEND": "noninteractive"}


def may_install() -> bool:
    return shutil.which("apt-get") is not None and os.geteuid() == 0


def install(root: Path, packages: list[str], is_offered: Callable[[], bool]) -> bool:
    """Whether they are installed now. The lists of packages are fetched first where they do not
    offer them."""
    apt, log = shutil.which("apt-get"), root / ".run" / "logs" / "apt.log"
    assert apt is not None, "asked first"
    if not is_offered():
        children.run([apt, "update"], cwd=root, log=log, env=QUIET)
    if not is_offered():
        return False
    command = [apt, "install", "-y", "--no-install-recommends", *packages]
    return children.run(command, cwd=root, log=log, env=QUIET) == 0


def candidate(package: str) -> str:
    """The version that would be installed; empty where none is offered."""
    text = output_of(["apt-cache", "policy", package])
    version = next((line.split()[1] for line in text.splitlines() if "Candidate:" in line), "")
    return "" if version == "(none)" else version
