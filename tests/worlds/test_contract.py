"""Tests of worlds/world.py: rewards, limits, and the checks that every world makes at its edge."""

import numpy as np
import pytest

from skillstack import SkillstackError
from skillstack.instructions import DEFAULT_VOCABULARY
from skillstack.worlds.rooms import RoomsWorld
from skillstack.worlds.world import (
    Limits,
    Rewards,
    SnapshotWorld,
    World,
    check_actions,
    check_games,
    check_seeds,
    check_tasks,
)

NO, YES = np.array([False]), np.array([True])


class TestRewards:
    def test_success_is_one_refusal_minus_a_half_and_all_else_nothing(self) -> None:
        achieved, refused = np.array([True, False, False]), np.array([False, True, False])
        assert Rewards().of(achieved, refused).tolist() == [1.0, -0.5, 0.0]

    def test_with_the_rule_off_a_refusal_is_worth_nothing(self) -> None:
        assert Rewards(refused=0.0).of(NO, YES).tolist() == [0.0]

    def test_a_success_counts_even_where_an_utterance_was_refused(self) -> None:
        assert Rewards().of(YES, YES).tolist() == [1.0]

    @pytest.mark.parametrize(
        "rewards", [(0.0, -0.5), (-1.0, -0.5), (1.0, 0.5), (float("nan"), 0.0), (1.0, float("nan"))]
    )
    def test_rewards_of_the_wrong_sign_are_an_error(self, rewards: tuple[float, float]) -> None:
        with pytest.raises(SkillstackError, match="more than 0"):
            Rewards(*rewards)


class TestLimits:
    @pytest.mark.parametrize("name", ["flat", "decisions", "episode"])
    def test_a_limit_is_at_least_one_step(self, name: str) -> None:
        assert getattr(Limits(**{name: 1}), name) == 1
        with pytest.raises(SkillstackError, match=f"'{name}' must be at least 1, not 0"):
            Limits(**{name: 0})


class TestProtocols:
    def test_the_rooms_fulfil_both_contracts(self) -> None:
        world = RoomsWorld()
        assert isinstance(world, World)
        assert isinstance(world, SnapshotWorld)


class TestChecks:
    @pytest.mark.parametrize("games", [[], [0], [2, 0, 1], np.array([1], dtype=np.uint8), range(3)])
    def test_games_are_whole_numbers_from_zero(self, games: object) -> None:
        assert check_games(games, 3).dtype == np.int64

    @pytest.mark.parametrize("games", [[3], [-1], [0.5], [[0]], 1, ["a"], [True, False, True], None])
    def test_other_games_are_an_error(self, games: object) -> None:
        with pytest.raises(SkillstackError, match="Games are n"):
            check_games(games, 3)

    def test_a_wrong_action_is_told_which_there_are(self) -> None:
        with pytest.raises(SkillstackError, match=r"There is no action 2. The actions are: 0 go, 1 stop\."):
            check_actions([0, 2], ("go", "stop"), 2)
        with pytest.raises(SkillstackError, match="There is no action -1"):
            check_actions([-1, 1], ("go", "stop"), 2)

    @pytest.mark.parametrize("actions", [[0], [0, 0, 0], [[0, 0]], [0.0, 1.0], 0, ["go", "go"], None])
    def test_actions_are_one_whole_number_a_game(self, actions: object) -> None:
        with pytest.raises(SkillstackError, match="one whole-numbered action for each of 2 games"):
            check_actions(actions, ("go", "stop"), 2)

    def test_no_games_take_no_actions_and_no_seeds(self) -> None:
        assert check_actions([], ("go",), 0).dtype == np.int64
        assert check_seeds([], 0).dtype == np.uint64

    def test_seeds_reach_to_64_bits(self) -> None:
        assert check_seeds([0, 2**64 - 1], 2).tolist() == [0, 2**64 - 1]
        assert check_seeds(np.array([7, 8], dtype=np.int32), 2).tolist() == [7, 8]

    @pytest.mark.parametrize("seeds", [[1], [1, -1], [1.0, 2.0], [0, 2**64], [[1, 2]], 5, None, ["a", "b"]])
    def test_other_seeds_are_an_error(self, seeds: object) -> None:
        with pytest.raises(SkillstackError, match="one seed for each of 2 games"):
            check_seeds(seeds, 2)

    @pytest.mark.parametrize("task", [[4, 0], [0, 6], [-1, 0]])
    def test_a_word_number_that_stands_for_nothing_is_told_which_do(self, task: list[int]) -> None:
        with pytest.raises(SkillstackError, match="skill must be from 0 to 3 and its item from 0 to 5: find, get"):
            check_tasks([task], DEFAULT_VOCABULARY, 1, per_game=False)

    @pytest.mark.parametrize(
        "tasks", [[0, 0], [[0]], [[0, 0, 0]], [[0, 0], [0, 0]], [[0.0, 1.0]], "find red", [["find", "red"]]]
    )
    def test_tasks_are_one_pair_a_game(self, tasks: object) -> None:
        with pytest.raises(SkillstackError, match="pairs of word numbers, skill and item, for each of 1 games"):
            check_tasks(tasks, DEFAULT_VOCABULARY, 1, per_game=False)

    def test_several_tasks_a_game_are_only_for_questions(self) -> None:
        several = np.zeros((1, 3, 2), dtype=np.int64)
        assert check_tasks(several, DEFAULT_VOCABULARY, 1, per_game=True).shape == (1, 3, 2)
        with pytest.raises(SkillstackError, match="pairs of word numbers"):
            check_tasks(several, DEFAULT_VOCABULARY, 1, per_game=False)
