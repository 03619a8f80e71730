"""Every file name in a region's root, made and strictly parsed in one place.

    fence-{epoch}-{opening}            who may write; the highest (epoch, opening) alone
    manifest-{epoch}-{opening}-{n}     what the region consists of; the highest is current
    wal-{epoch}-{opening}-{n}          a log segment of one opening
    ids-{epoch}-{opening}-{n}          statements that one opening remembers
    data/{epoch}-{opening}-{n}.parquet a file of rows
    attempts/{attempt}/{name}.parquet  files that a job brought; part of the region once adopted
    attempts/{attempt}/{name}.share    rows between the tasks of a job that has not ended

Numbers are decimal from 1, without leading zeros: a name that we would not have written is not
ours, and is left alone.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

DATA = "data"
ATTEMPTS = "attempts"
UNFINISHED = ".tmp"
SHARE = ".share"

_NUMBER = r"([1-9][0-9]{0,18})"
_FENCE = re.compile(rf"fence-{_NUMBER}-{_NUMBER}")
_MANIFEST = re.compile(rf"manifest-{_NUMBER}-{_NUMBER}-{_NUMBER}")
_SEGMENT = re.compile(rf"wal-{_NUMBER}-{_NUMBER}-{_NUMBER}")
_STATEMENTS = re.compile(rf"ids-{_NUMBER}-{_NUMBER}-{_NUMBER}")
_DATA_FILE = re.compile(rf"{_NUMBER}-{_NUMBER}-{_NUMBER}\.parquet")
_ATTEMPT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_ATTEMPT_FILE = re.compile(rf"{ATTEMPTS}/({_ATTEMPT.pattern})/({_ATTEMPT.pattern}\.parquet)")
_SHARE_FILE = re.compile(rf"{ATTEMPTS}/{_ATTEMPT.pattern}/{_ATTEMPT.pattern}\.share")


class Opening(NamedTuple):
    """One opening of a region: `epoch` is the route's, `number` counts openings within it."""

    epoch: int
    number: int


class Numbered(NamedTuple):
    """A manifest or a segment: the `number`-th of its opening. They order as the tuples do."""

    epoch: int
    opening: int
    number: int

    @property
    def of(self) -> Opening:
        return Opening(self.epoch, self.opening)


def fence_name(fence: Opening) -> str:
    return f"fence-{fence.epoch}-{fence.number}"


def manifest_name(manifest: Numbered) -> str:
    return f"manifest-{manifest.epoch}-{manifest.opening}-{manifest.number}"


def segment_name(segment: Numbered) -> str:
    return f"wal-{segment.epoch}-{segment.opening}-{segment.number}"


def statements_name(file: Numbered) -> str:
    return f"ids-{file.epoch}-{file.opening}-{file.number}"


def data_name(file: Numbered) -> str:
    """Relative to the root."""
    return f"{DATA}/{file.epoch}-{file.opening}-{file.number}.parquet"


def fences(names: Iterable[str]) -> list[Opening]:
    """The fences among `names`, lowest first."""
    matches = (_FENCE.fullmatch(name) for name in names)
    return sorted(Opening(int(hit[1]), int(hit[2])) for hit in matches if hit)


def manifests(names: Iterable[str]) -> list[Numbered]:
    """The finished manifests among `names`, lowest first."""
    return _numbered(_MANIFEST, names)


def segments(names: Iterable[str]) -> list[Numbered]:
    """The log segments among `names`, oldest first."""
    return _numbered(_SEGMENT, names)


def statement_files(names: Iterable[str]) -> list[Numbered]:
    """The files of statements among `names`, oldest first."""
    return _numbered(_STATEMENTS, names)


def parse_segment(name: str) -> Numbered | None:
    return next(iter(_numbered(_SEGMENT, [name])), None)


def is_data_file(name: str) -> bool:
    """`name` is relative to the folder `data`."""
    return _DATA_FILE.fullmatch(name) is not None


def is_attempt(name: str) -> bool:
    """The name of one attempt's folder, as orders bear it."""
    return _ATTEMPT.fullmatch(name) is not None


def attempt_of(name: str) -> str | None:
    """The attempt of an adopted file, from its name relative to the root; None: not such a name."""
    match = _ATTEMPT_FILE.fullmatch(name)
    return match[1] if match else None


def is_in_attempt(name: str) -> bool:
    """Whether *name*, relative to the root, is the folder of attempts, or anything in it."""
    return f"{name}/".startswith(f"{ATTEMPTS}/")


def is_share(name: str) -> bool:
    """Whether a job's tasks would give a file this name, relative to the root."""
    return _SHARE_FILE.fullmatch(name) is not None


def is_ours(name: str) -> bool:
    """Whether a region would give a file this name, relative to its root; unfinished ones too."""
    whole = name.removesuffix(UNFINISHED)
    folder, _, file = whole.rpartition("/")
    if folder == DATA:
        return is_data_file(file)
    if folder:
        return attempt_of(whole) is not None or is_share(name)
    return any(pattern.fullmatch(whole) for pattern in (_FENCE, _MANIFEST, _SEGMENT, _STATEMENTS))


def is_our_folder(name: str) -> bool:
    """Whether a region would make this folder in its root; `name` ends in `/`."""
    parent, _, last = name.removesuffix("/").rpartition("/")
    return (parent == ATTEMPTS and is_attempt(last)) or name in (f"{DATA}/", f"{ATTEMPTS}/")


def _numbered(pattern: re.Pattern[str], names: Iterable[str]) -> list[Numbered]:
    matches = (pattern.fullmatch(name) for name in names)
    return sorted(Numbered(int(hit[1]), int(hit[2]), int(hit[3])) for hit in matches if hit)
