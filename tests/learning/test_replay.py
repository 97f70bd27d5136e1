"""Replay gives whole episodes back as they were."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np
import pytest
import torch

from skillstack import Instruction, make_stages
from skillstack.instructions import TaskArray
from skillstack.learning.replay import Replay
from skillstack.policies.agent import Agent
from skillstack.policies.hierarchical import HierarchicalPolicy
from skillstack.rollout.episode import Episode
from skillstack.rollout.player import AgentPlayer, RandomPlayer
from skillstack.rollout.runner import Runner
from skillstack.worlds.rooms import RoomsConfig, RoomsWorld

WORLD = RoomsWorld(RoomsConfig(penalty=False, image_size=36), num_games=8)
STAGES = make_stages("find, get")


def play(level: int, count: int = 12, hindsight: bool = True) -> list[Episode]:
    runner = Runner(WORLD, RandomPlayer(STAGES, 8), hindsight=hindsight)
    tasks = STAGES[level].tasks.tasks
    return runner.play([tasks[number % len(tasks)] for number in range(count)], range(count), level)


def filled(level: int, capacity: int = 100, behaviour: bool = False) -> tuple[Replay, list[Episode]]:
    replay, episodes = Replay(capacity, gamma=0.9, behaviour=behaviour), play(level)
    for episode in episodes:
        replay.add(episode)
    return replay, episodes


@pytest.mark.parametrize("level", [0, 1])
def test_a_batch_holds_the_decisions_and_returns_of_its_episodes(level: int) -> None:
    replay, episodes = filled(level)
    spans = np.array([3, 0, 7])
    batch = replay.batch(spans)
    for column, number in enumerate(sorted(spans, key=lambda number: -len(episodes[number]))):
        episode, length = episodes[number], len(episodes[number])
        assert batch.decisions.mask[:, column].sum() == length
        assert batch.decisions.action[:length, column].tolist() == episode.decisions.action.tolist()
        expected = [float(episode.rewards[-1]) * 0.9 ** (length - 1 - t) for t in range(length)]
        assert batch.decisions.returns[:length, column].tolist() == pytest.approx(expected)
        assert batch.tasks[column].tolist() == episode.task.tolist()
        assert batch.there[:, column].tolist() == [t < length for t in range(len(batch.there))]
        rows = batch.rows[batch.there.nonzero()[:, 1].numpy() == column]
        assert np.array_equal(replay.states(rows), episode.decisions.states)
        if episode.decisions.switch is not None and episode.decisions.mu_switch is not None:
            assert batch.decisions.switch is not None
            assert batch.decisions.mu_switch is not None
            assert batch.decisions.switch[:length, column].tolist() == episode.decisions.switch.tolist()
            mu = episode.decisions.mu_switch[np.arange(length), episode.decisions.switch]
            assert batch.decisions.mu_switch[:length, column].tolist() == pytest.approx(mu.tolist())


def test_true_weights_keep_the_probabilities_that_were_drawn_with() -> None:
    agent = Agent.create(WORLD.description, STAGES)
    with torch.no_grad():
        cast(HierarchicalPolicy, agent.levels[1]).switch_head.bias[1] = 2.0  # it would rather act itself
    (episode,) = Runner(WORLD, AgentPlayer(agent)).play([Instruction("get", "red")], [1], epsilon=0.5)
    found = {}
    for behaviour in (False, True):
        replay = Replay(10, gamma=0.9, behaviour=behaviour)
        replay.add(episode)
        mu = replay.batch(np.array([0])).decisions.mu_switch
        assert mu is not None
        found[behaviour] = mu[:, 0].numpy()
    assert np.abs(found[True] - found[False]).min() > 0.1
    np.testing.assert_allclose(found[True], 0.5 * found[False] + 0.5 * 0.5, rtol=1e-5)  # every other one at random


def test_a_draw_has_enough_decisions_in_whole_episodes_and_no_more_than_needed() -> None:
    replay, episodes = filled(1)
    lengths = np.array([len(episode) for episode in episodes])
    rng = np.random.default_rng(0)
    for _ in range(50):
        drawn = replay.draw(rng, 36)
        assert lengths[drawn].sum() >= 36 > lengths[drawn[:-1]].sum()


def test_the_oldest_episodes_are_forgotten() -> None:
    replay = Replay(capacity=5, gamma=0.9)
    episodes = [episode for _ in range(3) for episode in play(1)]
    for episode in episodes:
        replay.add(episode)
    assert len(replay) <= 6
    drawn = set(replay.draw(np.random.default_rng(0), 500).tolist())
    assert drawn == set(range(len(replay) - 5, len(replay)))
    newest = replay.batch(np.array([len(replay) - 1]))
    assert np.array_equal(replay.states(newest.rows), episodes[-1].decisions.states)


def test_what_is_seen_in_hindsight_outlives_the_episodes_before_it() -> None:
    """Its spans need not begin in the order in which they were added; each still shows what it was cut from."""
    rng, kept = np.random.default_rng(0), Replay(capacity=6, gamma=0.9)
    tasks = RandomPlayer(STAGES, 8).vocabulary.encode(STAGES[0].tasks)
    shown: list[bytes] = []
    for number, episode in enumerate(play(0, count=60)):
        assert episode.reached is not None
        episode = replace(episode, reached=rng.random(episode.reached.shape) < 0.3)
        frames = np.arange(1000 * number, 1000 * number + len(episode))
        kept.add(episode, frames)
        kept.add_hindsight(episode, tasks, 1.0, 4, rng)
        for span in range(len(kept)):
            rows = kept.batch(np.array([span])).rows
            assert rows.min() >= 0
            assert (np.diff(kept.states(rows)) == 1).all(), "a span is of one episode"
        shown += [kept.states(kept.batch(np.array([len(kept) - 1])).rows).tobytes()]
    assert len(set(shown)) == 60
    assert kept.num_decisions < 200, "the oldest were never forgotten"


def test_features_stand_in_for_states() -> None:
    replay, (episode, *_) = Replay(10, gamma=0.9), play(1)
    features = np.random.default_rng(0).normal(size=(len(episode), 256)).astype(np.float32)
    replay.add(episode, features)
    assert np.array_equal(replay.states(replay.batch(np.array([0])).rows), features)


def test_hindsight_spans_end_when_a_task_comes_to_hold_and_start_where_it_did_not() -> None:
    episodes = play(0, count=40)
    tasks = RandomPlayer(STAGES, 8).vocabulary.encode(STAGES[0].tasks)
    rng, found = np.random.default_rng(0), 0
    for episode in episodes:
        replay = Replay(1000, gamma=0.9)
        replay.add(episode)
        replay.add_hindsight(episode, tasks, 1.0, 4, rng)
        assert episode.reached is not None
        for span in replay.spans(hindsight=True):
            batch = replay.batch(np.array([span]))
            number = next(number for number, task in enumerate(tasks) if (task == batch.tasks[0].numpy()).all())
            rows = batch.rows
            assert episode.reached[rows[-1] + 1, number]
            assert not episode.reached[rows, number].any()
            assert batch.decisions.returns[-1, 0] == 1.0
            assert 1 <= len(rows) <= 4
            found += 1
    assert found > 10


def test_hindsight_leaves_out_what_did_more_than_the_task() -> None:
    """What is reached at the end is "find red"; on the way "get red" came about, or was undone."""
    episode = next(episode for episode in play(0, count=40) if len(episode) >= 4)
    tasks = np.array([[0, 0], [1, 0]])
    for came_about in (True, False):
        for changed, starts in ((None, {0, 1, 2, 3}), (1, {2, 3}), (3, set())):
            reached = np.zeros((5, 2), np.bool_)
            reached[4, 0] = True
            reached[:, 1] = not came_about
            if changed is not None:
                reached[changed + 1 :, 1] = came_about
            begun = {_start_of_find(replace(episode, reached=reached), tasks, seed) for seed in range(40)}
            assert begun - {None} == starts


def test_hindsight_of_other_skills_may_undo_what_it_must() -> None:
    """Whoever puts a block down no longer has it, in whatever order the two skills were learned."""
    episode = next(episode for episode in play(0, count=40) if len(episode) >= 4)
    reached = np.zeros((5, 3), np.bool_)
    reached[:4, 1], reached[4, 2] = True, True
    for get, put in ((1, 2), (2, 1)):
        replay = Replay(1000, gamma=0.9)
        replay.add(episode)
        tasks = np.array([[0, 0], [get, 0], [put, 0]])
        replay.add_hindsight(replace(episode, reached=reached), tasks, 1.0, 4, np.random.default_rng(0))
        assert [replay.batch(np.array([span])).tasks.tolist() for span in replay.spans(hindsight=True)] == [[[put, 0]]]


def _start_of_find(episode: Episode, tasks: TaskArray, seed: int) -> int | None:
    """Where the hindsight of "find" begins in the first four decisions, if there is any."""
    replay = Replay(1000, gamma=0.9)
    replay.add(episode)
    replay.add_hindsight(episode, tasks, 1.0, 4, np.random.default_rng(seed))
    found = [
        batch for span in replay.spans(hindsight=True) if not (batch := replay.batch(np.array([span]))).tasks.any()
    ]
    return int(found[0].rows[0]) if found else None


def test_its_state_brings_everything_back() -> None:
    replay, _ = filled(1)
    other = Replay(100, gamma=0.9)
    other.load_state(replay.state())
    spans = replay.draw(np.random.default_rng(4), 30)
    assert np.array_equal(spans, other.draw(np.random.default_rng(4), 30))
    one, two = replay.batch(spans), other.batch(spans)
    assert all(
        (left is None and right is None) or left.equal(right)
        for left, right in zip(one.decisions, two.decisions, strict=True)
    )
