"""The seed that a run of all parts draws anew, beside the fixed ones.

`scripts/run_tests.py` draws it, prints it, and puts it into the environment of every part: the
crash enumeration, the simulation and the property tests try something that nobody has tried. With
NEW_SEED in the environment a run takes that one instead, and tries the same again.
"""

import os

NEW_SEED = "NEW_SEED"


def new_seed() -> int | None:
    """None: nobody has drawn any, as where one test is run by hand."""
    given = os.environ.get(NEW_SEED)
    return None if given is None else int(given)
