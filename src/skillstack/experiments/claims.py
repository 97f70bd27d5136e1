"""What the paper says, what we found, and whether that agrees: for every experiment, from its data alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any, cast

from skillstack.experiments.data import Curve, Data, Score
from skillstack.experiments.ladder import FLAT, FULL, REVERSED, ablations
from skillstack.experiments.plans import AT_ONCE, CALLED_TWICE
from skillstack.experiments.settings import Encoder, Settings
from skillstack.experiments.statistics import Estimate, estimate, is_more
from skillstack.instructions import SKILLS

YES, NO, UNCLEAR, HIGHER, LOWER, NOTHING = "yes", "no", "not clear", "no: higher", "no: lower", "not measured yet"
SAME = "no difference seen"
ONE_SEED = "one seed decides nothing"
TOLERANCE = 0.02
"""A figure of the paper agrees if it is no further than this from our interval."""

TABLE_1 = {
    "small room": {
        FULL: {"find": 0.995, "get": 0.970, "put": 1.00, "stack": 0.955},
        FLAT: {"find": 0.980, "get": 0.965, "put": 1.00},
    },
    "big room": {
        FULL: {"find": 0.723, "get": 0.648, "put": 1.00, "stack": 0.613},
        FLAT: {"find": 0.515, "get": 0.450, "put": 1.00},
    },
}
"""The paper's table 1; it gives nothing for "stack" by the flat policy, which did not converge."""


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, or a question of its reviewers, with its answer."""

    text: str
    paper: str
    """Its figure, or "-" where the paper has none."""
    ours: dict[str, Estimate | None] = field(default_factory=dict)
    """By name; None where nothing was measured."""
    agrees: str = NOTHING
    unit: str = "share"
    """What our numbers are: "share" or "episodes"."""
    middle: dict[str, Estimate | None] = field(default_factory=dict)
    """Interquartile means over seeds and tasks, beside the means in `ours`."""
    by_example: bool = False
    """Whether one example decides it; all else needs more than one seed."""
    place: tuple[str, str] | None = None
    """Its row and column where it is one number of a table."""

    @property
    def verdict(self) -> str:
        """Whether it agrees; an interval of one seed has no width, and decides nothing."""
        alone = any(value is not None and value.seeds < 2 for value in self.ours.values())
        return ONE_SEED if alone and not self.by_example and self.agrees not in ("-", NOTHING) else self.agrees

    def to_json(self) -> dict[str, Any]:
        return {
            "claim": self.text,
            "paper": self.paper,
            "ours": _plain(self.ours),
            "agrees": self.verdict,
            "unit": self.unit,
            "middle": _plain(self.middle),
            "place": self.place,
        }


def figure_get(data: Data) -> list[Claim]:
    return [
        _compared(
            data,
            "pi_1",
            "The full model and its variants all converge within 22,000 episodes (success at the end).",
            "all converge",
            lambda curve: curve.final_success,
            lambda found: _all(found[name].low >= 0.9 for name in (FULL, *_variants(data))),
            leave_out=(FLAT,),
        ),
        _compared(
            data,
            "pi_1",
            "The average reward of the flat policy is then still below 0.8.",
            "< 0.8",
            lambda curve: curve.final,
            lambda found: _sure(found[FLAT].high < 0.8, found[FLAT].low >= 0.8),
            only=(FLAT,),
        ),
        _first(
            data,
            "pi_1",
            "The full model finishes phase 1 significantly faster than the other methods (episodes until then).",
            lambda curve: float(curve.switch or curve.most),
            most=False,
        ),
        _first(
            data,
            "pi_1",
            "Its curve stays notably higher than the others (mean of the average reward over all episodes).",
            lambda curve: curve.area(data.until("pi_1")),
        ),
        _advantage(data, "pi_1", "The full model's advantage: its mean reward less that of the others."),
    ]


def figure_stack(data: Data) -> list[Claim]:
    panel = "pi_3, phase 2"
    return [
        _first(
            data,
            panel,
            "In phase 2 of pi_3 the full model has the fastest convergence (mean of the average reward).",
            lambda curve: curve.area(data.until(panel)),
        ),
        _first(
            data,
            panel,
            "It has the highest average reward upon convergence (average reward at the end).",
            lambda curve: curve.final,
        ),
        _advantage(
            data,
            panel,
            "Its advantage is bigger for more complex tasks: its mean reward less that of the others, to be compared "
            "with that of figure 3a.",
        ),
    ]


def figure_curriculum(data: Data) -> list[Claim]:
    with_, without = "two phases", "all tasks at once"

    def verdict(found: dict[str, Estimate]) -> str:
        return _worded(is_more(found[without], found[with_]))

    return [
        _compared(
            data,
            panel,
            f"The two-phase curriculum accelerates the convergence of {panel} (episodes until each skill is at 0.9).",
            "faster",
            lambda curve: float(curve.solved),
            verdict,
            unit="episodes",
        )
        for panel in data.panels or ("pi_1", "pi_3")
    ]


def table_rooms(data: Data) -> list[Claim]:
    claims = []
    for room, rows in TABLE_1.items():
        for skill, figure in rows[FULL].items():
            test = f"{room}, pi_3"
            claim = _figure(data, f'Full model, {room}, "{skill}".', figure, FULL, test, skill)
            claims.append(replace(claim, place=(f"{room}, {FULL}", skill)))
        for skill in SKILLS:
            method = f"{FLAT} for {'all skills' if skill == 'stack' else 'find, get, put'}"
            for budget, theirs in (("the paper's limits", rows[FLAT].get(skill)), ("the hierarchy's steps", None)):
                text = f'Flat policy, {room}, "{skill}", {budget}.'
                claim = _figure(data, text, theirs, method, f"{room}, {budget}", skill)
                claims.append(replace(claim, place=(f"{room}, {FLAT}, {budget}", skill)))
    return [*claims, *_levels(data), *_drops(data)]


def _levels(data: Data) -> list[Claim]:
    """What the paper does not tell: each lower level by itself."""
    claims = []
    for room in TABLE_1:
        for level in range(len(SKILLS) - 1):
            found = {skill: data.success(FULL, f"{room}, pi_{level}", skill) for skill in SKILLS[: level + 1]}
            claims.append(Claim(f"pi_{level} by itself, {room}.", "-", found, _question(found)))
    return claims


def _drops(data: Data) -> list[Claim]:
    """How much is lost in the big room."""
    claims = []
    flat_method = f"{FLAT} for find, get, put"
    for skill in ("find", "get"):
        paper = {name: TABLE_1["small room"][name][skill] - TABLE_1["big room"][name][skill] for name in (FULL, FLAT)}
        full, flat = (
            _drop(data, method, [f"{room}, {test}" for room in TABLE_1], skill)
            for method, test in ((FULL, "pi_3"), (flat_method, "the paper's limits"))
        )
        claims.append(
            Claim(
                f'The flat policy loses much more in the big room than the full model ("{skill}").',
                f"{paper[FULL]:.3f} and {paper[FLAT]:.3f}",
                {FULL: full, FLAT: flat},
                NOTHING if full is None or flat is None else _worded(is_more(flat, full)),
            )
        )
    return claims


def _drop(data: Data, method: str, tests: Sequence[str], skill: str) -> Estimate | None:
    small, big = (data.success(method, test, skill) for test in tests)
    if small is None or big is None:
        return None
    # The widest that the two intervals allow: games and seeds are the same in both rooms, but rooms differ.
    return Estimate(small.value - big.value, small.low - big.high, small.high - big.low, small.seeds)


def distractors(data: Data) -> list[Claim]:
    claims = [
        _figure(data, f'"get" by the {method} policy among other blocks.', figure, method, "among others", "get")
        for method, figure in (("hierarchical", 0.94), ("flat", 0.29))
    ]
    alone = {method: data.success(method, "only the target", "get") for method in ("hierarchical", "flat")}
    found = [value for value in alone.values() if value is not None]
    agrees = NOTHING if len(found) < len(alone) else _all(value.low >= 0.9 for value in found)
    return [
        Claim("Both are near perfect where only the target is present.", "near perfect", {**alone}, agrees),
        *claims,
    ]


def plans(data: Data) -> list[Claim]:
    return [
        Claim(
            "pi_1 does not call pi_0 where the agent is already in front of the target (share of such games of "
            '"get" in which it acts at once).',
            "one example",
            {"of games that begin in front": _share(data, AT_ONCE)},
            _found(data, "already in front"),
            by_example=True,
        ),
        Claim(
            'pi_1 calls "find x" twice in a row where the first call did not get there (share of all its games).',
            "one example",
            {"of all games": _share(data, CALLED_TWICE)},
            _found(data, "found at the second call"),
            by_example=True,
        ),
    ]


def no_penalty(data: Data) -> list[Claim]:
    methods = (FULL, "no penalty")
    found = {
        f"{method}, {skill}": data.success(method, "small room", skill) for method in methods for skill in SKILLS[:2]
    }
    episodes = {method: data.of_curves("pi_1", method, lambda curve: float(curve.solved)) for method in methods}
    return [
        Claim("Is the penalty of -0.5 needed? Success of pi_1 with and without it.", "-", found, _question(found)),
        Claim("Episodes until each skill is at 0.9.", "-", {**episodes}, _question(episodes), unit="episodes"),
    ]


def stage_orders(data: Data) -> list[Claim]:
    claims = []
    usual, other = ", ".join(SKILLS), ", ".join(REVERSED)
    for skill in SKILLS:
        found = {order: data.success(order, "small room", skill) for order in (usual, other)}
        first, second = found[usual], found[other]
        agrees = NOTHING
        if first is not None and second is not None:
            agrees = {True: NO, False: YES, None: SAME}[is_more(first, second)]
        claims.append(
            Claim(f'The order may be altered, and the conclusions still hold ("{skill}").', "-", found, agrees)
        )
    return claims


def flat_capacity(data: Data) -> list[Claim]:
    claims = []
    for skill in SKILLS:
        found = {FULL: data.success(FULL, "the paper's limits", skill)}
        for method in (FLAT, "wide flat policy"):
            for budget in ("the paper's limits", "the hierarchy's steps"):
                found[f"{method}, {budget}"] = data.success(method, budget, skill)
        claims.append(Claim(f'Is it the number of parameters? Success at "{skill}".', "-", found, _question(found)))
    return claims


def unseen_pairs(data: Data) -> list[Claim]:
    def left_out(score: Score) -> bool:
        return _left_out(data, score.seed, score.item)

    claims = []
    for method in ("hierarchical", "flat"):
        found = {
            "left out": data.success(method, "small room", "get", left_out),
            "trained": data.success(method, "small room", "get", lambda score: not left_out(score)),
        }
        text = f'Can the {method} policy "get" a colour that it has never been told to get?'
        claims.append(Claim(text, "-", found, _question(found)))
    return claims


def _left_out(data: Data, seed: int, item: str) -> bool:
    items = tuple(dict.fromkeys(score.item for score in data.scores))
    return item == items[seed % len(items)]


# Making claims


def _advantage(data: Data, panel: str, text: str) -> Claim:
    """Of the full model over the mean of the others, seed by seed; of seeds with which all methods were run."""
    areas: dict[int, dict[str, float]] = {}
    for curve in data.curves:
        if curve.panel == panel:
            areas.setdefault(curve.seed, {})[curve.method] = curve.area(data.until(panel))
    gains = [
        of[FULL] - fmean(area for method, area in of.items() if method != FULL)
        for of in areas.values()
        if set(of) == {FULL, FLAT, *_variants(data)}
    ]
    found = estimate(gains, middle=False) if gains else None
    return Claim(text, "-", {"": found}, NOTHING if found is None else "-")


def _compared(
    data: Data,
    panel: str,
    text: str,
    paper: str,
    measure: Callable[[Curve], float],
    verdict: Callable[[dict[str, Estimate]], str],
    *,
    unit: str = "share",
    only: Sequence[str] = (),
    leave_out: Sequence[str] = (),
) -> Claim:
    """A measure of the curves of all methods; the verdict is asked only where all of them were run."""
    methods = [method for method in data.methods if (not only or method in only) and method not in leave_out]
    found = {method: data.of_curves(panel, method, measure) for method in methods}
    known = {method: value for method, value in found.items() if value is not None}
    try:
        agrees = verdict(known)
    except KeyError:  # a method that was not run
        agrees = NOTHING
    return Claim(text, paper, {**found}, agrees, unit)


def _first(data: Data, panel: str, text: str, measure: Callable[[Curve], float], *, most: bool = True) -> Claim:
    """The full model has the most, or the least, of all methods."""

    def verdict(found: dict[str, Estimate]) -> str:
        mine = found[FULL]
        others = [found[method] for method in (*_variants(data), FLAT)]
        answers = [is_more(mine, other) if most else is_more(other, mine) for other in others]
        return NO if False in answers else UNCLEAR if None in answers else YES

    paper = "the highest of all" if most else "the first of all"
    return _compared(data, panel, text, paper, measure, verdict, unit="share" if most else "episodes")


def _variants(data: Data) -> Sequence[str]:
    """The variants of the full model that there are: levels that learn by PPO have fewer."""
    preset, _, encoder = data.variant.rpartition("-")
    return tuple(ablations(Settings(preset, cast(Encoder, encoder))))


def _figure(data: Data, text: str, figure: float | None, method: str, test: str, skill: str) -> Claim:
    """A number of the paper beside ours."""
    ours, middle = data.success(method, test, skill), data.middle_success(method, test, skill)
    agrees = NOTHING if ours is None else "-" if figure is None else _beside(figure, ours)
    return Claim(text, "-" if figure is None else f"{figure:.3f}", {"": ours}, agrees, middle={"": middle})


def _beside(figure: float, ours: Estimate) -> str:
    if ours.low - TOLERANCE <= figure <= ours.high + TOLERANCE:
        return YES
    return HIGHER if ours.value > figure else LOWER


def _worded(answer: bool | None) -> str:
    return {True: YES, False: NO, None: UNCLEAR}[answer]


def _sure(yes: bool, no: bool) -> str:
    return YES if yes else NO if no else UNCLEAR


def _all(conditions: Any) -> str:
    return YES if all(conditions) else NO


def _question(found: dict[str, Estimate | None]) -> str:
    """A question has an answer, which is the numbers, and nothing to agree with."""
    return NOTHING if any(value is None for value in found.values()) else "-"


def _share(data: Data, name: str) -> Estimate | None:
    values = data.shares.get(name)
    return estimate(values, middle=False) if values else None


def _found(data: Data, kind: str) -> str:
    if not data.plans and not data.shares:
        return NOTHING
    return YES if any(plan["kind"] == kind for plan in data.plans) else NO


def _plain(values: dict[str, Estimate | None]) -> dict[str, dict[str, Any] | None]:
    return {name: None if value is None else value.to_json() for name, value in values.items()}
