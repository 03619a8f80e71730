"""The Java and the etcd that this checkout uses, with the reasons: chosen once by the bootstrap,
then read.

Pure and standard library only, because `scripts/bootstrap.py` uses it before anything is installed.
"""

import json
import os
import re
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

FORMAT = 1
JAVA_OLDEST = 17  # Spark 4 runs on 17 and later
ETCD_OLDEST = (3, 4, 22)  # upstream's oldest data-safe release of 3.4
ETCD_UNSAFE = ((3, 5, 0), (3, 5, 5))  # may lose data on SIGKILL or a crash in defrag (etcd 13766)

Version = tuple[int, ...]


@dataclass(frozen=True)
class FoundProgram:
    """A program that was found, and what it printed when asked for its version."""

    source: str
    path: str
    output: str


@dataclass(frozen=True)
class Tool:
    """A chosen program. `warning` is empty, or says what not to use it for."""

    path: str
    version: str
    source: str
    why: str
    warning: str = ""


@dataclass(frozen=True)
class Toolchain:
    """The content of `.run/toolchain.json`. A tool is None where nothing acceptable was found."""

    java_home: str | None
    java: Tool | None
    etcd: Tool | None
    etcdctl: str | None

    def environment(self, path: str) -> dict[str, str]:
        """Variables for a program that starts etcd or Spark; `path` is the PATH it would have."""
        folders = [str(Path(self.java_home) / "bin")] if self.java_home else []
        folders += [str(Path(self.etcd.path).parent)] if self.etcd else []
        return {
            "PATH": os.pathsep.join([*folders, path]),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
            **({"JAVA_HOME": self.java_home} if self.java_home else {}),
        }

    def to_json(self) -> str:
        return json.dumps({"format": FORMAT, **asdict(self)}, indent=2, sort_keys=True) + "\n"

    @classmethod
    def from_json(cls, text: str) -> "Toolchain":
        """Raises ValueError where the text is not of this format: the bootstrap writes it anew."""
        fields = json.loads(text)
        if not isinstance(fields, dict) or fields.pop("format", None) != FORMAT:
            raise ValueError("not a toolchain file of format 1")
        try:
            java, etcd = (
                Tool(**fields[name]) if fields[name] else None for name in ("java", "etcd")
            )
            return cls(fields["java_home"], java, etcd, fields["etcdctl"])
        except (KeyError, TypeError) as error:
            raise ValueError("a toolchain file with missing or strange fields") from error


def toolchain_file(root: Path) -> Path:
    return root / ".run" / "toolchain.json"


def checkout() -> Path:
    """The folder that holds this package: the checkout, as `.venv` points at it."""
    return Path(__file__).resolve().parents[2]


def read_toolchain(root: Path) -> Toolchain | None:
    """Reads the toolchain; returns None if the bootstrap has not run here. Raises ValueError as
    `Toolchain.from_json`."""
    path = toolchain_file(root)
    return Toolchain.from_json(path.read_text()) if path.exists() else None


def java_version(output: str) -> Version | None:
    """Parses the output of `java -XshowSettings:properties -version`, or plain `java -version`."""
    match = re.search(r'(?:java\.version = |version ")(\d+(?:\.\d+)*)', output)
    if not match:
        return None
    version = _version(match[1])
    return version[1:] if version[0] == 1 else version  # 1.8.0 is Java 8


def java_home(output: str) -> str | None:
    match = re.search(r"^\s*java\.home = (.+?)\s*$", output, re.MULTILINE)
    return match[1] if match else None


def etcd_version(output: str) -> Version | None:
    match = re.search(r"etcd(?:ctl)? [Vv]ersion: (\d+\.\d+\.\d+)", output)
    return _version(match[1]) if match else None


def etcd_flaw(version: Version) -> str:
    """The reason why this etcd may not hold data that matters; empty when it may."""
    if version < ETCD_OLDEST:
        return f"older than {_text(ETCD_OLDEST)}"
    first, last = ETCD_UNSAFE
    if first <= version <= last:
        return f"{_text(first)} to {_text(last)} may lose data when killed"
    return ""


def choose_java(candidates: Iterable[FoundProgram]) -> Tool | None:
    """The first that is new enough; the order of candidates is the order of preference."""
    passed_over: list[str] = []
    for candidate in candidates:
        version = java_version(candidate.output)
        if version and version[0] >= JAVA_OLDEST:
            return Tool(
                candidate.path,
                _text(version),
                candidate.source,
                _why(candidate.source, passed_over),
            )
        passed_over.append(f"{candidate.source}: {_shown(version)}, need {JAVA_OLDEST}")
    return None


def choose_etcd(
    candidates: Iterable[FoundProgram], *, last_resort: FoundProgram | None
) -> Tool | None:
    """The first without a flaw; else the wheel, which is good enough for a demo and says so."""
    passed_over: list[str] = []
    for candidate in candidates:
        version = etcd_version(candidate.output)
        flaw = etcd_flaw(version) if version else "says no version"
        if version and not flaw:
            return Tool(
                candidate.path,
                _text(version),
                candidate.source,
                _why(candidate.source, passed_over),
            )
        passed_over.append(f"{candidate.source}: {_shown(version)} {flaw}")
    if last_resort is None:
        return None
    version = etcd_version(last_resort.output)
    if version is None:
        return None
    why = _why(last_resort.source, passed_over or ["none on PATH"])
    return Tool(last_resort.path, _text(version), last_resort.source, why, etcd_flaw(version))


def _why(source: str, passed_over: list[str]) -> str:
    return f"from {source}" + (f" ({'; '.join(passed_over)})" if passed_over else "")


def _shown(version: Version | None) -> str:
    return _text(version) if version else "unknown"


def _version(text: str) -> Version:
    return tuple(int(part) for part in text.split("."))


def _text(version: Version) -> str:
    return ".".join(str(part) for part in version)
