"""Golden files of the formats in metasrv_base/schema. `python -m tests.metasrv_base.schema.golden`
writes them anew; the difference is a change of a stored format and needs a new format number.
"""

import math
from pathlib import Path

from metasrv_base.schema.entrycodec import encode_entry
from metasrv_base.schema.keycodec import encode
from metasrv_base.schema.partition import HashRule, RangeRule, router
from metasrv_base.schema.types import parse_type
from metasrv_base.schema.values import to_json
from tests.metasrv_base.schema.values import SAMPLES

FOLDER = Path(__file__).parents[2] / "golden" / "base"


def keys() -> str:
    lines = []
    for text, samples in SAMPLES:
        type = parse_type(text)
        lines += [f"{text} {to_json(type, v)!r} {encode([type], [v]).hex()}" for v in samples]
    pair = [parse_type(text) for text in ("int64", "int64", "string")]
    row = (7, -7, "a\0b")
    lines.append(f"int64,int64,string {row!r} {encode(pair, row).hex()}")
    return "\n".join(lines) + "\n"


def entries() -> str:
    lines = []
    for text, samples in SAMPLES:
        type = parse_type(text)
        last = (math.nan,) if text.startswith("float") else ()
        for value in (None, samples[0], samples[-1], *last):
            shown = None if value is None else to_json(type, value)
            entry = encode_entry([type], [value], b"\x07", unique=True)
            lines.append(f"{text} {shown!r} unique {entry.hex()}")
    pair = [parse_type(text) for text in ("int64", "string")]
    for row in ((7, "a\0b"), (None, "a"), (7, None)):
        for unique in (False, True):
            entry = encode_entry(pair, row, b"\x07", unique=unique)
            lines.append(f"int64,string {row!r} {'unique' if unique else 'plain'} {entry.hex()}")
    return "\n".join(lines) + "\n"


def partition() -> str:
    int64, string = parse_type("int64"), parse_type("string")
    lines = []
    for count in (1, 2, 3, 4, 16, 1024):
        rule = HashRule(columns=(1,), count=count)
        numbers = [router(rule, [int64]).number([value]) for value in range(12)]
        lines.append(f"{rule.model_dump_json()} int64 0..11 {numbers}")
    pair = HashRule(columns=(1, 2), count=8)
    numbers = [router(pair, [int64, string]).number([n, f"UA{n}"]) for n in range(12)]
    lines.append(f"{pair.model_dump_json()} int64,string (n, 'UA{{n}}') {numbers}")
    ranges = RangeRule(columns=(1,), bounds=((0,), (100,)))
    numbers = [router(ranges, [int64]).number([n]) for n in (-1, 0, 1, 99, 100, 101)]
    lines.append(f"{ranges.model_dump_json()} int64 -1,0,1,99,100,101 {numbers}")
    return "\n".join(lines) + "\n"


def read(name: str) -> str:
    return (FOLDER / name).read_text()


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "keys.txt").write_text(keys())
    (FOLDER / "entries.txt").write_text(entries())
    (FOLDER / "partition.txt").write_text(partition())
