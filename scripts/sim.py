"""Seeds of the simulation, as many as you like: `make sim SEEDS=10000`.

Prints each seed that went wrong, with its faults and the digest of its trace, and at the end how
often every rare state was reached. Exit 1 if one went wrong, or a rare state was never reached.
`--short` lives short lives, `--length outage` those in which several nodes die. `--bug` plants a
mistake, which must be found: exit 0 as soon as it is.
"""

import argparse
import os
import sys
from collections import Counter
from collections.abc import Sequence

from tests.sim.length import LONG, Life
from tests.sim.planted.mistakes import BUGS, Bugs
from tests.sim.profiles import LENGTHS, lived
from tests.sim.report import never, shown

HASHES = "0"
EVERY = 20  # seeds between two lines of progress


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="sim", description=__doc__)
    parser.add_argument("--seeds", type=int, default=100, help="How many.")
    parser.add_argument("--first", type=int, default=1, help="The first of them.")
    parser.set_defaults(length=LONG.name)
    parser.add_argument("--short", dest="length", action="store_const", const="short")
    parser.add_argument("--length", choices=LENGTHS, help="What they are like.")
    parser.add_argument("--bug", choices=sorted(BUGS), help="Plant it, and look for it.")
    asked = parser.parse_args(argv)
    _fix_hashes(argv)
    length = LENGTHS[asked.length]
    lives = [Life(asked.first + number, length) for number in range(asked.seeds)]
    return _hunt(lives, BUGS[asked.bug]) if asked.bug else _live(lives)


def _fix_hashes(argv: Sequence[str]) -> None:
    """A seed is the same history in every process only where sets of text have one order."""
    if os.environ.get("PYTHONHASHSEED") != HASHES:
        command = [sys.executable, "-m", "scripts.sim", *argv]
        os.execve(sys.executable, command, {**os.environ, "PYTHONHASHSEED": HASHES})


def _live(lives: Sequence[Life]) -> int:
    sometimes, wrong, operations = Counter[str](), 0, 0
    for done, life in enumerate(lives, start=1):
        outcome = lived(life)
        sometimes += outcome.sometimes
        operations += outcome.operations
        if outcome.violations:
            wrong += 1
            print(shown(outcome), flush=True)
        if done % EVERY == 0:
            print(f"{done} seeds, {operations} operations, {wrong} wrong", flush=True)
    for what, count in sorted(sometimes.items()):
        print(f"{count:8} {what}")
    missed = never(sometimes, operations)
    counted = f"{len(lives)} seeds, {operations} operations, {wrong} wrong"
    print(f"{counted}; never: {missed or 'nothing'}")
    return 1 if wrong or missed else 0


def _hunt(lives: Sequence[Life], bugs: Bugs) -> int:
    missed = bugs.seams
    for tried, life in enumerate(lives, start=1):
        outcome = lived(life, bugs, until="")
        missed &= outcome.missed
        if outcome.violations:
            print(f"found after {tried} seeds\n{shown(outcome)}")
            return 0
    print(f"not found in {len(lives)} seeds; never reached: {sorted(missed) or 'nothing'}")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
