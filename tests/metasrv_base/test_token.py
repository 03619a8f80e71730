"""Tokens, their files, and on which addresses a program may listen: the decision by itself."""

from pathlib import Path

import pytest

from metasrv_base.token import (
    Tokens,
    hash_of,
    line_of,
    listen_fault,
    new_token,
    read_token,
    read_tokens,
)

SECRET = "a-secret-of-more-than-twenty-characters"
OTHER = "another-secret-of-more-than-twenty-characters"


def written(path: Path, text: str, mode: int = 0o600) -> Path:
    path.write_text(text)
    path.chmod(mode)
    return path


def test_given_a_tokens_file_when_read_then_each_token_names_who_holds_it(tmp_path: Path) -> None:
    mine, yours = new_token(), new_token()
    text = f"# who may ask\n{line_of('anna', mine)}\n\n{line_of('dn-1', yours)}\n"

    tokens = read_tokens(written(tmp_path / "tokens", text))

    assert (tokens.holder(mine), tokens.holder(yours)) == ("anna", "dn-1")
    assert tokens.holder(hash_of(mine)) is None
    assert tokens.holder("") is None
    assert mine not in text


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o601])
def test_given_a_secret_that_others_can_reach_when_read_then_refused(
    tmp_path: Path, mode: int
) -> None:
    tokens = written(tmp_path / "tokens", line_of("anna", SECRET), mode)
    token = written(tmp_path / "token", SECRET, mode)

    with pytest.raises(ValueError, match="others can read it"):
        read_tokens(tokens)
    with pytest.raises(ValueError, match="others can read it"):
        read_token(token)


@pytest.mark.parametrize(
    "text", ["", "# nobody\n", f"anna {SECRET}\n", f"anna sha256:{'A' * 64}\n", "a b c\n"]
)
def test_given_a_file_without_hashes_when_read_then_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(ValueError, match=r"tokens"):
        read_tokens(written(tmp_path / "tokens", text))


def test_given_a_name_twice_when_read_then_it_holds_both(tmp_path: Path) -> None:
    text = f"{line_of('anna', SECRET)}\n{line_of('anna', OTHER)}\n"

    tokens = read_tokens(written(tmp_path / "tokens", text))

    assert (tokens.holder(SECRET), tokens.holder(OTHER)) == ("anna", "anna")


def test_given_a_token_twice_when_read_then_refused(tmp_path: Path) -> None:
    text = f"{line_of('anna', SECRET)}\n{line_of('bob', SECRET)}\n"

    with pytest.raises(ValueError, match="line 2"):
        read_tokens(written(tmp_path / "tokens", text))


@pytest.mark.parametrize("text", ["", "\n", "short\n", "with a space in it, and long enough\n"])
def test_given_no_token_in_its_first_line_when_read_then_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(ValueError, match="no token"):
        read_token(written(tmp_path / "token", text))


def test_given_no_file_when_read_then_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot be read"):
        read_token(tmp_path / "nothing")


@pytest.mark.parametrize(
    ("host", "advertise", "has_tokens", "fault"),
    [
        ("127.0.0.1", None, False, None),
        ("localhost", None, False, None),
        ("::1", None, False, None),
        ("10.0.0.7", None, False, "tokens_file"),
        ("0.0.0.0", "meta-1", False, "tokens_file"),
        ("127.0.0.1.example.org", None, False, "tokens_file"),
        ("10.0.0.7", None, True, None),
        ("0.0.0.0", None, True, "advertise"),
        ("0.0.0.0", "meta-1", True, None),
    ],
)
def test_given_a_host_when_judged_then_loopback_or_tokens(
    host: str, advertise: str | None, has_tokens: bool, fault: str | None
) -> None:
    said = listen_fault(host, advertise, has_tokens=has_tokens)

    assert (said is None) if fault is None else (said is not None and fault in said)


def test_given_no_tokens_when_asked_then_nobody_holds_any() -> None:
    assert Tokens({}).holder(SECRET) is None
