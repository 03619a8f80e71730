"""`metasrv doctor`: what this machine has, why it was chosen, and the line that mends the rest."""

import json
import os
import platform
import shutil
import socket
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from metasrv.cli.extras import EXTRAS, install, missing_of
from metasrv.host.storage_roots import kind_of, root_verdict, try_out
from metasrv.host.tool_search import search
from metasrv.host.toolchain import Tool, checkout, read_toolchain

SET_UP = "python3 scripts/bootstrap.py setup"
MARKS = {"ok": "[green]ok[/]     ", "warning": "[yellow]warning[/]", "missing": "[red]MISSING[/]"}
FREE_BYTES_MIN = 2 * 1024**3  # the demo writes its rows twice, and Spark keeps scratch files

PAGE_COMMANDS = (
    ("jq", "docs/tutorial.md and docs/rest.md need it"),
    ("curl", "docs/rest.md needs it"),
)


@dataclass(frozen=True)
class Finding:
    """One line. `state` is ok, warning or missing; `fix` is what a person types to mend it."""

    name: str
    state: str
    said: str
    fix: str = ""


def command(
    root: Annotated[Path, typer.Option(help="A storage root to check.", metavar="FOLDER")] = Path(
        ".run"
    ),
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document instead of text.")
    ] = False,
) -> None:
    """Show what this machine lacks for metasrv, and how to install it.

    Exit 0: everything is there. Exit 1: something is missing.
    """
    findings = list(examine(root.resolve()))
    if as_json:
        typer.echo(json.dumps({"findings": [asdict(finding) for finding in findings]}, indent=2))
    else:
        _show(findings)
    raise typer.Exit(1 if any(finding.state == "missing" for finding in findings) else 0)


def examine(root: Path) -> Iterator[Finding]:
    python = f"{platform.python_version()} at {sys.executable}"
    yield Finding("python", "ok", python)
    yield from _tools()
    yield _pyspark()
    for name, pages in PAGE_COMMANDS:
        yield command_finding(name, shutil.which(name), pages)
    yield from _extras()
    cores = os.cpu_count() or 1
    few = Finding("cores", "warning", f"{cores}: the demo starts eight processes", "use 2 or more")
    yield Finding("cores", "ok", str(cores)) if cores >= 2 else few
    yield _localhost()
    yield _storage_root(root)
    yield _disk(root)


def _tools() -> Iterator[Finding]:
    """The tools that a checkout has chosen; an installed wheel looks for them each time."""
    is_checkout = (checkout() / "scripts" / "bootstrap.py").exists()
    try:
        chosen = read_toolchain(checkout())
    except ValueError as error:
        yield Finding("toolchain", "missing", str(error), SET_UP)
        return
    if chosen is None and is_checkout:
        yield Finding("toolchain", "missing", "nothing was chosen in this checkout yet", SET_UP)
        return
    chosen = chosen or search(os.environ)
    then = f" && {SET_UP}" if is_checkout else f", or: {install('demo')}"
    yield tool_finding("java", chosen.java, "apt-get install openjdk-17-jre-headless", then)
    if chosen.java_home:
        yield Finding("java home", "ok", chosen.java_home)
    yield tool_finding("etcd", chosen.etcd, "apt-get install etcd-server etcd-client", then)
    if chosen.etcdctl:
        yield Finding("etcdctl", "ok", chosen.etcdctl)


def tool_finding(
    name: str, tool: Tool | None, command: str, then: str = f" && {SET_UP}"
) -> Finding:
    fix = command + then
    if tool is None:
        text = (
            "none on PATH or in the wheels of `demo`"
            if name == "etcd"
            else "none on PATH, in JAVA_HOME or in the wheels of `demo`"
        )
        return Finding(name, "missing", f"{text} is acceptable", fix)
    if not os.access(tool.path, os.X_OK):
        return Finding(name, "missing", f"{tool.path} was chosen and is gone", SET_UP)
    text = f"{tool.version} at {tool.path}, {tool.why}"
    if tool.warning:
        return Finding(name, "warning", f"{text}; {tool.warning}: only for a demo", fix)
    return Finding(name, "ok", text)


def _pyspark() -> Finding:
    try:
        return Finding("pyspark", "ok", version("pyspark"))
    except PackageNotFoundError:
        return Finding("pyspark", "missing", "not installed in this Python", install("spark"))


def command_finding(name: str, path: str | None, pages: str) -> Finding:
    """A command that only *pages* use. *path*: None if it is not on PATH."""
    if path is None:
        return Finding(name, "warning", f"not on PATH; {pages}", f"apt-get install {name}")
    return Finding(name, "ok", path)


def _extras() -> Iterator[Finding]:
    """Yields a warning for each extra of an installed wheel that lacks packages."""
    for extra in EXTRAS:
        lacking = missing_of(extra)
        if lacking:
            text = f"[{extra}] lacks {', '.join(lacking)}"
            yield Finding("extra", "warning", text, install(extra))


def _localhost() -> Finding:
    """Spark's driver and its workers find each other by this name."""
    try:
        addresses = {str(info[4][0]) for info in socket.getaddrinfo("localhost", None)}
    except OSError as error:
        fix = "echo '127.0.0.1 localhost' >> /etc/hosts"
        return Finding("localhost", "missing", f"does not resolve: {error}", fix)
    return Finding("localhost", "ok", ", ".join(sorted(addresses)))


def _storage_root(root: Path) -> Finding:
    mounts = Path("/proc/self/mountinfo")
    verdict = root_verdict(kind_of(str(root), mounts.read_text()) if mounts.exists() else None)
    tried = try_out(root)
    text = f"{root}: {verdict.why}; {tried.why}"
    state = "ok" if verdict.ok and tried.ok else "missing"
    return Finding("root", state, text, "" if state == "ok" else "--root FOLDER on a local disk")


def _disk(root: Path) -> Finding:
    free = shutil.disk_usage(root).free
    text = f"{free / 1024**3:.1f} GiB free at {root}"
    if free < FREE_BYTES_MIN:
        return Finding("disk", "warning", text, f"free {FREE_BYTES_MIN / 1024**3:.0f} GiB there")
    return Finding("disk", "ok", text)


def _show(findings: list[Finding]) -> None:
    console = Console(soft_wrap=True, highlight=False)
    for finding in findings:
        console.print(f"{MARKS[finding.state]}  {finding.name:10} {escape(finding.said)}")
        if finding.fix:
            console.print(f"{'':9}{'':10} fix: [bold]{escape(finding.fix)}[/]")
