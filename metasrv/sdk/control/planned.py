"""The plan of a change with `dry_run=True`, as an exception, since nothing was changed."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from metasrv_base.wire.api.plans import PlanBody
    from metasrv_base.wire.http.client import HttpAnswer


class Planned(Exception):  # not an error: nothing went wrong
    """`plans`: one for each procedure that the change would make; mostly one."""

    def __init__(self, plans: "tuple[PlanBody, ...]") -> None:
        super().__init__(", ".join(f"{plan.kind} {plan.resource.name}" for plan in plans))
        self.plans = plans

    @classmethod
    def of(cls, answer: "HttpAnswer") -> "Planned":
        from metasrv_base.wire.api.plans import PlanBody, PlansBody

        document = answer.json()
        several = isinstance(document, dict) and "plans" in document
        return cls(tuple(answer.body(PlansBody).plans) if several else (answer.body(PlanBody),))
