"""Algorithm 2 as a loop: what moves, what does not, and that a resumed run is the same run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from tiny import TINY, tiny
from torch import nn

from skillstack import Instruction
from skillstack.errors import DivergedError, SkillstackError
from skillstack.learning.config import TrainConfig
from skillstack.learning.learner import ROTATION, A2CLearner, PPOLearner
from skillstack.learning.packing import pack, unpack
from skillstack.learning.trainer import Trainer
from skillstack.policies.grammar import Grammar

HEADS = {"switch": ["switch_head"], "instruction": ["skill_head", "item_head"], "augmented": ["action_head"]}


def weights(module: nn.Module) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in module.state_dict().items()}


def moved(before: Mapping[str, torch.Tensor], after: Mapping[str, torch.Tensor]) -> set[str]:
    """The modules some of whose weights changed."""
    return {name.split(".")[0] for name in before if not before[name].equal(after[name])}


def level_one(config: TrainConfig = TINY) -> Trainer:
    return Trainer(config, None, first_stage=1)


def turns_of(trainer: Trainer) -> A2CLearner:
    assert isinstance(trainer.stage.learner, A2CLearner)
    return trainer.stage.learner


@pytest.mark.parametrize("entropy", [0.0, 0.01])
def test_with_alternation_exactly_one_head_moves_in_a_rotation(entropy: float) -> None:
    trainer = level_one(replace(TINY, a2c=replace(TINY.a2c, entropy=entropy)))
    trainer.stage.turn()
    learner, rng = turns_of(trainer), np.random.default_rng(0)
    seen = []
    for _ in range(15):
        turn = learner.turn
        before = weights(learner.policy)
        learner.update(rng)
        heads = moved(before, weights(learner.policy)) - {"trunk", "value_head", "switch_value_head"}
        assert turn is not None
        assert heads <= set(HEADS[turn])
        seen += [turn] if heads else []
    assert set(seen) == set(ROTATION)


@pytest.mark.parametrize("by_failure", [False, True])
def test_the_entropy_bonus_of_a_task_may_count_by_how_much_it_fails(by_failure: bool) -> None:
    """Of the same batch, where "get" alone fails; what is not played yet fails wholly."""
    config = tiny(alternation=False, entropy_by_failure=by_failure, updates=0.0)
    trainer = level_one(replace(config, a2c=replace(config.a2c, entropy=0.01)))
    for _ in range(4):
        trainer.stage.turn()  # the first has base tasks alone
    learner = turns_of(trainer)

    def bonus(*failing: float) -> float:
        batch = learner.replay.batch(learner.replay.draw(np.random.default_rng(0), 36))
        assert len(set(batch.tasks[:, 0].tolist())) == 2
        shares = np.repeat(np.array(failing, np.float32)[:, None], 2, axis=1)  # the same for both items
        features = learner.features(learner.replay.states(batch.rows))
        return learner._terms(batch, features, shares).losses["entropy"].item()

    whole, find, get = bonus(1, 1), bonus(1, 0), bonus(0, 1)
    assert whole < 0
    if by_failure:
        assert find + get == pytest.approx(whole)
        assert bonus(0.5, 0.25) == pytest.approx(0.5 * find + 0.25 * get)
        assert bonus(0, 0) == 0
    else:
        assert find == get == whole


def test_a_turn_tells_the_learner_what_fails_with_its_own_games_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    stage, told = level_one().stage, []
    learn = stage.learner.learn

    def listen(*arguments: Any) -> dict[str, float]:
        told.append(arguments[-1])
        return learn(*arguments)

    monkeypatch.setattr(stage.learner, "learn", listen)
    stage.turn()
    assert told[0].tolist() == stage.curriculum.failing().tolist()
    assert told[0].min() < 1 or stage.curriculum.success("find") == 0


def test_a_turn_of_the_rotation_lasts_as_many_updates_as_set() -> None:
    learner = turns_of(level_one(tiny(rotation=5)))
    turns = []
    for learner.updates in range(20):
        turns.append(learner.turn)
    assert turns == ["switch"] * 5 + ["instruction"] * 5 + ["augmented"] * 5 + ["switch"] * 5


def test_without_alternation_all_heads_move_at_once() -> None:
    trainer = level_one(tiny(alternation=False, penalty=False))
    trainer.stage.turn()
    learner, rng = turns_of(trainer), np.random.default_rng(0)
    before = weights(learner.policy)
    for _ in range(3):
        learner.update(rng)
    # There is one base skill only, so nothing to learn for the head that chooses it.
    assert moved(before, weights(learner.policy)) >= {"switch_head", "item_head", "action_head"}


def test_without_the_switch_value_its_head_stays_as_it_was() -> None:
    trainer = level_one(tiny(switch_value=False))
    before = weights(trainer.agent.levels[1])
    trainer.stage.turn()
    assert "switch_value_head" not in moved(before, weights(trainer.agent.levels[1]))
    assert "value_head" in moved(before, weights(trainer.agent.levels[1]))


def test_with_v_trace_weights_are_true_and_at_most_one() -> None:
    trainer = level_one(tiny(v_trace=True))
    metrics = trainer.stage.turn()
    assert turns_of(trainer).replay.behaviour
    assert 0 < metrics["weight of switch"] <= 1
    assert not turns_of(level_one(tiny())).replay.behaviour


@pytest.mark.parametrize("true", [False, True])
def test_true_weights_are_kept_where_they_are_asked_for(true: bool) -> None:
    """Replay has the probabilities of games played half at random, or those of the policies alone."""
    trainer = level_one(tiny(true_weights=true, epsilon=0.5, updates=0.0))
    stage, replay = trainer.stage, turns_of(trainer).replay
    with torch.no_grad():
        trainer.agent.levels[1].action_head.bias[0] = 2.0  # of an even policy, half at random is even, too
    tasks, seeds, _ = stage._choose_games()
    episodes = stage._runner.play(tasks, seeds, 1, 0.5)
    stage.learner.learn(episodes, np.random.default_rng(0))
    kept = replay._columns["mu_action"].values
    drawn = np.concatenate([episode.decisions.behaviour_action for episode in episodes])
    plain = np.concatenate(
        [np.take_along_axis(one.decisions.mu_action, one.decisions.action[:, None], 1)[:, 0] for one in episodes]
    )
    assert np.abs(drawn - plain).max() > 1e-3
    np.testing.assert_allclose(kept, drawn if true else plain, rtol=1e-5)


@pytest.mark.parametrize("terminal", [False, True])
def test_v_trace_takes_the_place_of_the_returns(terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it makes of the returns is what the values are drawn to."""
    config = tiny(v_trace=True, alternation=False)
    if terminal:
        trainer = Trainer(replace(config, terminal=replace(config.terminal, method="a2c")))
    else:
        trainer = level_one(config)
    trainer.stage.turn()
    learner = turns_of(trainer)
    monkeypatch.setattr(
        "skillstack.learning.learner.v_trace",
        lambda output, batch, gamma: batch._replace(returns=output.value.detach() + 2.0, value_weight=None),
    )
    terms = learner.update(np.random.default_rng(0))
    assert terms.losses["value"].item() == pytest.approx(2.0)  # half of 2 squared


def test_without_the_grammar_nothing_is_counted_and_nothing_guided() -> None:
    trainer = level_one(tiny(grammar=False))
    for _ in range(3):
        trainer.stage.turn()
    grammar = trainer.agent.grammars[1]
    assert grammar is not None
    assert grammar.to_json()["counts"] == {}
    assert not trainer.stage.guided


def test_without_the_grammar_levels_below_keep_theirs_and_what_the_level_counted_before_is_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = tiny(stages="find, get, put")
    agent = Trainer(config).agent
    below, own = agent.grammars[1], agent.grammars[2]
    assert below is not None
    assert own is not None
    for grammar in (below, own):
        grammar.update((0, 0), [grammar.act_state])
    trainer = Trainer(replace(config, level=replace(config.level, grammar=False)), agent, 2)
    asked: list[Grammar] = []
    reshape = Grammar.reshape

    def noting(grammar: Grammar, *args: Any) -> Any:
        asked.append(grammar)
        return reshape(grammar, *args)

    monkeypatch.setattr(Grammar, "reshape", noting)
    trainer.stage.turn()
    assert below in asked
    assert own not in asked
    assert below.episodes(Instruction("find", "red")) == 1
    assert own.to_json()["counts"] == {}


def test_every_so_often_a_level_plays_without_its_own_grammar(monkeypatch: pytest.MonkeyPatch) -> None:
    for share, expected in ((0.0, [True] * 4), (0.5, [True, False, True, False]), (1.0, [False] * 4)):
        trainer, played = level_one(tiny(unguided=share)), []
        play = trainer.stage._runner.play

        def noting(*args: Any, play: Any = play, played: list[bool] = played, **settings: Any) -> Any:
            played.append(settings["top_grammar"])
            return play(*args, **settings)

        monkeypatch.setattr(trainer.stage._runner, "play", noting)
        assert [trainer.stage.turn()["guided"] for _ in range(4)] == expected
        assert played == expected
    assert "guided" not in Trainer(TINY).stage.turn()  # pi_0 has no grammar
    with pytest.raises(SkillstackError, match="from 0 to 1, not 2"):
        tiny(unguided=2)


def test_positive_episodes_are_counted_into_the_grammar() -> None:
    trainer = level_one(tiny(window=50))
    succeeded = 0.0
    for _ in range(6):
        succeeded += trainer.stage.turn()["success"] * TINY.games
    grammar = trainer.agent.grammars[1]
    assert grammar is not None
    assert sum(grammar.episodes(task) for task in grammar.tasks) == round(succeeded) > 0


def test_without_the_penalty_no_reward_is_negative() -> None:
    lowest = {}
    for penalty in (True, False):
        stage, refused, rewards = level_one(tiny(penalty=penalty)).stage, 0, []
        for turn in range(3):
            tasks, seeds, _ = stage._choose_games()
            for episode in stage._runner.play(tasks, [seed + turn for seed in seeds], 1, 0.5):
                refused += episode.refusals
                rewards.append(float(episode.rewards.min()))
        assert refused > 5
        lowest[penalty] = min(rewards)
    assert lowest == {True: -0.5, False: 0.0}
    usual, without = (tiny(penalty=penalty).world() for penalty in (True, False))
    assert replace(without, penalty=True) == usual


def test_without_the_curriculum_the_novel_tasks_come_at_once() -> None:
    assert level_one(tiny(threshold=0.9)).stage.curriculum.phase == "base"
    assert level_one(tiny(curriculum=False)).stage.curriculum.phase == "novel"


def test_the_novel_phase_plays_as_many_new_tasks_as_is_set() -> None:
    shares = []
    for novel in (0.0, 0.9):
        stage = level_one(tiny(curriculum=False, novel=novel)).stage
        tasks = [task for _ in range(50) for task in stage._choose_games()[0]]
        shares.append(sum(task.skill == "get" for task in tasks) / len(tasks))
    assert shares == [pytest.approx(0.5, abs=0.1), pytest.approx(0.9, abs=0.05)]


def test_the_base_phase_waits_for_each_task_or_for_the_mean_of_all() -> None:
    phases = []
    for each in (True, False):
        stage = level_one(tiny(threshold=0.5, window=4, each=each)).stage
        first, *others = stage.stage.base
        for task, rewards in [(first, [1.0, 1.0, 0.0, 0.0]), *((other, [1.0] * 4) for other in others)]:
            for reward in rewards:
                stage.curriculum.record(task, reward)
        phases.append(stage.curriculum.phase)
    assert phases == ["base", "novel"]


@pytest.mark.parametrize("encoder", ["own", "shared", "frozen"])
def test_the_encoder_learns_unless_it_is_frozen_and_lower_levels_never_do(encoder: str) -> None:
    trainer = level_one(tiny(encoder=encoder))
    below, mine = weights(trainer.agent.levels[0]), weights(trainer.agent.encoder_of(1))
    first = weights(trainer.agent.encoder_of(0))
    trainer.stage.turn()
    assert not moved(below, weights(trainer.agent.levels[0]))
    assert bool(moved(mine, weights(trainer.agent.encoder_of(1)))) == (encoder != "frozen")
    assert bool(moved(first, weights(trainer.agent.encoder_of(0)))) == (encoder == "shared")


@pytest.mark.parametrize("method", ["ppo", "a2c"])
def test_the_terminal_policy_learns_by_either_method(method: str) -> None:
    trainer = Trainer(tiny(method=method))
    before = weights(trainer.agent.levels[0])
    metrics = trainer.stage.turn()
    assert moved(before, weights(trainer.agent.levels[0])) == {"trunk", "action_head", "value_head"}
    assert metrics["updates"] > 0


def test_the_terminal_policy_practises_with_its_encoder_frozen_once_it_has_learned_to_see() -> None:
    trainer = Trainer(tiny(seeing=8))
    seeing, practising = trainer.stage.turn(), trainer.stage.turn()
    assert (seeing["phase"], practising["phase"]) == ("novel", "practice")
    trainer = Trainer(tiny(seeing=8))
    trainer.stage.turn()
    encoder, policy = weights(trainer.agent.encoder_of(0)), weights(trainer.agent.levels[0])
    trainer.stage.turn()
    assert not moved(encoder, weights(trainer.agent.encoder_of(0)))
    assert moved(policy, weights(trainer.agent.levels[0])) == {"trunk", "action_head", "value_head"}


def test_the_terminal_policy_must_learn_to_see_first() -> None:
    with pytest.raises(SkillstackError, match="must learn to see first"):
        tiny(seeing=0)


def test_a_terminal_policy_that_sees_already_practises_at_once() -> None:
    trainer = Trainer(tiny(stages="find", seeing=0, tune=True, critic=True))
    encoder, policy = weights(trainer.agent.encoders[0]), weights(trainer.agent.levels[0])
    assert trainer.stage.turn()["phase"] == "practice"
    assert not moved(encoder, weights(trainer.agent.encoders[0]))
    assert moved(policy, weights(trainer.agent.levels[0])) == {"trunk", "action_head", "value_head"}


def test_by_a2c_the_terminal_policy_does_not_practise() -> None:
    trainer = Trainer(tiny(seeing=8, method="a2c"))
    assert [trainer.stage.turn()["phase"] for _ in range(2)] == ["novel", "novel"]


def test_a_level_learns_by_ppo_as_a_whole_but_for_the_value_of_its_switch() -> None:
    trainer = level_one(replace(TINY, level=replace(TINY.level, method="ppo")))
    below, before = weights(trainer.agent.levels[0]), weights(trainer.agent.levels[1])
    metrics = trainer.stage.turn()
    heads = {f"{name}_head" for name in ("switch", "skill", "item", "action", "value")}
    assert moved(before, weights(trainer.agent.levels[1])) - {"item_head", "skill_head"} >= {"trunk", "switch_head"}
    assert moved(before, weights(trainer.agent.levels[1])) <= {"trunk", *heads}
    assert not moved(below, weights(trainer.agent.levels[0]))
    assert metrics["updates"] > 0


def by_ppo(**changes: Any) -> TrainConfig:
    config = tiny(**changes)
    return replace(config, level=replace(config.level, method="ppo"))


def test_refusals_are_learned_of_where_that_is_asked_for() -> None:
    """At every decision of a level, whatever it uttered; pi_0 utters nothing."""
    config = by_ppo()
    with_it, without = (replace(config, ppo=replace(config.ppo, refusal=weight)) for weight in (0.5, 0.0))
    assert "loss of refusal" not in level_one(without).stage.turn()
    assert "loss of refusal" not in Trainer(with_it).stage.turn()
    stage = level_one(with_it).stage
    stage.turn()
    learner = stage.learner
    assert isinstance(learner, PPOLearner)
    tasks, seeds, _ = stage._choose_games()
    episodes = stage._runner.play(tasks, seeds, 1)
    played = [(episode, seen, None) for episode, seen in zip(episodes, learner.frozen_features(episodes), strict=True)]
    rng = np.random.default_rng(0)
    # The same games again and again, of which nothing else is learned.
    learner.config = replace(learner.config, hindsight=0.0, even=0.0, value=0.0, clip=0.0, refusal=1.0)
    losses = [learner.update(played, rng).losses["refusal"].item() for _ in range(30)]
    assert losses[-1] < 0.7 * losses[0]


@pytest.mark.parametrize(("rare", "again"), [(1.1, True), (0.0, False)])
def test_successes_of_rare_skills_are_kept_and_imitated_again(
    rare: float, again: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Above 1 every skill is rare, with 0 none is."""
    monkeypatch.setattr("skillstack.learning.learner.RARE", rare)
    trainer = level_one(by_ppo())
    told = [trainer.stage.turn() for _ in range(4)]
    assert any("loss of imitation" in metrics for metrics in told)
    assert any("loss of imitation again" in metrics for metrics in told) == again


def test_what_is_kept_of_rare_skills_is_imitated_while_they_are_rare(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skillstack.learning.learner.RARE", 0.5)
    trainer = level_one(by_ppo(games=32))
    learner = trainer.stage.learner
    assert isinstance(learner, PPOLearner)
    for _ in range(3):
        trainer.stage.turn()
    kept = learner._kept.spans_of(np.arange(2))
    assert len(kept)
    skills = learner._kept.batch(kept).tasks[:, 0].tolist()
    for skill in (0, 1):
        assert len(learner._kept.spans_of(np.array([skill]))) == skills.count(skill)
    assert not len(learner._kept.spans_of(np.array([], dtype=np.int64)))
    assert len(learner._rare_spans)
    monkeypatch.setattr("skillstack.learning.learner.RARE", 0.0)
    assert "loss of imitation again" not in trainer.stage.turn()
    assert not len(learner._rare_spans)


@pytest.mark.parametrize(("before", "left"), [(0, 1.0), (40, 0.6), (80, 0.2), (100, 0.2)])
def test_the_learning_rate_comes_down_in_a_line_to_what_is_left_at_last(before: int, left: float) -> None:
    """Of 100 episodes, over a share of 0.8."""
    config = by_ppo()
    slower = replace(config.ppo, decay=0.8, last=0.2)
    trainer = level_one(replace(config, ppo=slower, level=replace(config.level, episodes=100)))
    learner, stage = trainer.stage.learner, trainer.stage
    stage.turn()
    tasks, seeds, _ = stage._choose_games()
    learner.learn(stage._runner.play(tasks, seeds, 1), np.random.default_rng(0), before)
    assert learner.optimizer.param_groups[0]["lr"] == pytest.approx(left * config.ppo.learning_rate)


def test_epsilon_comes_down_in_a_line_and_the_terminal_policy_has_one_of_its_own() -> None:
    trainer = level_one(tiny(epsilon=0.1, epsilon_episodes=100))
    stage = trainer.stage
    found = []
    for stage.episodes in (0, 50, 100, 200):
        found.append(stage.epsilon)
    assert found == pytest.approx([0.1, 0.05, 0.0, 0.0])
    stage.phase_began = 150
    assert stage.epsilon == pytest.approx(0.05)
    assert Trainer(TINY).stage.epsilon == 0.0
    terminal = replace(TINY.terminal, epsilon=0.2)
    assert Trainer(replace(TINY, terminal=terminal)).stage.epsilon == 0.2


def test_updates_follow_the_number_of_episodes_not_of_games_at_once() -> None:
    trainer = level_one(tiny(games=32, updates=4.0))
    metrics = trainer.stage.turn()
    assert abs(metrics["updates"] - 4.0 * 32) < 6 * np.sqrt(4.0 * 32)


def test_a_loss_that_is_not_finite_stops_learning_and_names_the_term() -> None:
    trainer = level_one()
    trainer.stage.turn()
    learner = turns_of(trainer)
    with torch.no_grad():
        next(learner.policy.value_head.parameters()).fill_(float("nan"))
    before = weights(learner.policy.trunk)
    with pytest.raises(DivergedError, match=r"The (value|switch) loss is nan"):
        learner.update(np.random.default_rng(0))
    assert not moved(before, weights(learner.policy.trunk))


def packed(trainer: Trainer) -> dict[str, bytes]:
    return pack(trainer.state())


@pytest.mark.parametrize("method", ["ppo", "a2c"])
@pytest.mark.parametrize("encoder", ["own", "shared", "frozen"])
@pytest.mark.parametrize("flat", [False, True])
def test_a_resumed_run_is_the_same_run_at_every_stage_and_phase(method: str, encoder: str, flat: bool) -> None:
    """Two stages of two and four turns: a pause after each turn, and once more at the end of the stage."""
    # One of the two has a critic of its own while pi_0 practises, which must come back, too.
    config = tiny(method=method, encoder=encoder, threshold=-1.0, flat=flat, seeing=8, critic=not flat)
    config = replace(config, level=replace(config.level, method=method))
    phases = check_every_pause(config)
    assert {(0, "novel"), (1, "base"), (1, "novel")} <= phases
    assert ((0, "practice") in phases) == (method == "ppo")


@pytest.mark.parametrize("method", ["ppo", "a2c"])
def test_a_resumed_run_is_the_same_run_with_all_that_can_be_turned_on(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("skillstack.learning.hard.ENOUGH", 1)  # so that hard games come back in so short a run
    more = {
        "window": 1,
        "inherit": True,
        "silent": True,
        "unguided": 0.5,
        "smoothing": 1.0,
        "doubt": 0.1,
        "again": 0.5,
        "method": method,
    }
    config = tiny(stages="find, get, put", encoder="frozen", seeing=8, critic=True)
    config = replace(
        config,
        terminal=replace(config.terminal, again=0.5),
        level=replace(config.level, **more),
        a2c=replace(config.a2c, entropy=0.01, entropy_by_failure=True, true_weights=True, replay=10),
    )
    assert {(1, "base"), (2, "base"), (2, "novel")} <= check_every_pause(config)


def check_every_pause(config: TrainConfig) -> set[tuple[int, str | None]]:
    """A run that pauses after every turn has the same states as one in one go; returns its levels and phases."""
    straight = Trainer(config)
    states: list[Any] = [packed(straight)]
    phases = set()
    for metrics in straight.turns():
        states.append(packed(straight))
        phases.add((metrics["level"], metrics.get("phase")))
    resumed = Trainer.from_state(config, unpack(states[0]))
    for expected in states[1:]:
        next(resumed.turns())
        assert packed(resumed) == expected
        resumed = Trainer.from_state(config, unpack(expected))
    return phases


@pytest.mark.parametrize("encoder", ["own", "frozen"])
def test_a_level_may_start_with_the_trunk_of_the_level_below(encoder: str) -> None:
    trainer = level_one(replace(tiny(encoder=encoder, updates=0.0), level=replace(TINY.level, inherit=True)))
    trainer.stage.turn()  # without updates
    lower, upper = trainer.agent.levels
    assert torch.equal(upper.trunk.lstm.weight_hh_l0, lower.trunk.lstm.weight_hh_l0)
    assert not moved(weights(trainer.agent.encoder_of(0)), weights(trainer.agent.encoder_of(1)))


@pytest.mark.parametrize("inherit", [False, True])
@pytest.mark.parametrize("flat", [False, True])
def test_words_of_new_skills_may_start_as_zeros(inherit: bool, flat: bool) -> None:
    """Those of known skills do not, nor do new words where that is not asked for."""
    for silent in (False, True):
        trainer = level_one(tiny(flat=flat, updates=0.0, inherit=inherit, silent=silent))
        trainer.stage.turn()  # without updates
        known, new = trainer.agent.levels[-1].trunk.instruction.skills.weight.any(dim=1).tolist()
        assert known
        assert new != silent


def test_words_of_pi_0_and_of_a_level_that_is_tuned_are_never_silenced() -> None:
    first, tuned = Trainer(tiny(silent=True)), level_one(tiny(silent=True, inherit=True, tune=True))
    for trainer in (first, tuned):
        before = weights(trainer.agent.levels[-1])
        trainer.stage._start_level()
        assert not moved(before, weights(trainer.agent.levels[-1]))


def test_doubt_comes_down_with_epsilon_and_is_there_only_while_games_are_played() -> None:
    stage = level_one(tiny(doubt=0.2, epsilon_episodes=100)).stage
    grammar, seen = stage.agent.grammars[1], []
    assert grammar is not None
    for stage.episodes in (0, 50, 200):
        with stage._doubting():
            seen.append(grammar.doubt)
        assert grammar.doubt == 0
    assert seen == pytest.approx([0.2, 0.1, 0.0])


def test_games_are_played_with_the_doubt_that_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = level_one(tiny(doubt=0.2)).stage
    grammar, play, seen = stage.agent.grammars[1], stage._runner.play, []
    assert grammar is not None

    def look(*arguments: Any, **options: Any) -> Any:
        seen.append(grammar.doubt)
        return play(*arguments, **options)

    monkeypatch.setattr(stage._runner, "play", look)
    stage.turn()
    assert seen == [0.2]
