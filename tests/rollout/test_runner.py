"""The batched runner is Algorithm 1."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from algorithm1 import ToyPlayer, play

from skillstack import Instruction, SkillstackError, make_stages
from skillstack.instructions import Stage, TaskSet, add_stage
from skillstack.policies.agent import Agent
from skillstack.policies.grammar import CALL
from skillstack.rollout.episode import Episode
from skillstack.rollout.plan import PlanRun
from skillstack.rollout.player import AgentPlayer, Player, RandomPlayer
from skillstack.rollout.runner import Assignment, Runner, RunnerConfig
from skillstack.worlds.rooms import RoomsConfig, RoomsWorld
from skillstack.worlds.world import Limits, World

torch.set_num_threads(1)
TINY = {"image_size": 36, "room_width": 4, "room_depth": 4, "max_blocks": 4}


def make_agent(world: RoomsWorld, order: str = "find get put stack", shared: bool = True) -> Agent:
    """An untrained agent whose grammars have seen some plausible episodes, so that plans get deep."""
    agent = Agent.create(
        world.description, make_stages(order, world.config.items), shared_encoder=shared, smoothing=0.5
    )
    rng = np.random.default_rng(5)
    for grammar in agent.grammars[1:]:
        assert grammar is not None
        for task in agent.vocabulary.encode(grammar.tasks):
            for _ in range(3):
                grammar.update(task, rng.integers(grammar.act_state + 1, size=rng.integers(1, 5)))
    return agent


def decisions_of(run: PlanRun, log: list[tuple]) -> list[tuple]:
    """A plan as the log that the transcription writes: what was decided, in order of time."""
    for decision in run.decisions:
        uttered = None if decision.utterance is None else str(decision.utterance)
        log.append((run.level, str(run.instruction), decision.step, uttered, decision.action))
        if decision.run:
            decisions_of(decision.run, log)
    return log


def logged(player: Player, world: World, log: list[tuple]) -> list[tuple]:
    words = player.vocabulary.decode
    return [
        (
            level,
            str(words(task)),
            step,
            str(words(instruction)) if switch == CALL else None,
            None if switch == CALL else world.description.actions[action],
        )
        for level, task, step, switch, instruction, action in log
    ]


@pytest.mark.parametrize("level", [0, 1, 2, 3])
@pytest.mark.parametrize(
    ("penalty", "settings", "make_player", "count"),
    [
        (True, {}, ToyPlayer, 400),
        (False, {}, ToyPlayer, 400),
        (False, {"epsilon": 0.3}, ToyPlayer, 400),
        (False, {"greedy": True}, ToyPlayer, 200),
        (False, {"grammar": False}, ToyPlayer, 200),
        (False, {"top_grammar": False}, ToyPlayer, 200),
        (False, {"at_once": True}, ToyPlayer, 200),
        (True, {"epsilon": 0.1}, AgentPlayer, 100),
    ],
)
def test_it_decides_as_algorithm_1_does(
    level: int, penalty: bool, settings: dict, make_player: Callable[[Agent], Player], count: int
) -> None:
    config = RunnerConfig(Limits(flat=6, decisions=5, episode=25), **settings)
    rooms = RoomsConfig(penalty=penalty, **TINY)
    batched, single = RoomsWorld(rooms, num_games=16), RoomsWorld(rooms)
    agent = make_agent(batched)
    player = make_player(agent)
    tasks = agent.stages[level].tasks.tasks
    games = [tasks[number % len(tasks)] for number in range(count)]
    episodes = Runner(batched, make_player(agent), config, plans=True).play(games, range(count), level)
    for number, episode in enumerate(episodes):
        task = tuple(agent.vocabulary.encode(games[number]).tolist())
        outcome, rewards, steps, log, chances = play(single, player, config, level, task, number)
        assert episode.plan is not None
        assert decisions_of(episode.plan.root, []) == logged(player, single, log)
        assert (episode.outcome, episode.steps) == (outcome, steps)
        assert episode.rewards.tolist() == rewards
        assert [decision.reward for decision in episode.plan.root.decisions] == rewards
        assert episode.decisions.action.tolist() == [entry[5] for entry in log if entry[0] == level]
        for row, expected in enumerate(chances):
            recorded = episode.decisions.row(row)
            for name, value in expected.items():
                np.testing.assert_allclose(recorded[name], value, atol=1e-5)


def test_plans_of_untrained_agents_do_get_deep_in_the_comparison() -> None:
    world = RoomsWorld(RoomsConfig(penalty=False, **TINY), num_games=16)
    agent = make_agent(world)
    episodes = Runner(world, AgentPlayer(agent), plans=True).play(agent.vocabulary.tasks, range(24))
    assert max(episode.plan.root.depth for episode in episodes if episode.plan) == 4


def same(one: Episode, other: Episode) -> bool:
    return (
        (one.outcome, one.steps, one.calls, one.refusals) == (other.outcome, other.steps, other.calls, other.refusals)
        and np.array_equal(one.decisions.states, other.decisions.states)
        and np.array_equal(one.decisions.action, other.decisions.action)
        and np.array_equal(one.decisions.switch, other.decisions.switch)  # type: ignore[arg-type]
        and np.allclose(one.decisions.mu_action, other.decisions.mu_action, atol=1e-5)
    )


@pytest.mark.parametrize("shared", [True, False])
def test_the_same_seed_gives_the_same_episodes_for_any_number_of_games_at_once(shared: bool) -> None:
    rooms = RoomsConfig(penalty=False, **TINY)
    agent = make_agent(RoomsWorld(rooms), shared=shared)
    games, seeds = agent.vocabulary.tasks, range(100, 124)
    runs = [
        Runner(RoomsWorld(rooms, num_games), AgentPlayer(agent)).play(games, seeds, epsilon=0.1)
        for num_games in (1, 5, 24, 40)
    ]
    for episodes in runs[1:]:
        assert all(same(one, other) for one, other in zip(runs[0], episodes, strict=True))


def test_a_world_with_another_order_of_words_plays_the_same_tasks() -> None:
    world = RoomsWorld(RoomsConfig(**TINY), num_games=8)
    stages = make_stages("stack, find", ["white", "red"])
    runner = Runner(world, RandomPlayer(stages, 8), plans=True)
    for episode in runner.play(stages[-1].tasks.tasks, range(4)):
        assert episode.plan is not None
        replayed = RoomsWorld(RoomsConfig(**TINY))
        replayed.reset(replayed.description.vocabulary.encode([episode.plan.root.instruction]), [episode.seed])
        assert np.array_equal(replayed.snapshot(), episode.decisions.states[:1])


def test_a_level_that_acts_is_recorded_with_the_probabilities_it_was_drawn_from() -> None:
    world = RoomsWorld(RoomsConfig(**TINY), num_games=8)
    agent = make_agent(world)
    (episode,) = Runner(world, AgentPlayer(agent)).play([agent.vocabulary.tasks[-1]], [3], epsilon=0.2)
    decisions = episode.decisions
    assert decisions.mu_switch is not None
    assert decisions.behaviour_switch is not None
    assert decisions.switch is not None
    np.testing.assert_allclose(decisions.mu_switch.sum(axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(decisions.mu_action.sum(axis=1), 1, atol=1e-5)
    plain = np.take_along_axis(decisions.mu_action, decisions.action[:, None], axis=1)[:, 0]
    # The grammar does not touch actions, so that the truth is 0.8 of the policy and 0.2 of eight equal chances.
    np.testing.assert_allclose(decisions.behaviour_action, 0.8 * plain + 0.2 / 8, atol=1e-5)
    assert set(decisions.row(0)) >= {"states", "switch", "instruction", "action", "mu_skill", "mu_item"}


def test_behaviour_probabilities_are_the_frequencies_of_what_is_drawn() -> None:
    world = RoomsWorld(RoomsConfig(**TINY), num_games=64)
    agent = make_agent(world)
    task = agent.vocabulary.tasks[-1]
    runner = Runner(world, AgentPlayer(agent), RunnerConfig(Limits(decisions=1)))
    episodes = runner.play([task] * 2000, range(2000), epsilon=0.3)
    calls = np.array([episode.decisions.switch[0] == CALL for episode in episodes])  # type: ignore[index]
    chance = np.array([episode.decisions.behaviour_switch[0] for episode in episodes])  # type: ignore[index]
    expected = np.where(calls, chance, 1 - chance).mean()
    assert abs(calls.mean() - expected) < 4 * 0.5 / np.sqrt(len(episodes))


def test_epsilon_one_draws_the_top_level_evenly_and_leaves_the_others_alone() -> None:
    world = RoomsWorld(RoomsConfig(penalty=False, **TINY), num_games=16)
    agent = make_agent(world)
    runner = Runner(world, AgentPlayer(agent), RunnerConfig(greedy=True, epsilon=1.0), plans=True)
    episodes = runner.play([agent.vocabulary.tasks[-1]] * 64, range(64))
    actions = np.concatenate([episode.decisions.action for episode in episodes])
    assert np.bincount(actions, minlength=8).min() > 0.5 * len(actions) / 8
    lower = [run for episode in episodes if episode.plan for run in episode.plan.root.runs() if run.level == 2]
    for decision in (decision for run in lower for decision in run.decisions):
        odds = decision.odds["switch"].reshaped
        assert odds is not None
        likelier = "call" if odds["call"] >= odds["act"] else "act"
        assert (decision.utterance is not None) == (likelier == "call")


@pytest.mark.parametrize("order", ["find get put stack", "find put get stack"])
def test_what_could_have_been_carried_out_is_what_is_not_refused(order: str) -> None:
    """The player's words may have another order than the world's."""
    world = RoomsWorld(RoomsConfig(**TINY), num_games=16)
    agent = make_agent(world, order)
    runner = Runner(world, AgentPlayer(agent), RunnerConfig(epsilon=0.3), executable=True)
    items, told = len(agent.vocabulary.items), set()
    for episode in runner.play(agent.vocabulary.tasks * 8, range(192)):
        decisions = episode.decisions
        assert decisions.executable is not None
        assert decisions.switch is not None
        assert decisions.instruction is not None
        assert decisions.executable.shape == (len(episode), 3 * items)
        said = decisions.instruction[:, 0] * items + decisions.instruction[:, 1]
        could = decisions.executable[np.arange(len(episode)), said]
        refused = np.append(np.zeros(len(episode) - 1, np.bool_), episode.outcome == "not executable")
        assert (could == ~refused)[decisions.switch == CALL].all()
        told |= set(could.tolist())
    assert told == {True, False}
    (episode,) = runner.play([agent.vocabulary.tasks[0]], [0], level=0)
    assert episode.decisions.executable is None


def test_what_the_level_below_was_never_taught_cannot_be_carried_out() -> None:
    """It knows both words of "find white", but of "white" only how to put it."""
    world = RoomsWorld(RoomsConfig(items=("red", "white"), min_blocks=4, **TINY), num_games=8)
    stages = make_stages("find", ["red"])
    stages = add_stage(add_stage(stages, ["put"], ["red", "white"]), ["get"], [])
    assert Instruction("find", "white") not in stages[-1].base
    player = RandomPlayer(stages, 8)
    episodes = Runner(world, player, executable=True).play([Instruction("get", "red")] * 32, range(32))
    could = np.concatenate([episode.decisions.executable for episode in episodes])  # type: ignore[misc]
    words = [str(task) for task in stages[-1].base.vocabulary.tasks]
    assert not could[:, words.index("find white")].any()
    assert could[:, words.index("find red")].any()


def test_a_refused_utterance_costs_half_and_ends_the_game_at_the_top_but_only_the_call_below() -> None:
    world = RoomsWorld(RoomsConfig(**TINY), num_games=16)
    agent = make_agent(world)
    episodes = Runner(world, AgentPlayer(agent), plans=True).play(agent.vocabulary.tasks * 8, range(192))
    refused = [episode for episode in episodes if episode.outcome == "not executable"]
    assert refused
    assert all(episode.rewards[-1] == -0.5 for episode in refused)
    goes_on = 0
    for episode in episodes:
        assert episode.plan is not None
        for index, decision in enumerate(episode.plan.root.decisions):
            if decision.run and decision.run.outcome == "not executable":
                assert decision.reward in (0.0, 1.0)
                goes_on += index + 1 < len(episode.plan.root.decisions)
    assert goes_on


def test_without_the_penalty_a_refused_utterance_is_worth_nothing_and_the_game_goes_on() -> None:
    world = RoomsWorld(RoomsConfig(penalty=False, **TINY), num_games=16)
    agent = make_agent(world)
    episodes = Runner(world, AgentPlayer(agent)).play(agent.vocabulary.tasks, range(24))
    assert all(episode.outcome != "not executable" for episode in episodes)
    assert sum(episode.refusals for episode in episodes) > 0


def test_step_limits_hold_at_each_level_and_in_all() -> None:
    world = RoomsWorld(RoomsConfig(penalty=False, **TINY), num_games=16)
    agent = make_agent(world)
    limits = Limits(flat=3, decisions=4, episode=17)
    episodes = Runner(world, AgentPlayer(agent), RunnerConfig(limits), plans=True).play(
        agent.vocabulary.tasks * 4, range(96)
    )
    outcomes = set()
    for episode in episodes:
        assert episode.plan is not None
        assert episode.steps <= 17
        for run in episode.plan.root.runs():
            assert len(run.decisions) <= (4 if run.level else 3)
            outcomes.add(run.outcome)
    assert {"achieved", "limit", "cut off"} <= outcomes


def test_an_untaught_pair_of_known_words_cannot_be_executed() -> None:
    """A stage that brings a skill and an item at once leaves pairs that no level below was taught."""
    world = RoomsWorld(RoomsConfig(**TINY), num_games=16)
    base = TaskSet.of(["find"], ["red"]) | TaskSet.of(["get"], ["blue"])
    stages = (Stage(0, TaskSet(), base), Stage(1, base, TaskSet.of(["stack"], ["red"])))
    episodes = Runner(world, RandomPlayer(stages, 8), plans=True).play([stages[1].novel.tasks[0]] * 64, range(64))
    runs = [run for episode in episodes if episode.plan for run in episode.plan.root.runs() if run.level == 0]
    assert runs
    assert {str(run.instruction) for run in runs} <= {"find red", "get blue"}


def test_frames_are_kept_where_a_world_has_no_snapshots() -> None:
    class Opaque:
        """A world with the bare contract."""

        def __init__(self, inner: RoomsWorld) -> None:
            self.description, self.rewards, self.num_games = inner.description, inner.rewards, inner.num_games
            for name in ("reset", "step", "observe", "achieved", "executable"):
                setattr(self, name, getattr(inner, name))

    rooms = RoomsConfig(**TINY)
    inner = RoomsWorld(rooms, num_games=4)
    agent = make_agent(inner)
    tasks, seeds = agent.vocabulary.tasks[:8], range(8)
    with_frames = Runner(Opaque(inner), AgentPlayer(agent)).play(tasks, seeds)  # type: ignore[arg-type]
    with_snapshots = Runner(RoomsWorld(rooms, 3), AgentPlayer(agent)).play(tasks, seeds)
    for one, other in zip(with_frames, with_snapshots, strict=True):
        assert np.array_equal(one.decisions.states, inner.render(other.decisions.states))


def test_with_a_shared_encoder_a_frame_is_encoded_once_whatever_the_depth(monkeypatch: pytest.MonkeyPatch) -> None:
    world = RoomsWorld(RoomsConfig(penalty=False, **TINY), num_games=4)
    agent = make_agent(world)
    encoded = []
    forward = type(agent.encoders[0]).forward
    monkeypatch.setattr(
        type(agent.encoders[0]), "forward", lambda self, frames: (encoded.append(len(frames)), forward(self, frames))[1]
    )
    observed = []
    observe = world.observe
    monkeypatch.setattr(world, "observe", lambda games: (observed.append(len(games)), observe(games))[1])
    Runner(world, AgentPlayer(agent)).play(agent.vocabulary.tasks[:8], range(8))
    assert encoded == observed


def test_a_stream_left_before_its_end_leaves_no_games_behind() -> None:
    world = RoomsWorld(RoomsConfig(**TINY), num_games=4)
    runner = Runner(world, RandomPlayer(make_stages("find"), 8))
    task = np.array([0, 0])
    stream = runner.stream(Assignment(task, seed) for seed in range(10))
    next(stream)
    stream.close()
    assert [(number, episode.seed) for number, episode in runner.stream([Assignment(task, 100)])] == [(0, 100)]


def test_unknown_levels_and_probabilities_are_refused() -> None:
    world = RoomsWorld(RoomsConfig(**TINY))
    player = RandomPlayer(make_stages("find"), 8)
    with pytest.raises(SkillstackError, match="levels 0 to 0"):
        Runner(world, player).play([], [], level=1)
    with pytest.raises(SkillstackError, match="epsilon"):
        RunnerConfig(epsilon=1.5)
    with pytest.raises(SkillstackError, match="Unknown item"):
        Runner(world, RandomPlayer(make_stages("find", ["mauve"]), 8))


def test_acting_oneself_is_recorded_as_an_action_in_words() -> None:
    world = RoomsWorld(RoomsConfig(**TINY))
    agent = make_agent(world)
    (episode,) = Runner(world, AgentPlayer(agent), plans=True).play([agent.vocabulary.tasks[0]], [0], level=0)
    assert episode.plan is not None
    assert episode.decisions.switch is None
    assert all(decision.action in world.description.actions for decision in episode.plan.root.decisions)
