from collections.abc import Sequence

import numpy as np
import pytest
from plans import oracle_plan, run, stack_blue, tree

from skillstack.errors import SkillstackError
from skillstack.rollout.plan import PlanTree
from skillstack.rollout.replay import MapWorld, PathWorld, Picture, Recording, replay
from skillstack.worlds.rooms.layout import RoomsConfig, X, Z
from skillstack.worlds.rooms.topdown import draw_map
from skillstack.worlds.rooms.world import RoomsWorld
from skillstack.worlds.world import BoolArray, Frames, IntArray, Seeds, World


class PlainWorld:
    """The two-room world with nothing but what the contract asks of every world."""

    def __init__(self) -> None:
        self._rooms = RoomsWorld()
        self.description, self.rewards, self.num_games = self._rooms.description, self._rooms.rewards, 1

    def reset(self, tasks: IntArray, seeds: Seeds, games: IntArray | None = None) -> None:
        self._rooms.reset(tasks, seeds, games)

    def step(self, actions: IntArray, games: IntArray | None = None) -> None:
        self._rooms.step(actions, games)

    def observe(self, games: IntArray | None = None) -> Frames:
        return self._rooms.observe(games)

    def achieved(self, tasks: IntArray, games: IntArray | None = None) -> BoolArray:
        return self._rooms.achieved(tasks, games)

    def executable(self, tasks: IntArray, games: IntArray | None = None) -> BoolArray:
        return self._rooms.executable(tasks, games)


class MappedWorld(PlainWorld):
    """One that can be drawn from above too."""

    def map_picture(self, game: int, size: int, path: Sequence[tuple[float, float]] = ()) -> Picture:
        self.path = list(path)
        return draw_map(self._rooms.config, self._rooms.state[game], size, path)


class TracedWorld(MappedWorld):
    """One that knows where the agent is too."""

    def map_position(self, game: int) -> tuple[float, float]:
        x, z = self._rooms.state[game]["agent"][[X, Z]].tolist()
        return x, z


@pytest.fixture(scope="module")
def rooms() -> RoomsWorld:
    return RoomsWorld(num_games=3)


@pytest.fixture(scope="module")
def plan(rooms: RoomsWorld) -> PlanTree:
    return oracle_plan(rooms, "stack blue", seed=11)


def test_a_plan_played_again_shows_every_step_from_the_first_to_the_goal(rooms: RoomsWorld, plan: PlanTree) -> None:
    recording = replay(rooms, plan)
    assert recording.frames.shape == (plan.steps + 1, 84, 84, 3)
    assert recording.frames.dtype == np.uint8
    task = rooms.description.vocabulary.encode([plan.root.instruction])
    rooms.reset(task, [plan.seed], [2])
    assert (recording.frames[0] == rooms.observe([2])[0]).all()
    for step, (action, _) in enumerate(plan.actions()):
        rooms.step([rooms.description.actions.index(action)], [2])
        assert (recording.frames[step + 1] == rooms.observe([2])[0]).all()
    assert rooms.achieved(task, [2])[0]


def test_games_under_way_are_left_as_they_were(rooms: RoomsWorld, plan: PlanTree) -> None:
    tasks = rooms.description.vocabulary.encode([plan.root.instruction] * 3)
    rooms.reset(tasks, [5, 6, 7])
    before = rooms.snapshot()
    replay(rooms, plan)
    assert (rooms.snapshot() == before).all()


def test_a_world_without_maps_gives_frames_alone(plan: PlanTree) -> None:
    world = PlainWorld()
    assert isinstance(world, World)
    assert not isinstance(world, MapWorld)
    recording = replay(world, plan)
    assert recording.maps is None
    assert len(recording.frames) == plan.steps + 1


def test_a_world_that_can_be_drawn_from_above_gives_a_map_for_each_frame(plan: PlanTree) -> None:
    world = MappedWorld()
    assert isinstance(world, MapWorld)
    assert not isinstance(world, PathWorld)
    recording = replay(world, plan, map_size=160)
    assert recording.maps is not None
    assert len(recording.maps) == len(recording.frames)
    assert {picture.shape for picture in recording.maps} == {(160, 300, 3)}
    assert world.path == []


def test_a_world_that_knows_where_the_agent_is_gets_the_path_so_far(plan: PlanTree) -> None:
    world = TracedWorld()
    assert isinstance(world, PathWorld)
    replay(world, plan)
    assert len(world.path) == plan.steps
    steps = [abs(x1 - x0) + abs(z1 - z0) for (x0, z0), (x1, z1) in zip(world.path, world.path[1:], strict=False)]
    assert set(steps) == {0, 1}


def test_a_plan_of_another_world_is_refused(rooms: RoomsWorld) -> None:
    with pytest.raises(SkillstackError, match='played in the world "doors"; it cannot be shown in "rooms"'):
        replay(rooms, tree(run(1, "get blue", "pick up"), world="doors"))


def test_an_unknown_action_is_refused_by_name(rooms: RoomsWorld) -> None:
    with pytest.raises(SkillstackError, match=r'Unknown action "turn lift"\. Did you mean "turn left"'):
        replay(rooms, tree(run(1, "get blue", "turn lift", outcome="limit")))


def test_other_settings_are_noticed_when_a_success_is_none(plan: PlanTree) -> None:
    with pytest.raises(SkillstackError, match="settings must be the ones that it was recorded with"):
        replay(RoomsWorld(RoomsConfig(room_width=9)), plan)


def test_a_recording_of_another_length_than_the_plan_is_refused() -> None:
    with pytest.raises(SkillstackError, match="3 frames, but a plan of 7 steps needs 8"):
        Recording(np.zeros((3, 8, 8, 3), dtype=np.uint8)).check(stack_blue())
