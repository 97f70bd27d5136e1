"""Every setting of a training run, with a sentence each, and the presets."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Annotated, Any, Literal

import tyro

from skillstack.errors import SkillstackError, unknown
from skillstack.instructions import COLOURS, SKILLS, Instruction, Stage, make_stages
from skillstack.worlds.making import WorldName
from skillstack.worlds.rooms import Randomisation, RoomsConfig
from skillstack.worlds.world import Limits

SECONDS_PER_EPISODE = {"terminal": 0.01, "ppo": 0.007, "a2c": 0.02, "with its encoder": 0.05}
"""Of learning, as seen in single runs on one or two cores; only for estimates before anything was measured."""


Bounds = tuple[float, float]

POSITIVE: Bounds = (0.0, inf)
AT_LEAST_ONE: Bounds = (1, inf)
SHARE: Bounds = (0.0, 1.0)
SOME: Bounds = (0.0, 0.9)
"""A share that leaves some of the others."""


def _check(settings: Any, **bounds: Bounds) -> None:
    """Refuse settings that are out of bounds, as NaN always is."""
    for name, (least, most) in bounds.items():
        value = getattr(settings, name)
        if value is not None and not least <= value <= most:
            allowed = f"at least {least:g}" if most == inf else f"from {least:g} to {most:g}"
            raise SkillstackError(f'"{name.replace("_", "-")}" must be {allowed}, not {value}.')


@dataclass(frozen=True)
class A2CConfig:
    """Off-policy A2C with replay, as the paper has it (sections 4.1 and 5.2)."""

    learning_rate: float = 1e-4
    """Of RMSProp."""
    batch: int = 36
    """Decisions in a mini-batch, taken as whole episodes."""
    updates: float = 4.0
    """Mini-batch updates after each episode: the mean of a Poisson distribution."""
    gamma: float = 0.95
    """Discount from one decision to the next."""
    gradient_norm: float = 1.0
    """Gradients are clipped to this norm."""
    rotation: int = 500
    """Updates before the next of the three policies takes its turn (M of the paper)."""
    alternation: bool = True
    """Train one of the three policies at a time; otherwise all at once."""
    switch_value: bool = True
    """Learn V_sw(s, e, g) and use it for instructions and actions; otherwise V(s, g)."""
    true_weights: bool = False
    """Importance weights by the probabilities with which decisions were in truth drawn (grammar and epsilon)."""
    most_weight: float | None = None
    """Cap on the importance weights; the paper has none."""
    v_trace: bool = False
    """Correct returns for how the policy has changed since they were played (V-trace, Espeholt et al. 2018), with true
    importance weights of at most 1; otherwise they are taken as they came, as in the paper."""
    entropy: float = 0.0
    """Weight of an entropy bonus of the policy that is trained; 0 is the paper's letter."""
    entropy_by_failure: bool = False
    """Whether that weight counts for each task by the share of its last games (`window`) that were lost: what is
    learned gets sharp, and what was not come upon yet stays open. Otherwise it is the same for all."""
    replay: int = 100_000
    """Episodes that replay holds."""

    def __post_init__(self) -> None:
        _check(
            self, learning_rate=SHARE, batch=AT_LEAST_ONE, updates=(0.0, 1e6), gamma=SHARE, gradient_norm=POSITIVE,
            rotation=AT_LEAST_ONE, most_weight=POSITIVE, entropy=POSITIVE, replay=AT_LEAST_ONE,
        )  # fmt: skip

    @property
    def true_probabilities(self) -> bool:
        """Whether replay keeps the probabilities with which decisions were in truth drawn."""
        return self.true_weights or self.v_trace


@dataclass(frozen=True)
class PPOConfig:
    """PPO on fresh episodes, with self-imitation of what they achieved in hindsight."""

    learning_rate: float = 5e-4
    """Of Adam."""
    epochs: int = 2
    """Passes over the fresh episodes."""
    batch: int = 8
    """Episodes in a mini-batch."""
    gamma: float = 0.95
    """Discount from one step to the next; at levels above, from one decision to the next."""
    trace: float = 0.9
    """Of generalised advantages (lambda): 1 takes the returns as they came, less trusts the values on the way."""
    gradient_norm: float = 0.5
    """Gradients are clipped to this norm."""
    clip: float = 0.2
    """PPO's bound on the change of probabilities."""
    entropy: float = 0.0
    """Weight of an entropy bonus."""
    even: float = 0.01
    """Weight of the cross entropy from the uniform distribution, which keeps every choice possible: what the entropy
    bonus pushes up least is what has become least likely, and this pushes it most."""
    value: float = 0.5
    """Weight of the value losses."""
    refusal: float = 0.0
    """Weight of a loss on instructions that cannot be carried out, uttered or not, of which the world knows: the -0.5
    teaches about the one that was uttered alone. Not for pi_0, which utters nothing."""
    hindsight: float = 1.0
    """Weight of the self-imitation of tasks achieved on the way, the one that was meant included; 0 for none."""
    hindsight_steps: int = 4
    """The last steps before a success are imitated, at random one to so many: what came before was not on the way to it
    for sure."""
    decay: float = 1.0
    """The share of a phase's most episodes over which learning rate and bonuses come down in a line, as policies must
    get sharp."""
    last: float = 0.1
    """What is left of them then."""

    def __post_init__(self) -> None:
        _check(
            self, learning_rate=SHARE, epochs=AT_LEAST_ONE, batch=AT_LEAST_ONE, gamma=SHARE, trace=SHARE,
            gradient_norm=POSITIVE, clip=SHARE, entropy=POSITIVE, even=POSITIVE, value=POSITIVE, refusal=POSITIVE,
            hindsight=POSITIVE, hindsight_steps=AT_LEAST_ONE, decay=(0.001, inf), last=SHARE,
        )  # fmt: skip


@dataclass(frozen=True)
class TerminalConfig:
    """How pi_0 is learned; the paper takes it as given."""

    method: Literal["ppo", "a2c"] = "ppo"
    """PPO with hindsight, which learns it best, or the same off-policy A2C as the levels above."""
    episodes: int = 100_000
    """The most episodes of stage 0."""
    epsilon: float = 0.0
    """How often its actions are made at random while it learns."""
    target: float = 0.99
    """Stage 0 ends when this share of the last episodes of its tasks was achieved. The first time that it is, some of
    it is luck, so it should be a little higher than what is wanted."""
    ppo: PPOConfig = field(default_factory=PPOConfig)
    """PPO of stage 0, until it has learned to see."""
    seeing: int = 16_000
    """Episodes in which it learns to see: after them its encoder is frozen, and the policy practises with it. With as
    many as `episodes` it does not practise. 0 is for --tune alone: it practises with what it sees already."""
    practice: PPOConfig = field(default_factory=lambda: PPOConfig(epochs=4, batch=64, hindsight=0.0))
    """PPO from there on. Without hindsight: it imitates what is done anyway, until three of eight actions are left."""
    critic: bool = False
    """Practise with a critic that sees the world's state and judges every action (asymmetric actor-critic), in worlds
    that show it, as the embedded rooms do. Practice then starts with a new policy on what was learned to see, since the
    one that learned to see uses few of the actions; with --tune it goes on with the one that is there."""
    beyond: float = 0.5
    """With that critic: the weight of what came of the action that was taken beyond what the critic thought of it; 0
    trusts the critic alone."""
    again: float = 0.0
    """The share of its games in practice that it lost before, or won only slowly, and plays once more, from the
    start."""

    def __post_init__(self) -> None:
        _check(
            self,
            episodes=AT_LEAST_ONE,
            epsilon=SHARE,
            target=POSITIVE,
            seeing=POSITIVE,
            beyond=POSITIVE,
            again=SOME,
        )


@dataclass(frozen=True)
class LevelConfig:
    """How the stages above are learned (Algorithm 2)."""

    method: Literal["a2c", "ppo"] = "a2c"
    """The paper's off-policy A2C with alternation, or PPO with hindsight on whole decisions."""
    inherit: bool = False
    """Whether a level starts with the trunk of the level below, which tells the items apart already."""
    silent: bool = False
    """Whether the word of a new skill starts as zeros: while the base tasks are learned alone nothing teaches a level
    what it means, and a random word beside "blue" changes what "blue" is taken for. A stage that brings items alone
    has no such word, and a fork goes on with the words it has."""
    episodes: int = 22_000
    """The most episodes of a stage; the paper's figure 3a shows 22,000."""
    target: float = 0.97
    """A stage ends when this share of the last episodes was achieved, for each of its skills; those played at random
    (`epsilon`) or without grammar (`unguided`) count, too."""
    curriculum: bool = True
    """Learn the base tasks alone first; otherwise all tasks from the start, drawn as in the novel phase."""
    threshold: float = 0.9
    """The base phase ends when the mean reward of the base tasks exceeds this."""
    each: bool = True
    """Whether the base phase waits for each base task's own mean reward; otherwise for the mean of all of them."""
    window: int = 200
    """Mean rewards are over so many of each task's last episodes; the targets, that of stage 0 too, look at the same
    windows."""
    novel: float = 0.0
    """The share of the novel phase's games that are of new tasks. With 0 all tasks are drawn alike, so that the more of
    them are known already, the fewer games are of new ones."""
    epsilon: float = 0.1
    """How often the top level's choices are made at random at the start of each phase."""
    epsilon_episodes: int = 10_000
    """Episodes until epsilon has come down to 0."""
    again: float = 0.0
    """The share of games that were lost before, or won only slowly, and are played once more, from the start."""
    grammar: bool = True
    """Learn the stochastic temporal grammar, and let it guide the choices."""
    unguided: float = 0.0
    """The share of turns in which a level plays without its own grammar while it learns: what a grammar always sets
    right, the policy behind it never learns."""
    smoothing: float = 0.0
    """Weight of the uniform distribution in the grammar, in counts; 0 is the paper's maximum likelihood."""
    doubt: float = 0.0
    """The share that the uniform distribution has in the grammar of the level that learns, however much is counted, at
    the start of each phase; it comes down to 0 together with epsilon. 0 is the paper's letter, by which what succeeded
    first may never be left for what would do better."""

    def __post_init__(self) -> None:
        _check(
            self, episodes=AT_LEAST_ONE, target=POSITIVE, threshold=(-1.0, inf), window=AT_LEAST_ONE, epsilon=SHARE,
            epsilon_episodes=POSITIVE, novel=SOME, again=SOME, unguided=SHARE, smoothing=POSITIVE, doubt=SHARE,
        )  # fmt: skip


@dataclass(frozen=True)
class TrainConfig:
    """Learn a ladder of skills, stage by stage."""

    stages: str = ", ".join(SKILLS)
    """The skills in their order of acquisition."""
    items: tuple[str, ...] = COLOURS
    """The items that every skill is learned for."""
    seed: int = 0
    """Of everything random: weights, games, choices, batches."""
    encoder: Literal["own", "shared", "frozen"] = "own"
    """Each level sees through its own, or all through one that goes on learning, or through that of pi_0, frozen."""
    fusion: Literal["gate", "concatenate"] = "gate"
    """Words gate the convolutions' maps, or stand beside the features, as in the paper, where they are not heeded."""
    lstm: int = 256
    """Hidden units of each level's LSTM; the paper's have 256."""
    tune: bool = False
    """Learn on with the top level of an agent (--from), for example in another world; what lies below is not touched.
    --inherit, --silent, --smoothing, --curriculum, --each and --threshold do not count then."""
    flat: bool = False
    """Learn all tasks with one flat policy, each stage fine-tuned from the one before: the paper's baseline."""
    games: int = 64
    """Games played at once; learning follows when all have ended."""
    threads: int = 0
    """Threads of the networks; 0 for one a core."""
    room_width: int = 6
    """Cells of a room from west to east."""
    room_depth: int = 6
    """Cells of a room from north to south."""
    grow: int = 0
    """Up to so many cells a room may be wider, and as many deeper, from game to game."""
    randomise: bool = False
    """Whether textures, colours, light and camera differ from game to game."""
    max_blocks: int = 6
    """The most blocks in a game."""
    distractors: bool = True
    """Whether there are other blocks than the task needs."""
    leave_out: tuple[str, ...] = ()
    """Tasks that are never trained, for example "get white", to see what is made of words not met together before."""
    image_size: int = 84
    """Height and width of the frames, in pixels."""
    penalty: bool = True
    """Whether uttering what cannot be executed is worth -0.5 and ends the game."""
    limits: Limits = field(default_factory=Limits)
    """Step limits."""
    world_name: Annotated[WorldName, tyro.conf.arg(name="world")] = "rooms"
    """Where the games are played: in the embedded rooms, or in Minecraft."""
    server: str | None = None
    """A Minecraft server to join, HOST:PORT or ACCOUNT@HOST:PORT; by default one of our own is started."""
    terminal: TerminalConfig = field(default_factory=TerminalConfig)
    """How pi_0 is learned."""
    ppo: PPOConfig = field(
        default_factory=lambda: PPOConfig(learning_rate=1e-3, epochs=4, batch=32, even=0.003, decay=0.5)
    )
    """PPO of the stages above, where it is used."""
    level: tyro.conf.OmitArgPrefixes[LevelConfig] = field(default_factory=LevelConfig)
    """How the stages above are learned."""
    a2c: tyro.conf.OmitArgPrefixes[A2CConfig] = field(default_factory=A2CConfig)
    """A2C, where it is used: in the preset "paper", or with --method a2c."""
    checkpoint_minutes: float = 5.0
    """How often the whole state is saved."""
    fork_points: bool = False
    """Keep the whole state of the moment at which a stage's novel phase begins, for --fork to begin other runs from."""
    tensorboard: bool = True
    """Write curves for TensorBoard into the run's folder."""
    wandb: str | None = None
    """Also send them to this Weights & Biases project (an extra: skillstack[wandb])."""

    def __post_init__(self) -> None:
        first, *above = self.make_stages()
        self.world()
        self._check_left_out(first, above)
        _check(
            self, seed=(0, 2**63 - 1), games=AT_LEAST_ONE, threads=POSITIVE, lstm=(1, 16384),
            checkpoint_minutes=POSITIVE,
        )  # fmt: skip
        if self.a2c.v_trace and "a2c" not in (self.level.method, self.terminal.method):
            raise SkillstackError("V-trace is for A2C: say --method a2c or --preset paper, too.")
        if self.terminal.seeing < 1 and not self.tune:
            raise SkillstackError("A new pi_0 must learn to see first: --terminal.seeing 0 is for --tune alone.")
        if self.terminal.ppo.refusal or self.terminal.practice.refusal:
            raise SkillstackError("pi_0 utters nothing that could be refused: --ppo.refusal is for the levels above.")
        if self.tune and self.flat:
            raise SkillstackError("The flat baseline learns what --stages says; --tune is for a hierarchy.")

    def make_stages(self) -> tuple[Stage, ...]:
        stages = make_stages(self.stages, self.items)
        for skill in stages[-1].tasks.skills:
            if skill not in SKILLS:
                raise unknown("skill", skill, SKILLS)
        return stages

    def left_out(self) -> tuple[Instruction, ...]:
        vocabulary = self.make_stages()[-1].tasks.vocabulary
        return tuple(Instruction.parse(task, vocabulary) for task in self.leave_out)

    def _check_left_out(self, first: Stage, above: Sequence[Stage]) -> None:
        left_out = self.left_out()
        for task in left_out:
            if task in first.tasks:
                raise SkillstackError(f'"{task}" cannot be left out: the first stage learns its tasks in hindsight.')
        for stage in above:
            if set(stage.novel) <= set(left_out):
                raise SkillstackError(f"Stage {stage.level} would have nothing to learn: leave out fewer tasks.")

    def world(self) -> RoomsConfig:
        return RoomsConfig(
            room_width=self.room_width,
            room_depth=self.room_depth,
            grow=self.grow,
            randomise=Randomisation() if self.randomise else None,
            max_blocks=self.max_blocks,
            distractors=self.distractors,
            items=self.items,
            image_size=self.image_size,
            penalty=self.penalty,
        )

    def expected_seconds(self, *, terminal: bool) -> float:
        """What the first stage or one above would take if it used all its episodes."""
        if terminal:
            return self.terminal.episodes * SECONDS_PER_EPISODE["terminal"]
        kind = self.level.method if self.encoder == "frozen" else "with its encoder"
        return self.level.episodes * SECONDS_PER_EPISODE[kind]

    @property
    def num_threads(self) -> int:
        return self.threads or os.cpu_count() or 1

    def to_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @staticmethod
    def from_json(data: dict[str, Any]) -> TrainConfig:
        """The settings of a run, back from its config.json."""
        try:
            groups = {
                "limits": Limits(**data["limits"]),
                "terminal": TerminalConfig(
                    **{
                        **data["terminal"],
                        **{name: PPOConfig(**data["terminal"][name]) for name in ("ppo", "practice")},
                    }
                ),
                "ppo": PPOConfig(**data["ppo"]),
                "level": LevelConfig(**data["level"]),
                "a2c": A2CConfig(**data["a2c"]),
                "items": tuple(data["items"]),
                "leave_out": tuple(data.get("leave_out", ())),
            }
            return TrainConfig(**{**data, **groups})
        except (KeyError, TypeError) as error:
            raise SkillstackError(f"The run's settings are not of this version of Skillstack ({error}).") from error


PRESETS = {
    "fast": TrainConfig(
        encoder="frozen",
        image_size=60,
        terminal=TerminalConfig(
            episodes=128_000,
            target=0.999,
            practice=PPOConfig(learning_rate=1e-3, epochs=4, batch=32, gamma=0.9, value=2.0, hindsight=0.0),
            critic=True,
            again=0.4,
        ),
        level=LevelConfig(
            method="ppo",
            inherit=True,
            episodes=32_000,
            target=0.999,
            again=0.3,
            curriculum=False,
            unguided=0.5,
            smoothing=1.0,
        ),
        ppo=PPOConfig(learning_rate=1e-3, epochs=4, batch=32, even=0.003, refusal=1.0, decay=0.95, last=0.01),
    ),
    "paper": TrainConfig(
        encoder="frozen",
        level=LevelConfig(
            silent=True, episodes=32_000, each=False, novel=0.5, epsilon_episodes=5_000, smoothing=1.0, doubt=0.2
        ),
        a2c=A2CConfig(entropy=0.01, entropy_by_failure=True, replay=10_000),
    ),
}
"""Named settings. `fast`: PPO with hindsight at every level, and smaller frames. `paper`: Algorithm 2 to the letter,
where docs/decisions.md does not say otherwise: its grammar is smoothed, and in doubt while a phase is young, as it may
lock a task in; an entropy bonus, for each task as long as it fails, keeps a level from giving up what it has not come
upon yet; and its levels see through the encoder of pi_0, as with encoders of their own pi_3 had stacked with some seeds
only. How long replay is, how epsilon comes down, how a new word starts and how often a new task is played is not said
in the paper, and that a base phase ends by the mean of all base tasks is one way to read it."""
