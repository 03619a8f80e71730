"""The built wheel in a clean environment outside of the checkout: with all extras, and with none.

What is installed comes from this environment, which has it by the locks: nothing is fetched.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import venv
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest

from metasrv.playground.ports import PORTS
from metasrv_base.clock import SystemClock

pytestmark = pytest.mark.packaging

ROOT = Path(__file__).parent.parent.parent
PACKAGES = ("metasrv_base", "serving", "keys", "procedures", "metasrv", "dataplane")
UP_MS_MAX = 240_000
NAME = re.compile(r"[A-Za-z0-9._-]+")


@dataclass(frozen=True)
class Installed:
    folder: Path

    def run(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """The command `metasrv`, in a folder of its own and with no variable of ours."""
        command = [str(self.folder / "bin" / "python"), "-m", "metasrv.cli.main", *words]
        return subprocess.run(
            command, cwd=self.folder, env=self.env, capture_output=True, text=True, timeout=60
        )

    @property
    def env(self) -> dict[str, str]:
        mine = {"HOME": str(self.folder), "COLUMNS": "200"}
        kept = {name: os.environ[name] for name in ("PATH", "LANG", PORTS) if name in os.environ}
        return {**kept, **mine}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built of a copy: a build leaves files beside what it reads."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for package in PACKAGES:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / package, source / package, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", source)
    pip = [sys.executable, "-m", "pip", "wheel", "--no-index", "--no-deps"]
    build = [*pip, "--no-build-isolation", "--wheel-dir", str(out), str(source)]
    subprocess.run(build, check=True, capture_output=True, timeout=120)
    (found,) = out.glob("metasrv-*.whl")
    return found


def installed(wheel: Path, folder: Path) -> Path:
    """The wheel in a new environment of its own, without what it needs; its site-packages."""
    venv.create(folder, with_pip=False)
    (site,) = folder.glob("lib/python*/site-packages")
    pip = [sys.executable, "-m", "pip", "install", "--no-index", "--no-deps", "--no-compile"]
    to = ["--target", str(site), str(wheel)]
    subprocess.run([*pip, "--quiet", *to], check=True, capture_output=True, timeout=60)
    return site


@pytest.fixture(scope="module")
def whole(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """With all extras: everything of this environment, but for the path to the checkout."""
    folder = tmp_path_factory.mktemp("whole")
    site = installed(wheel, folder)
    (theirs,) = Path(sys.prefix).glob("lib/python*/site-packages")
    (site / "extras.pth").write_text(f"{theirs}\n")
    return Installed(folder)


@pytest.fixture(scope="module")
def alone(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Without extras: what the wheel requires, and what that requires."""
    folder = tmp_path_factory.mktemp("alone")
    site = installed(wheel, folder)
    meta = next(site.glob("metasrv-*.dist-info")) / "METADATA"
    required = re.findall(r"^Requires-Dist: (.*)$", meta.read_text(), re.MULTILINE)
    for name in closure([one for one in required if "extra ==" not in one]):
        files = distribution(name).files or []
        tops = {file.parts[0] for file in files if file.parts[0] not in ("..", "__pycache__")}
        for top in tops:
            (site / top).symlink_to(Path(str(distribution(name).locate_file(top))))
    return Installed(folder)


def closure(requirements: list[str]) -> set[str]:
    found, waiting = set[str](), list(requirements)
    while waiting:
        match = NAME.match(waiting.pop())
        assert match is not None
        name = re.sub(r"[-_.]+", "-", match[0]).lower()
        if name in found:
            continue
        try:
            more = distribution(name).requires or []
        except PackageNotFoundError:
            continue  # of another Python, or another system
        found.add(name)
        waiting += [one for one in more if "extra ==" not in one]
    return found


def test_given_all_extras_when_each_program_is_asked_for_help_then_it_starts(
    whole: Installed,
) -> None:
    """Covers the programs that the playground does not start itself."""
    for command in ("demo", "check"):
        told = whole.run(command, "--help")
        assert told.returncode == 0, told.stderr
        assert "--" in told.stdout, command


def test_given_all_extras_when_doctor_looks_then_etcd_and_java_are_found_or_told_how(
    whole: Installed,
) -> None:
    told = whole.run("doctor", "--json", "--root", str(whole.folder / "root"))

    findings = {one["name"]: one for one in json.loads(told.stdout)["findings"]}
    for name in ("etcd", "java"):
        found = findings[name]
        assert found["state"] == "ok" or "pip install 'metasrv[demo]'" in found["fix"], found
    assert "scripts/" not in told.stdout


def ready(folder: Path, program: "subprocess.Popen[str]") -> Iterator[bool]:
    """Once the playground says so, or has ended."""
    clock = SystemClock()
    until = clock.mono_ms() + UP_MS_MAX
    while not folder.exists() and program.poll() is None and clock.mono_ms() < until:
        try:
            program.wait(0.1)
        except subprocess.TimeoutExpired:
            yield False
    yield folder.exists()


def test_given_all_extras_when_a_playground_is_started_then_a_table_is_made_in_it(
    whole: Installed,
) -> None:
    data = whole.folder / "data"
    words = ["playground", "--data-dir", str(data), "--datanodes", "1", "--json"]
    command = [str(whole.folder / "bin" / "python"), "-m", "metasrv.cli.main", *words]
    with subprocess.Popen(
        command,
        cwd=whole.folder,
        env=whole.env,
        text=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as program:
        try:
            *_, is_up = ready(data / "playground.json", program)
            assert is_up, program.communicate(timeout=10)[1] if program.poll() else "it hangs"
            url = json.loads((data / "playground.json").read_text())["metasrv"][0]
            create = ["table", "create", "t", "--column", "id:int64", "--key", "id"]
            made = whole.run(*create, "--metasrv", url)
        finally:
            program.send_signal(signal.SIGTERM)
            program.communicate(timeout=240)

    assert made.returncode == 0, made.stderr


def test_given_a_project_with_modules_of_our_names_when_it_uses_the_sdk_then_it_meets_none_of_them(
    alone: Installed, tmp_path: Path
) -> None:
    ours = {"metasrv", "metasrv_base"}
    for name in {*PACKAGES, "base", "scripts", "tests"} - ours:
        (tmp_path / f"{name}.py").write_text(f"raise ImportError('{name} of the project')\n")
    code = (
        "import sys; from metasrv.sdk import Conflict, connect; import metasrv.sdk as sdk\n"
        "for name in sdk.__all__: getattr(sdk, name)\n"
        "connect('http://127.0.0.1:1').close()\n"
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )

    told = subprocess.run(
        [str(alone.folder / "bin" / "python"), "-c", code],
        cwd=tmp_path,
        env=alone.env,
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert told.returncode == 0, told.stderr
    assert set(told.stdout.split()) & set(PACKAGES) == ours


def test_given_no_extra_when_used_then_the_sdk_works_and_programs_name_what_they_need(
    alone: Installed,
) -> None:
    code = "from metasrv.sdk import connect; connect('http://127.0.0.1:1').close()"
    python = [str(alone.folder / "bin" / "python"), "-c", code]
    connected = subprocess.run(
        python, cwd=alone.folder, env=alone.env, capture_output=True, text=True, timeout=60
    )
    assert connected.returncode == 0, connected.stderr

    told = {name: alone.run(name, "--help") for name in ("table", "import", "doctor")}
    assert {name: one.returncode for name, one in told.items()} == dict.fromkeys(told, 0)
    needs = {
        "server": "metasrv[server]",
        "datanode": "metasrv[datanode]",
        "frontend": "metasrv[datanode]",
        "playground": "metasrv[server,datanode,spark]",
        "check": "metasrv[server,datanode]",
        "config": "metasrv[server,datanode]",
        "demo": "metasrv[demo]",
    }
    for name, extras in needs.items():
        refused = alone.run(name, "--help")
        assert (refused.returncode, f"pip install '{extras}'" in refused.stderr) == (2, True), name
