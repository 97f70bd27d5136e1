import json
import tracemalloc
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillstack.errors import SkillstackError
from skillstack.instructions import Instruction, TaskSet, make_stages
from skillstack.policies.grammar import ACT, CALL, Grammar, Reshaped, Transition

FIND = TaskSet.of(["find"], ["red", "blue"])
FIND_AND_GET = TaskSet.of(["find", "get"], ["red", "blue"])
RED, BLUE, ACTS, START = 0, 1, 2, 3  # the states of a grammar over FIND
GET_RED = np.array([1, 0])

# Five episodes of "get red". By hand, what follows what:
#   start: red 2, blue 1, act 2    red: act 3    blue: red 1, act 1    act: red 1, blue 1, act 1
FIVE = [[RED, ACTS], [RED, ACTS], [BLUE, RED, ACTS], [ACTS, BLUE, ACTS], [ACTS, ACTS, RED]]

# The policies in the examples by hand: switch (1/4, 3/4), one skill, items (1/5, 4/5).
SWITCH, ITEM = [0.25, 0.75], [0.2, 0.8]


def learned(episodes: list[list[int]], smoothing: float = 0.0, doubt: float = 0.0) -> Grammar:
    grammar = Grammar(FIND_AND_GET, FIND, smoothing)
    grammar.doubt = doubt
    for states in episodes:
        grammar.update(GET_RED, states)
    return grammar


def after(grammar: Grammar, previous: int, switch: list[float] = SWITCH, item: list[float] = ITEM) -> Any:
    """The probabilities of switch and instruction for "get red" after one state."""
    with np.errstate(divide="ignore"):
        logs = [np.log([row]) for row in (switch, [1.0], item)]
    reshaped = grammar.reshape(GET_RED[None], np.array([previous]), *logs)
    return np.exp(reshaped.log_switch[0]), np.exp(reshaped.log_instruction[0])


class TestReshapingByHand:
    def test_at_t_0_the_switch_is_weighted_by_how_episodes_began(self) -> None:
        # q: CALL 2/5 + 1/5 = 3/5, ACT 2/5. 1/4 * 3/5 = 0.15 and 3/4 * 2/5 = 0.30, that is 1 : 2.
        switch, _ = after(learned(FIVE), START)
        np.testing.assert_allclose(switch, [1 / 3, 2 / 3])

    def test_at_t_0_the_instruction_is_weighted_by_how_episodes_began(self) -> None:
        # 1/5 * q(red) 2/5 = 0.08 and 4/5 * q(blue) 1/5 = 0.16, that is 1 : 2.
        _, instruction = after(learned(FIVE), START)
        np.testing.assert_allclose(instruction, [1 / 3, 2 / 3])

    def test_later_after_a_call_both_are_weighted_by_what_followed_that_call(self) -> None:
        # After "find blue": red 1/2, act 1/2. The switch stays, and only red is left of the instructions.
        switch, instruction = after(learned(FIVE), BLUE)
        np.testing.assert_allclose(switch, [1 / 4, 3 / 4])
        np.testing.assert_allclose(instruction, [1, 0])

    def test_later_after_an_act_both_are_weighted_by_what_followed_acts(self) -> None:
        # After an act: CALL 2/3, ACT 1/3. 1/4 * 2/3 = 2/12 and 3/4 * 1/3 = 3/12, that is 2 : 3. Red and blue are even.
        switch, instruction = after(learned(FIVE), ACTS)
        np.testing.assert_allclose(switch, [0.4, 0.6])
        np.testing.assert_allclose(instruction, [0.2, 0.8])

    def test_a_state_that_only_acts_followed_forbids_calls_but_says_nothing_of_which_call(self) -> None:
        # After "find red": act 3 of 3.
        switch, instruction = after(learned(FIVE), RED)
        np.testing.assert_allclose(switch, [0, 1])
        np.testing.assert_allclose(instruction, [0.2, 0.8])

    def test_smoothing_adds_its_weight_of_the_uniform_distribution(self) -> None:
        # a = 2: red (2 + 2/4) / 7, blue (1 + 2/4) / 7, act (2 + 2/2) / 7.
        grammar = learned(FIVE, smoothing=2.0)
        prior = grammar.prior(GET_RED[None], np.array([START]))
        np.testing.assert_allclose(prior.switch[0], [4 / 7, 3 / 7])
        np.testing.assert_allclose(prior.instruction[0], [2.5 / 7, 1.5 / 7])
        # 1/4 * 4/7 = 4/28 and 3/4 * 3/7 = 9/28; 1/5 * 2.5 = 0.5 and 4/5 * 1.5 = 1.2.
        switch, instruction = after(grammar, START)
        np.testing.assert_allclose(switch, [4 / 13, 9 / 13])
        np.testing.assert_allclose(instruction, [5 / 17, 12 / 17])

    def test_doubt_leaves_the_uniform_distribution_its_share_however_much_is_counted(self) -> None:
        # 3/5 of the counts, the rest uniform: red 0.6 * 2/5 + 0.4 / 4, blue 0.6 * 1/5 + 0.4 / 4, act 0.6 * 2/5 + 0.2.
        for times in (1, 1000):
            prior = learned(FIVE * times, doubt=0.4).prior(GET_RED[None], np.array([START]))
            np.testing.assert_allclose(prior.instruction[0], [0.34, 0.22])
            np.testing.assert_allclose(prior.switch[0], [0.56, 0.44])
        forbidden = learned(FIVE, doubt=0.4).prior(GET_RED[None], np.array([RED]))  # after "find red": act 3 of 3
        np.testing.assert_allclose(forbidden.switch[0], [0.2, 0.8])

    @pytest.mark.parametrize("doubt", [-0.1, 1.1, float("nan"), True, "some", None])
    def test_doubt_must_be_a_share(self, doubt: Any) -> None:
        with pytest.raises(SkillstackError, match="doubt must be a share"):
            Grammar(FIND_AND_GET, FIND).doubt = doubt

    def test_doubt_that_is_gone_leaves_no_trace(self) -> None:
        grammar = learned(FIVE, doubt=0.4)
        assert grammar == learned(FIVE)
        assert grammar.to_json() == learned(FIVE).to_json()
        grammar.doubt = 0.0
        for before, now in zip(after(learned(FIVE), START), after(grammar, START), strict=True):
            np.testing.assert_array_equal(before, now)

    def test_the_instruction_policy_is_the_product_of_skill_and_item(self) -> None:
        stage = make_stages("find get put", ["red", "blue"])[2]
        grammar = Grammar(stage.tasks, stage.base)
        # find red, find blue, get red, get blue: 0.3 * (0.1, 0.9) and 0.7 * (0.1, 0.9).
        logs = [np.log([row]) for row in ([0.5, 0.5], [0.3, 0.7], [0.1, 0.9])]
        reshaped = grammar.reshape(np.array([[2, 0]]), np.array([grammar.start_state]), *logs)
        np.testing.assert_allclose(np.exp(reshaped.log_instruction[0]), [0.03, 0.27, 0.07, 0.63])

    def test_a_batch_mixes_tasks_and_previous_states(self) -> None:
        grammar = learned(FIVE)
        tasks = np.array([GET_RED, [0, 0], GET_RED])
        reshaped = grammar.reshape(
            tasks, np.array([START, START, ACTS]), *(np.log([row] * 3) for row in (SWITCH, [1.0], ITEM))
        )
        np.testing.assert_allclose(np.exp(reshaped.log_switch), [[1 / 3, 2 / 3], SWITCH, [0.4, 0.6]])
        np.testing.assert_allclose(np.exp(reshaped.log_instruction), [[1 / 3, 2 / 3], ITEM, ITEM])

    def test_an_empty_batch_stays_empty(self) -> None:
        grammar = learned(FIVE)
        none = grammar.reshape(
            np.zeros((0, 2), int), np.zeros(0, int), np.zeros((0, 2)), np.zeros((0, 1)), np.zeros((0, 2))
        )
        assert none.log_switch.shape == (0, 2)
        assert none.log_instruction.shape == (0, 2)


class TestWherePolicyAndGrammarDisagree:
    def test_a_policy_without_overlap_stands_alone(self) -> None:
        grammar = learned([[RED, RED]])
        switch, instruction = after(grammar, START, switch=[0.0, 1.0], item=[0.0, 1.0])
        np.testing.assert_array_equal(switch, [0, 1])
        np.testing.assert_array_equal(instruction, [0, 1])

    def test_one_game_without_overlap_does_not_touch_the_others(self) -> None:
        # After "find red" only acts are known, so the instructions of that game alone are the policy's.
        grammar, games = learned(FIVE), np.array([START, RED, BLUE])
        logs = [np.log([row] * 3) for row in (SWITCH, [1.0], ITEM)]
        reshaped = grammar.reshape(np.array([GET_RED] * 3), games, *logs)
        np.testing.assert_allclose(np.exp(reshaped.log_instruction), [[1 / 3, 2 / 3], ITEM, [1.0, 0.0]])

    def test_a_tiny_overlap_is_still_an_overlap(self) -> None:
        grammar = learned([[RED, RED]])
        reshaped = grammar.reshape(
            GET_RED[None], np.array([START]), np.array([[-5000.0, 0.0]]), np.zeros((1, 1)), np.array([[-5000.0, 0.0]])
        )
        np.testing.assert_array_equal(np.exp(reshaped.log_switch), [[1, 0]])
        np.testing.assert_array_equal(np.exp(reshaped.log_instruction), [[1, 0]])

    def test_a_policy_that_allows_nothing_counts_as_uniform(self) -> None:
        switch, instruction = after(learned([]), START, switch=[0.0, 0.0], item=[0.0, 0.0])
        np.testing.assert_allclose(switch, [0.5, 0.5])
        np.testing.assert_allclose(instruction, [0.5, 0.5])

    @pytest.mark.parametrize("bad", [np.nan, np.inf])
    @pytest.mark.parametrize("place", [0, 1])
    def test_a_policy_with_nan_is_an_error_and_not_passed_on(self, bad: float, place: int) -> None:
        log_item = np.zeros((1, 2))
        log_item[0, place] = bad
        for grammar in (learned([]), learned([[RED]])):
            with pytest.raises(FloatingPointError, match="diverged"):
                grammar.reshape(GET_RED[None], np.array([START]), np.zeros((1, 2)), np.zeros((1, 1)), log_item)


# A level with 6 tasks over 2 base skills and 2 items, for what must hold of any grammar.
LADDER = make_stages("find get put", ["red", "blue"])[2]
N_STATES = 4 + 2
episodes = st.lists(
    st.tuples(
        st.tuples(st.integers(0, 2), st.integers(0, 1)),
        st.lists(st.integers(0, N_STATES - 2), max_size=6),
    ),
    max_size=12,
)
smoothings = st.sampled_from([0.0, 1e-300, 0.1, 1.0, 1e6])
Episodes = list[tuple[tuple[int, int], list[int]]]


def learn(given_episodes: Episodes, smoothing: float = 0.0) -> Grammar:
    grammar = Grammar(LADDER.tasks, LADDER.base, smoothing)
    for task, states in given_episodes:
        grammar.update(task, states)
    return grammar


@st.composite
def policies(draw: st.DrawFn, tame: bool = False) -> dict[str, Any]:
    """A batch of tasks, previous states and log-probabilities, with zeros and extremes unless tame."""
    size = draw(st.integers(1, 4))
    wild = st.one_of(st.just(-np.inf), st.floats(-1e308, 0), st.floats(-5, 0))
    logs = st.floats(-30, 0) if tame else wild

    def rows(width: int) -> np.ndarray[Any, Any]:
        return np.array(draw(st.lists(st.lists(logs, min_size=width, max_size=width), min_size=size, max_size=size)))

    return {
        "tasks": np.array([[draw(st.integers(0, 2)), draw(st.integers(0, 1))] for _ in range(size)]),
        "previous": np.array([draw(st.integers(0, N_STATES - 1)) for _ in range(size)]),
        "log_switch": rows(2),
        "log_skill": rows(2),
        "log_item": rows(2),
    }


def reshape_without_warnings(grammar: Grammar, batch: dict[str, Any]) -> Reshaped:
    with warnings.catch_warnings(), np.errstate(all="warn"):
        warnings.simplefilter("error")
        return grammar.reshape(**batch)


class TestWhatHoldsOfAnyGrammar:
    @settings(deadline=None)
    @given(episodes, smoothings, policies())
    def test_reshaped_distributions_sum_to_one_without_nan_or_warning(
        self, seen: Episodes, smoothing: float, batch: dict[str, Any]
    ) -> None:
        for logs in reshape_without_warnings(learn(seen, smoothing), batch):
            assert not np.isnan(logs).any()
            assert (logs <= 1e-12).all()
            np.testing.assert_allclose(np.exp(logs).sum(axis=1), 1)

    @settings(deadline=None)
    @given(episodes, smoothings, policies())
    def test_the_grammars_own_probabilities_sum_to_one(
        self, seen: Episodes, smoothing: float, batch: dict[str, Any]
    ) -> None:
        prior = learn(seen, smoothing).prior(batch["tasks"], batch["previous"])
        np.testing.assert_allclose(prior.switch.sum(axis=1), 1)
        np.testing.assert_allclose(prior.instruction.sum(axis=1), prior.switch[:, CALL])

    @settings(deadline=None)
    @given(smoothings, policies(tame=True))
    def test_a_uniform_grammar_changes_nothing(self, smoothing: float, batch: dict[str, Any]) -> None:
        def normalised(logs: Any) -> Any:
            return logs - np.log(np.exp(logs).sum(axis=1, keepdims=True))

        reshaped = reshape_without_warnings(learn([], smoothing), batch)
        pairs = batch["log_skill"][:, :, None] + batch["log_item"][:, None, :]
        np.testing.assert_allclose(reshaped.log_switch, normalised(batch["log_switch"]), atol=1e-12)
        np.testing.assert_allclose(reshaped.log_instruction, normalised(pairs.reshape(-1, 4)), atol=1e-12)

    @settings(deadline=None)
    @given(episodes, smoothings, policies(tame=True))
    def test_reshaping_is_policy_times_prior_normalised(
        self, seen: Episodes, smoothing: float, batch: dict[str, Any]
    ) -> None:
        grammar = learn(seen, smoothing)
        reshaped, prior = grammar.reshape(**batch), grammar.prior(batch["tasks"], batch["previous"])
        for logs, policy, factor in (
            (reshaped.log_switch, np.exp(batch["log_switch"]), prior.switch),
            (
                reshaped.log_instruction,
                np.exp(batch["log_skill"][:, :, None] + batch["log_item"][:, None, :]).reshape(-1, 4),
                np.where(prior.switch[:, [CALL]] > 0, prior.instruction, 1.0),
            ),
        ):
            product = policy * factor
            np.testing.assert_allclose(np.exp(logs), product / product.sum(axis=1, keepdims=True), atol=1e-12)

    @settings(deadline=None)
    @given(episodes, st.randoms(), policies(tame=True))
    def test_the_order_of_updates_does_not_matter(self, seen: Episodes, random: Any, batch: dict[str, Any]) -> None:
        shuffled = random.sample(seen, len(seen))
        one, other = learn(seen), learn(shuffled)
        assert one == other
        assert json.dumps(one.to_json()) == json.dumps(other.to_json())
        for a, b in zip(one.reshape(**batch), other.reshape(**batch), strict=True):
            np.testing.assert_array_equal(a, b)

    @settings(deadline=None)
    @given(episodes, episodes, policies(tame=True))
    def test_merging_two_grammars_equals_learning_from_both_sets(
        self, first: Episodes, second: Episodes, batch: dict[str, Any]
    ) -> None:
        merged, both = learn(first), learn(first + second)
        merged.merge(learn(second))
        assert merged == both
        for a, b in zip(merged.reshape(**batch), both.reshape(**batch), strict=True):
            np.testing.assert_array_equal(a, b)

    @settings(deadline=None)
    @given(episodes, smoothings, policies(tame=True))
    def test_a_grammar_comes_back_from_json_and_behaves_the_same(
        self, seen: Episodes, smoothing: float, batch: dict[str, Any]
    ) -> None:
        grammar = learn(seen, smoothing)
        back = Grammar.from_json(json.loads(json.dumps(grammar.to_json())))
        assert back == grammar
        assert back.to_json() == grammar.to_json()
        for a, b in zip(grammar.reshape(**batch), back.reshape(**batch), strict=True):
            np.testing.assert_array_equal(a, b)


class TestStates:
    def test_calls_are_numbered_by_skill_then_item_and_back(self) -> None:
        grammar = learn([])
        pairs = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
        np.testing.assert_array_equal(grammar.call_state(pairs), [0, 1, 2, 3])
        np.testing.assert_array_equal(grammar.call_pairs(np.arange(4)), pairs)
        assert grammar.state_names == (
            "call find red",
            "call find blue",
            "call get red",
            "call get blue",
            "act",
            "start",
        )
        assert (grammar.act_state, grammar.start_state) == (4, 5)

    def test_an_act_is_one_state_whatever_instruction_was_not_carried_out(self) -> None:
        switch, pairs = np.array([CALL, ACT, ACT]), np.array([[1, 0], [1, 0], [-1, -1]])
        np.testing.assert_array_equal(learn([]).states(switch, pairs), [2, 4, 4])

    def test_a_call_outside_the_base_is_refused(self) -> None:
        with pytest.raises(ValueError, match="invalid entry"):
            learn([]).call_state(np.array([[2, 0]]))

    def test_an_episode_without_decisions_changes_nothing(self) -> None:
        assert learned([[]]) == learned([])

    @pytest.mark.parametrize("states", [[START], [-1], [RED, 17]])
    def test_a_state_that_cannot_follow_is_refused(self, states: list[int]) -> None:
        with pytest.raises(SkillstackError, match="between 0 and 2"):
            learned([states])

    @pytest.mark.parametrize("task", [(2, 0), (0, 2), (-1, 0)])
    def test_a_task_that_the_grammar_does_not_have_is_refused(self, task: tuple[int, int]) -> None:
        with pytest.raises(SkillstackError, match="no task with the word numbers"):
            learned([]).update(task, [RED])

    def test_the_words_must_keep_their_numbers_from_base_to_tasks(self) -> None:
        with pytest.raises(SkillstackError, match="begin with the base's items, red, blue"):
            Grammar(TaskSet.of(["find", "get"], ["blue", "red"]), FIND)

    def test_the_terminal_policy_has_no_grammar(self) -> None:
        with pytest.raises(SkillstackError, match="needs base tasks"):
            Grammar(FIND, TaskSet())

    @pytest.mark.parametrize("smoothing", [-1.0, float("nan"), float("inf"), True, "much", None])
    def test_smoothing_must_be_a_number_from_zero_upwards(self, smoothing: Any) -> None:
        with pytest.raises(SkillstackError, match="smoothing must be a number"):
            Grammar(FIND_AND_GET, FIND, smoothing)


class TestLookingInside:
    def test_transitions_are_counted_by_hand(self) -> None:
        grammar = learned(FIVE)
        get_red = Instruction("get", "red")
        assert grammar.episodes(get_red) == 5
        assert grammar.transitions(get_red) == [
            Transition(START, RED, 2, 0.4),
            Transition(START, BLUE, 1, 0.2),
            Transition(START, ACTS, 2, 0.4),
            Transition(RED, ACTS, 3, 1.0),
            Transition(BLUE, RED, 1, 0.5),
            Transition(BLUE, ACTS, 1, 0.5),
            Transition(ACTS, RED, 1, 1 / 3),
            Transition(ACTS, BLUE, 1, 1 / 3),
            Transition(ACTS, ACTS, 1, 1 / 3),
        ]
        assert grammar.transitions(Instruction("get", "blue")) == []
        assert repr(grammar) == "<Grammar of 4 tasks over 2 instructions, from 5 episodes>"

    def test_a_step_taken_twice_in_one_episode_counts_twice(self) -> None:
        steps = learned([[RED, RED, RED]]).transitions(Instruction("get", "red"))
        assert steps == [Transition(START, RED, 1, 1.0), Transition(RED, RED, 2, 1.0)]

    def test_an_unknown_task_is_named(self) -> None:
        with pytest.raises(SkillstackError, match='Unknown task "put red"'):
            learned(FIVE).transitions(Instruction("put", "red"))

    def test_grammars_differ_by_counts_by_smoothing_and_by_tasks(self) -> None:
        assert learned(FIVE) != learned(FIVE[:4])
        assert learned([[RED]]) != learned([[BLUE]])
        assert learned(FIVE) != learned(FIVE, smoothing=0.5)
        assert learned([]) != learn([])
        assert learned([]) != "a grammar"

    def test_grammars_over_other_tasks_cannot_be_merged(self) -> None:
        with pytest.raises(SkillstackError, match="same tasks"):
            learned([]).merge(learn([]))

    def test_a_grammar_merged_with_itself_has_every_count_twice(self) -> None:
        grammar = learned(FIVE)
        grammar.merge(grammar)
        assert grammar == learned(FIVE + FIVE)


class TestSaving:
    def test_the_json_is_in_words(self) -> None:
        assert learned(FIVE, smoothing=0.5).to_json() == {
            "tasks": ["find red", "find blue", "get red", "get blue"],
            "base": ["find red", "find blue"],
            "smoothing": 0.5,
            "counts": {
                "get red": {
                    "start": {"call find red": 2, "call find blue": 1, "act": 2},
                    "call find red": {"act": 3},
                    "call find blue": {"call find red": 1, "act": 1},
                    "act": {"call find red": 1, "call find blue": 1, "act": 1},
                }
            },
        }

    @pytest.mark.parametrize(
        ("damage", "message"),
        [
            ({"counts": None}, '"counts" is not an object'),
            ({"counts": {"get red": 3}}, 'what it has for "get red" is not an object'),
            ({"counts": {"get red": {"start": []}}}, 'what it has for "get red" after "start" is not an object'),
            ({"counts": {"fly red": {}}}, 'Unknown task "fly red"'),
            ({"counts": {"get": {}}}, "'get' stands where a task"),
            ({"counts": {"get red": {"begin": {"act": 1}}}}, '"get red" has a state "begin"'),
            ({"counts": {"get red": {"start": {"start": 1}}}}, 'from "start" to "start"'),
            ({"counts": {"get red": {"start": {"call get red": 1}}}}, 'from "start" to "call get red"'),
            ({"counts": {"get red": {"start": {"act": 0}}}}, "has 0 from"),
            ({"counts": {"get red": {"start": {"act": -1}}}}, "has -1 from"),
            ({"counts": {"get red": {"start": {"act": 1.5}}}}, "has 1.5 from"),
            ({"counts": {"get red": {"start": {"act": True}}}}, "has True from"),
            ({"counts": {"get red": {"start": {"act": 10**30}}}}, "where a count should be"),
            ({"tasks": "find red"}, '"tasks" is not a list'),
            ({"tasks": [1, 2]}, "1 stands where a task"),
            ({"tasks": []}, "must begin with the base's"),
            ({"base": []}, "needs base tasks"),
            ({"base": ["find red", "find red"]}, "holds each task once"),
            ({"smoothing": "some"}, "smoothing must be a number"),
            ({"smoothing": float("nan")}, "smoothing must be a number"),
            ({"smoothing": 10**400}, "smoothing must be a number"),
        ],
    )
    def test_damaged_json_is_named_in_one_sentence(self, damage: dict[str, Any], message: str) -> None:
        with pytest.raises(SkillstackError, match=message):
            Grammar.from_json({**learned(FIVE).to_json(), **damage})

    @pytest.mark.parametrize("foreign", [None, 3, "grammar", [], {}, {"weights": [1, 2]}])
    def test_foreign_json_is_refused(self, foreign: Any) -> None:
        with pytest.raises(SkillstackError, match="This is not a saved grammar"):
            Grammar.from_json(foreign)


def test_sixty_items_and_six_levels_fit_in_little_memory() -> None:
    items = [f"item{number}" for number in range(60)]
    stage = make_stages(["a", "b", "c", "d", "e", "f"], items)[5]
    random = np.random.default_rng(0)
    tracemalloc.start()
    grammar = Grammar(stage.tasks, stage.base)
    for _ in range(200):
        grammar.update(random.integers([6, 60]), random.integers(0, grammar.start_state, size=5))
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    dense = 360 * 302 * 301 * 8  # 262 MB
    assert used < dense / 10
