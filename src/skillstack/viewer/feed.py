"""A plan that grows, told piece by piece: only what is new since the last time goes over the wire.

A plan grows along its last decisions alone. So a patch of a run has its ending, how many of its decisions it keeps as
they were, and those that follow; the first of these may have been told before, and then its run is a patch again. The
page puts patches together into the same JSON that `PlanTree.to_json` has (`plan.js` there, `apply` here).
"""

from __future__ import annotations

from typing import Any

from skillstack.rollout.plan import PlanRun, PlanTree, decision_to_json, run_to_json

Patch = dict[str, Any]


class PlanFeed:
    """What has been told of one plan."""

    def __init__(self) -> None:
        self._told: dict[int, int] = {}  # decisions told, by the identity of the run: runs live as long as the plan

    def patch(self, tree: PlanTree) -> Patch:
        """What is new."""
        return self._patch(tree.root)

    def _patch(self, run: PlanRun) -> Patch:
        told = self._told.get(id(run), 0)
        keep = max(told - 1, 0)
        self._told[id(run)] = len(run.decisions)
        head = run_to_json(PlanRun(run.level, run.instruction, run.first_step, run.last_step, run.outcome))
        decisions = []
        for number, decision in enumerate(run.decisions[keep:], start=keep):
            below = None if decision.run is None else self._patch(decision.run)
            if number < told:  # its odds are known already
                decisions.append({"reward": decision.reward, "run": below})
            else:
                alone = decision_to_json(type(decision)(**{**vars(decision), "run": None}))
                decisions.append({**alone, "run": below})
        return {**head, "keep": keep, "decisions": decisions}


def apply(known: dict[str, Any] | None, patch: Patch) -> dict[str, Any]:
    """A run's JSON with a patch put in; `known` is changed."""
    run = {} if known is None else known
    decisions = run.get("decisions", [])
    run.update({key: value for key, value in patch.items() if key not in ("keep", "decisions")})
    run["decisions"] = decisions
    for number, new in enumerate(patch["decisions"], start=patch["keep"]):
        if number == len(decisions):
            decisions.append({"run": None})
        old = decisions[number]
        below = None if new["run"] is None else apply(old["run"], new["run"])
        old.update({**new, "run": below})
    return run
