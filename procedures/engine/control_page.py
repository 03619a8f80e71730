"""docs/procedures/controls.md: every control in every state, made from the table."""

from collections.abc import Iterator, Mapping

from procedures.engine.control import FULFILLED, LEADS, Control, State

PATH = "docs/procedures/controls.md"
HEADER = """\
# Controls

Generated from `procedures/engine/control.py` by `make generate`; do not edit. A cell names the
state when the control is answered, the usual one first. *same*: the procedure is in that state
already, and nothing is stored. Empty: 409 `action-not-allowed`. Past the point of no return
`cancel` is answered 409 `past-point-of-no-return`. `throttle` is only for kinds with steps that
move data. No control is allowed for a kind that the leader does not know, nor for a procedure that
has ended. A waiting procedure is cancelled at once, unless an earlier leader may have begun it;
then it is undone first.
"""


def pages() -> Mapping[str, str]:
    """Returns the generated page; called by scripts/generate.py."""
    return {PATH: HEADER + "\n" + "\n".join(_rows()) + "\n"}


def _rows() -> Iterator[str]:
    yield f"| state | {' | '.join(Control)} |"
    yield f"| --- |{' --- |' * len(Control)}"
    for state in State:
        yield f"| {state} | {' | '.join(_cell(state, control) for control in Control)} |"


def _cell(state: State, control: Control) -> str:
    if control in FULFILLED.get(state, ()):
        return "*same*"
    return " or ".join(LEADS[state].get(control, ()))
