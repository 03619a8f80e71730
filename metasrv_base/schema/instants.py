"""Instants as RFC 3339 text in UTC, exact to the unit: no float and no local time comes near."""

import re
from datetime import UTC, datetime

from metasrv_base.errors import Refused
from metasrv_base.schema.types import PER_SECOND, Unit

_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
_TEXT = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(?:Z|\+00:00)", re.ASCII
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECONDS_MIN = -62_135_596_800  # 0001-01-01T00:00:00Z: RFC 3339 has four digits for the year
SECONDS_MAX = 253_402_300_799  # 9999-12-31T23:59:59Z
INT64_MAX = (1 << 63) - 1
_FOUR_DIGIT_YEARS = "a time from year 0001 to 9999"


def in_range(count: int, unit: Unit) -> bool:
    """Whether the instant fits 64 bits and has a year from 0001 to 9999."""
    seconds = count // PER_SECOND[unit]
    return SECONDS_MIN <= seconds <= SECONDS_MAX and -INT64_MAX - 1 <= count <= INT64_MAX


def parse_instant(text: str, unit: Unit, pointer: str = "") -> int:
    """Units since the Unix epoch. Digits beyond the unit are refused, never rounded away.

    Raises Refused `invalid-request`.
    """
    match = _TEXT.fullmatch(text)
    if match is None:
        raise _refused(text, pointer, "an RFC 3339 time in UTC, as 2013-01-31T23:59:59Z")
    fraction = (match[7] or "").ljust(9, "0")
    kept = _DIGITS[unit]
    if fraction[kept:].strip("0"):
        raise _refused(text, pointer, f"at most {kept} digits after the second")
    try:
        moment = datetime(*(int(part) for part in match.groups()[:6]), tzinfo=UTC)  # type: ignore[arg-type,misc]  # six fields precede tzinfo
    except ValueError:
        raise _refused(text, pointer, "a day and a time that exist") from None
    since = moment - _EPOCH
    count = (since.days * 86_400 + since.seconds) * PER_SECOND[unit] + int(fraction[:kept] or 0)
    if not in_range(count, unit):
        raise _refused(text, pointer, f"a time that 64 bits of {unit} can hold")
    return count


def instant_text(count: int, unit: Unit) -> str:
    """The canonical text: no fraction when it is zero, else all digits of the unit.

    Raises Refused for an instant that RFC 3339 cannot name (a year after 9999).
    """
    if not in_range(count, unit):
        raise _refused(str(count), "", _FOUR_DIGIT_YEARS)
    seconds, rest = divmod(count, PER_SECOND[unit])
    days, second = divmod(seconds, 86_400)
    day = datetime.fromordinal(_EPOCH.toordinal() + days).date().isoformat()
    clock = f"{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}"
    fraction = f".{rest:0{_DIGITS[unit]}d}" if rest else ""
    return f"{day}T{clock}{fraction}Z"


def _refused(text: str, pointer: str, expected: str) -> Refused:
    return Refused("invalid-request", pointer=pointer, found=text[:64], expected=expected)
