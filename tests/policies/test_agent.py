from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
from torch import Tensor, nn

from skillstack import __version__
from skillstack.errors import SkillstackError
from skillstack.instructions import DEFAULT_VOCABULARY, Instruction, Stage, TaskSet, Vocabulary, make_stages
from skillstack.policies.agent import Agent
from skillstack.policies.encoder import LstmState
from skillstack.policies.flat import FlatPolicy
from skillstack.policies.grammar import Grammar
from skillstack.policies.hierarchical import HierarchicalPolicy
from skillstack.worlds.world import WorldDescription

torch.set_num_threads(1)

ACTIONS = ("forward", "backward", "left", "right", "turn left", "turn right", "pick up", "put down")
ROOMS = WorldDescription("rooms", DEFAULT_VOCABULARY, ACTIONS, (84, 84, 3))
SMALL = WorldDescription("small", Vocabulary(("find", "get", "put"), ("red", "blue")), ("go", "take"), (36, 40, 3))

both_encoder_settings = pytest.mark.parametrize("shared_encoder", [False, True], ids=["own", "shared"])


def small_agent(order: str = "find get", *, shared_encoder: bool = False, seed: int = 1) -> Agent:
    """An agent with something in its grammars, so that losing it would be seen."""
    agent = Agent.create(SMALL, make_stages(order, SMALL.vocabulary.items), shared_encoder=shared_encoder, seed=seed)
    for grammar in agent.grammars:
        if grammar is not None:
            grammar.update((1, 0), [0, grammar.act_state])
    return agent


def weights(agent: Agent) -> dict[str, Tensor]:
    modules = nn.ModuleDict({"levels": nn.ModuleList(agent.levels), "encoders": nn.ModuleList(agent.encoders)})
    return modules.state_dict()


def same_weights(one: Agent, other: Agent) -> bool:
    mine, theirs = weights(one), weights(other)
    return mine.keys() == theirs.keys() and all(torch.equal(mine[name], theirs[name]) for name in mine)


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


# Making


@both_encoder_settings
def test_the_papers_agent_has_the_papers_parameters(shared_encoder: bool) -> None:
    agent = Agent.create(ROOMS, make_stages(), shared_encoder=shared_encoder)
    policies = 660_617 + 663_572 + 663_957 + 664_342  # pi_0 to pi_3, worked out in the tests of the policies
    assert agent.num_levels == 4
    assert sum(tensor.numel() for tensor in weights(agent).values()) == policies + 879_008 * (
        1 if shared_encoder else 4
    )


def test_the_lowest_level_is_flat_and_the_others_are_hierarchical_with_a_grammar() -> None:
    agent = Agent.create(ROOMS, make_stages(), smoothing=0.5)
    assert [type(level) for level in agent.levels] == [FlatPolicy] + 3 * [HierarchicalPolicy]
    assert agent.grammars[0] is None
    assert agent.grammars[1:] == [Grammar(stage.tasks, stage.base, 0.5) for stage in agent.stages[1:]]


def test_words_are_numbered_in_the_order_of_acquisition_and_lower_levels_know_the_first_of_them() -> None:
    agent = Agent.create(ROOMS, make_stages("put find get", ["white", "red"]))
    assert agent.vocabulary == Vocabulary(("put", "find", "get"), ("white", "red"))
    for k in range(1, 3):
        level = agent.levels[k]
        assert isinstance(level, HierarchicalPolicy)
        assert level.trunk.instruction.skills.num_embeddings == k + 1
        assert level.skill_head.out_features == k
        assert agent.stages[k].base.vocabulary.skills == agent.vocabulary.skills[:k]


def test_with_a_shared_encoder_one_pass_over_the_frames_serves_every_level() -> None:
    agent = small_agent("find get put", shared_encoder=True)
    passes: list[int] = []
    agent.encoders[0].register_forward_hook(lambda *_: passes.append(1))
    assert {agent.encoder_of(level) for level in range(3)} == {agent.encoders[0]}

    features = agent.encoder_of(2)(torch.zeros(2, 36, 40, 3, dtype=torch.uint8))
    for level in agent.levels:
        level.step(features, torch.zeros(2, 2, dtype=torch.int64), LstmState.zeros(2))
    assert len(passes) == 1


def test_with_encoders_of_their_own_every_level_has_another() -> None:
    agent = small_agent("find get put")
    assert len({agent.encoder_of(level) for level in range(3)}) == 3
    assert not torch.equal(agent.encoders[0].fully_connected.weight, agent.encoders[1].fully_connected.weight)


def test_the_weights_do_not_depend_on_the_number_of_threads() -> None:
    stages = make_stages("find", ROOMS.vocabulary.items)
    alone = Agent.create(ROOMS, stages)
    torch.set_num_threads(2)
    try:
        together = Agent.create(ROOMS, stages)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)
    assert same_weights(alone, together)


def test_the_seed_decides_the_weights() -> None:
    assert same_weights(small_agent(seed=7), small_agent(seed=7))
    assert not same_weights(small_agent(seed=7), small_agent(seed=8))
    with pytest.raises(SkillstackError, match="A seed is a whole number from 0 upwards, not -1"):
        small_agent(seed=-1)


def test_a_levels_first_weights_do_not_depend_on_the_levels_above_or_on_sharing() -> None:
    tall, short = small_agent("find get put"), small_agent("find get", shared_encoder=True)
    expected = weights(tall)
    for name, tensor in weights(short).items():
        assert torch.equal(tensor, expected[name])


def test_making_and_loading_an_agent_leave_the_global_random_numbers_alone(tmp_path: Path) -> None:
    torch.manual_seed(0)
    before = torch.get_rng_state()
    small_agent().save(tmp_path / "agent")
    Agent.load(tmp_path / "agent")
    assert torch.equal(torch.get_rng_state(), before)


def test_a_truncated_agent_is_made_of_the_same_modules() -> None:
    agent = small_agent("find get put")
    lower = agent.truncated(1)
    assert lower.num_levels == 2
    assert lower.vocabulary.skills == ("find", "get")
    assert all(mine is theirs for mine, theirs in zip(lower.levels, agent.levels, strict=False))
    assert lower.encoder_of(1) is agent.encoder_of(1)
    assert lower.grammars[1] is agent.grammars[1]
    shared = small_agent("find get put", shared_encoder=True)
    assert shared.truncated(0).encoder_of(0) is shared.encoder_of(2)


@pytest.mark.parametrize("level", [-1, 2])
def test_truncating_to_a_level_that_is_not_there_is_refused(level: int) -> None:
    with pytest.raises(SkillstackError, match=f"has the levels 0 to 1, and no level {level}"):
        small_agent().truncated(level)


@both_encoder_settings
def test_an_extended_agent_has_one_more_level_over_the_same_modules(shared_encoder: bool) -> None:
    agent = small_agent(shared_encoder=shared_encoder)
    taller = agent.extended(["put"], seed=1)
    assert agent.num_levels == 2
    assert taller.num_levels == 3
    assert all(mine is theirs for mine, theirs in zip(agent.levels, taller.levels, strict=False))
    assert taller.grammars[:2] == agent.grammars
    assert len(taller.encoders) == (1 if shared_encoder else 3)
    assert same_weights(taller, small_agent("find get put", shared_encoder=shared_encoder, seed=1))


def test_an_extension_by_items_alone_teaches_the_known_skills_for_them() -> None:
    agent = Agent.create(SMALL, make_stages("find get", ["red"])).extended(items=["blue"])
    assert agent.vocabulary.items == ("red", "blue")
    top = agent.levels[2]
    assert isinstance(top, HierarchicalPolicy)
    assert (top.skill_head.out_features, top.item_head.out_features) == (2, 1)
    assert top.trunk.instruction.items.num_embeddings == 2


def test_words_that_the_world_does_not_know_are_refused() -> None:
    with pytest.raises(SkillstackError, match='Unknown item "green"'):
        Agent.create(SMALL, make_stages("find", ["green"]))
    with pytest.raises(SkillstackError, match='Unknown skill "stack"'):
        small_agent().extended(["stack"])


def test_stages_that_do_not_build_on_one_another_are_refused() -> None:
    first, second = make_stages("find get", ["red"])
    other = Stage(1, TaskSet((Instruction("put", "red"),)), TaskSet((Instruction("get", "red"),)))
    for stages in ((), (second,), (first, first), (second, first), (first, other), (first, replace(second, level=2))):
        with pytest.raises(SkillstackError, match=r"[Ss]tage"):
            Agent.create(SMALL, stages)


def test_a_world_without_actions_is_refused() -> None:
    with pytest.raises(SkillstackError, match='The world "small" has no actions'):
        Agent.create(replace(SMALL, actions=()), make_stages("find", ["red"]))


# Saving and loading


def test_a_gated_agent_comes_back_gated(tmp_path: Path) -> None:
    agent = Agent.create(SMALL, make_stages("find get", SMALL.vocabulary.items), gated=True, seed=2)
    agent.save(tmp_path / "agent")
    loaded = Agent.load(tmp_path / "agent")
    assert loaded.gated
    assert same_weights(agent, loaded)
    assert not Agent.create(SMALL, make_stages("find", SMALL.vocabulary.items)).gated


@both_encoder_settings
def test_a_loaded_agent_is_the_saved_one(tmp_path: Path, shared_encoder: bool) -> None:
    agent = small_agent("get find put", shared_encoder=shared_encoder)
    agent.save(tmp_path / "deep" / "agent")
    loaded = Agent.load(str(tmp_path / "deep" / "agent"))
    assert (loaded.world, loaded.stages, loaded.vocabulary) == (agent.world, agent.stages, agent.vocabulary)
    assert loaded.shared_encoder == shared_encoder
    assert same_weights(loaded, agent)
    assert loaded.grammars == agent.grammars
    assert [type(level) for level in loaded.levels] == [type(level) for level in agent.levels]
    assert all(loaded.encoder_of(k) is loaded.encoder_of(0) for k in range(3)) == shared_encoder


def test_a_loaded_agent_decides_as_the_saved_one_and_can_go_on_learning(tmp_path: Path) -> None:
    agent = small_agent()
    agent.save(tmp_path / "agent")
    loaded = Agent.load(tmp_path / "agent")
    frames = torch.randint(0, 256, (3, 36, 40, 3), dtype=torch.uint8)
    tasks = torch.tensor([[0, 0], [0, 1], [0, 1]])
    for k in range(2):
        expected = agent.levels[k].unroll(agent.encoder_of(k)(frames)[None], tasks)
        output = loaded.levels[k].unroll(loaded.encoder_of(k)(frames)[None], tasks)
        assert all(map(torch.equal, expected, output))
        torch.autograd.backward([head.sum() for head in output])
        parameters = [*loaded.levels[k].parameters(), *loaded.encoder_of(k).parameters()]
        assert all(parameter.grad is not None for parameter in parameters)


def test_the_folder_holds_what_the_design_says(tmp_path: Path) -> None:
    small_agent("find get put").save(tmp_path / "own")
    small_agent("find get", shared_encoder=True).save(tmp_path / "shared")
    levels = {f"level_{k}.safetensors" for k in range(3)}
    assert contents(tmp_path / "own").keys() == levels | {"agent.json", "grammar_1.json", "grammar_2.json"}
    assert contents(tmp_path / "shared").keys() == {
        "agent.json",
        "encoder.safetensors",
        "grammar_1.json",
        "level_0.safetensors",
        "level_1.safetensors",
    }
    manifest = json.loads((tmp_path / "shared" / "agent.json").read_text())
    assert (manifest["format"], manifest["format_version"]) == ("skillstack-agent", 1)
    assert manifest["skillstack_version"] == __version__
    assert manifest["stages"] == [["find red", "find blue"], ["get red", "get blue"]]
    assert manifest["files"].keys() == contents(tmp_path / "shared").keys() - {"agent.json"}


def test_a_file_that_others_may_read_is_saved_as_the_user_saves_files(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    small_agent("find").save(tmp_path / "agent")
    assert (tmp_path / "agent").stat().st_mode == (tmp_path / "folder").stat().st_mode


@both_encoder_settings
def test_one_more_level_leaves_the_lower_files_byte_for_byte_the_same(tmp_path: Path, shared_encoder: bool) -> None:
    agent = small_agent(shared_encoder=shared_encoder)
    agent.save(tmp_path / "short")
    agent.extended(["put"]).save(tmp_path / "tall")
    Agent.load(tmp_path / "short").extended(["put"]).save(tmp_path / "tall_after_loading")
    short = contents(tmp_path / "short")
    del short["agent.json"]
    for name in ("tall", "tall_after_loading"):
        assert short.items() < contents(tmp_path / name).items()


def test_half_size_weights_come_back_as_float32(tmp_path: Path) -> None:
    agent = small_agent()
    agent.save(tmp_path / "whole")
    agent.save(tmp_path / "half", half=True)
    sizes = [len(contents(tmp_path / name)["level_0.safetensors"]) for name in ("whole", "half")]
    assert sizes[1] / sizes[0] == pytest.approx(0.5, abs=0.01)
    for name, tensor in weights(Agent.load(tmp_path / "half")).items():
        assert tensor.dtype == torch.float32
        assert torch.equal(tensor, weights(agent)[name].half().float())


@pytest.mark.parametrize(("value", "half"), [(float("nan"), False), (float("inf"), False), (1e5, True)])
def test_weights_that_are_not_finite_are_not_saved(tmp_path: Path, value: float, half: bool) -> None:
    agent = small_agent()
    agent.save(tmp_path / "agent")
    before = contents(tmp_path / "agent")
    with torch.no_grad():
        agent.levels[1].value_head.weight[0, 3] = value
    with pytest.raises(SkillstackError, match=r"policy\.value_head\.weight of level_1\.safetensors is not finite"):
        agent.save(tmp_path / "agent", half=half)
    assert contents(tmp_path / "agent") == before


def test_saving_over_an_agent_replaces_it_and_leaves_nothing_aside(tmp_path: Path) -> None:
    small_agent("find get put").save(tmp_path / "agent")
    (tmp_path / "agent" / "notes.txt").write_text("mine")
    agent = small_agent("find", seed=2)
    agent.save(tmp_path / "agent")
    assert same_weights(Agent.load(tmp_path / "agent"), agent)
    assert contents(tmp_path / "agent").keys() == {"agent.json", "level_0.safetensors", "notes.txt"}
    assert [entry.name for entry in tmp_path.iterdir()] == ["agent"]


def test_saving_through_a_link_replaces_what_it_points_to(tmp_path: Path) -> None:
    small_agent("find").save(tmp_path / "agent")
    (tmp_path / "newest").symlink_to("agent")
    agent = small_agent("find get")
    agent.save(tmp_path / "newest")
    assert (tmp_path / "newest").is_symlink()
    assert same_weights(Agent.load(tmp_path / "agent"), agent)


def test_an_empty_folder_may_become_an_agent(tmp_path: Path) -> None:
    (tmp_path / "agent").mkdir()
    small_agent("find").save(tmp_path / "agent")
    Agent.load(tmp_path / "agent")


def test_what_is_not_an_agent_is_never_overwritten(tmp_path: Path) -> None:
    folder, impostor, file = tmp_path / "folder", tmp_path / "impostor", tmp_path / "file"
    folder.mkdir()
    impostor.mkdir()
    (folder / "thesis.tex").write_text("all my work")
    (impostor / "agent.json").write_text("[1, 2")
    file.write_text("a file")
    for path in (folder, impostor, file):
        with pytest.raises(SkillstackError, match="is there already and is not an agent; save to a new folder"):
            small_agent("find").save(path)
    assert (folder / "thesis.tex").read_text() == "all my work"
    assert contents(impostor) == {"agent.json": b"[1, 2"}
    assert file.read_text() == "a file"
    with pytest.raises(SkillstackError, match=r"cannot be saved to .*; choose a folder that can be written"):
        small_agent("find").save(file / "agent")


@pytest.mark.parametrize("call", range(8))
def test_a_disk_that_fills_up_while_saving_leaves_the_old_agent_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: int
) -> None:
    old = small_agent()
    old.save(tmp_path / "agent")
    steps = iter(range(100))

    def failing(function: Callable[..., Any]) -> Callable[..., Any]:
        def maybe_fail(*args: Any) -> Any:
            if next(steps) == call:
                raise OSError(28, "No space left on device")
            return function(*args)

        return maybe_fail

    # Saving flushes four files and their folder, moves the old folder away and the new one in.
    monkeypatch.setattr(os, "fsync", failing(os.fsync))
    monkeypatch.setattr(Path, "rename", failing(Path.rename))
    new = small_agent(seed=2)
    if call == 7:  # the parent's flush, when the new agent is in place
        with pytest.raises(SkillstackError, match="No space left on device"):
            new.save(tmp_path / "agent")
        assert same_weights(Agent.load(tmp_path / "agent"), new)
        return
    with pytest.raises(SkillstackError, match="No space left on device"):
        new.save(tmp_path / "agent")
    assert same_weights(Agent.load(tmp_path / "agent"), old)
    assert [entry.name for entry in tmp_path.iterdir()] == ["agent"]


# Folders that cannot be loaded


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved")
    small_agent().save(folder / "own")
    small_agent(shared_encoder=True).save(folder / "shared")
    return folder


@pytest.fixture
def folder(saved: Path, tmp_path: Path) -> Path:
    """A fresh copy of an agent with own encoders, to be damaged."""
    return Path(shutil.copytree(saved / "own", tmp_path / "agent"))


def refusal(folder: Path) -> str:
    """The one sentence that loading this folder ends with."""
    with pytest.raises(SkillstackError) as caught:
        Agent.load(folder)
    message = str(caught.value)
    assert message.endswith(".")
    assert ". " not in message
    assert "\n" not in message
    assert "; " in message  # what is wrong; what would be right
    assert str(folder) in message
    return message


def sign(manifest: dict[str, Any]) -> bytes:
    """The manifest as bytes, with the checksum that it then needs."""
    rest = {key: value for key, value in manifest.items() if key != "checksum"}
    checksum = hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()
    return json.dumps({**rest, "checksum": checksum}).encode()


def forge(folder: Path, name: str, data: bytes) -> None:
    """Put a file in place of another so that every hash is right."""
    (folder / name).write_bytes(data)
    manifest = json.loads((folder / "agent.json").read_bytes())
    manifest["files"][name] = hashlib.sha256(data).hexdigest()
    (folder / "agent.json").write_bytes(sign(manifest))


def test_a_path_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert "does not exist; give the folder of a saved agent" in refusal(tmp_path / "nowhere")


def test_a_file_in_place_of_a_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("hello")
    assert "is a file; give the folder" in refusal(tmp_path / "file")


def test_a_foreign_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"")
    assert "has no agent.json" in refusal(tmp_path)


@pytest.mark.parametrize("text", ["", "{", "\x00\x01", "[" * 100_000, "\udcff"])
def test_a_manifest_that_is_not_json_is_damage(folder: Path, text: str) -> None:
    (folder / "agent.json").write_bytes(text.encode(errors="surrogateescape"))
    assert "is damaged, as agent.json is not JSON" in refusal(folder)


@pytest.mark.parametrize("text", ["{}", "[]", "null", '"skillstack-agent"', '{"format": "other"}', '{"format": [1]}'])
def test_a_manifest_of_something_else_is_foreign(folder: Path, text: str) -> None:
    (folder / "agent.json").write_text(text)
    assert 'is not an agent, as its agent.json does not say "format": "skillstack-agent"' in refusal(folder)


def test_a_newer_format_asks_for_a_newer_skillstack(folder: Path) -> None:
    (folder / "agent.json").write_text('{"format": "skillstack-agent", "format_version": 2, "unheard": "of"}')
    message = refusal(folder)
    assert f"has format version 2, and Skillstack {__version__} reads up to 1; load it with a newer" in message


def test_a_manifest_that_is_a_folder_cannot_be_read(folder: Path) -> None:
    (folder / "agent.json").unlink()
    (folder / "agent.json").mkdir()
    assert "agent.json cannot be read (Is a directory)" in refusal(folder)


FIELDS = ("format_version", "world", "stages", "shared_encoder", "weights", "files")
WORLD_FIELDS = ("name", "skills", "items", "actions", "image_shape")


@pytest.mark.parametrize("value", [None, [[1]], {"a": 1}, 0.5, "1", True, -1], ids=repr)
@pytest.mark.parametrize("field", FIELDS + WORLD_FIELDS)
def test_a_field_of_another_kind_is_named(folder: Path, field: str, value: object) -> None:
    manifest = json.loads((folder / "agent.json").read_text())
    fields = manifest if field in FIELDS else manifest["world"]
    if (field, value) == ("name", "1") or type(fields[field]) is type(value) in (bool, dict):
        value = 3
    fields[field] = value
    (folder / "agent.json").write_bytes(sign(manifest))
    assert f'for "{field}"' in refusal(folder)


@pytest.mark.parametrize("field", FIELDS + WORLD_FIELDS)
def test_a_missing_field_is_named(folder: Path, field: str) -> None:
    manifest = json.loads((folder / "agent.json").read_text())
    del (manifest if field in FIELDS else manifest["world"])[field]
    (folder / "agent.json").write_bytes(sign(manifest))
    assert f'for "{field}"' in refusal(folder)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"stages": []}, "at least one stage"),
        ({"stages": [["find red"], []]}, "add a task"),
        ({"stages": [["find red"], ["find red"]]}, "add a task"),
        ({"stages": [["find red", "find red"]]}, "each task once"),
        ({"stages": [["find green"]]}, 'Unknown item "green"'),
        ({"stages": [["find"]]}, 'lists of tasks for "stages"'),
        ({"world": {"skills": ["find", "find"]}}, '"find" is listed twice'),
        ({"world": {"items": []}}, "at least one item"),
        ({"world": {"actions": []}}, "has no actions"),
        ({"world": {"image_shape": [35, 84, 3]}}, "the smallest are 36 x 36"),
        ({"world": {"image_shape": [10**30, 84, 3]}}, 'for "image_shape"'),
        ({"world": {"image_shape": [84, 84]}}, 'for "image_shape"'),
    ],
    ids=repr,
)
def test_a_manifest_of_an_impossible_agent_says_why(folder: Path, change: dict[str, Any], reason: str) -> None:
    manifest = json.loads((folder / "agent.json").read_text())
    change = dict(change)
    manifest["world"] |= change.pop("world", {})
    (folder / "agent.json").write_bytes(sign(manifest | change))
    assert reason in refusal(folder)


def test_any_changed_byte_of_the_manifest_is_noticed(folder: Path) -> None:
    path = folder / "agent.json"
    data = path.read_bytes()
    for place in range(len(data) - 1):  # the last byte is the end of the line
        path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        refusal(folder)
    for length in range(0, len(data) - 1, 7):
        path.write_bytes(data[:length])
        refusal(folder)


OTHER_FILES = [
    ("own", "level_0.safetensors"),
    ("own", "level_1.safetensors"),
    ("own", "grammar_1.json"),
    ("shared", "encoder.safetensors"),
    ("shared", "level_1.safetensors"),
]


@pytest.mark.parametrize(("kind", "name"), OTHER_FILES)
def test_a_damaged_file_is_named(saved: Path, tmp_path: Path, kind: str, name: str) -> None:
    folder = Path(shutil.copytree(saved / kind, tmp_path / "agent"))
    data = (folder / name).read_bytes()
    truncated = [data[:length] for length in (0, 1, 8, len(data) // 2, len(data) - 1)]
    flipped = [
        data[:place] + bytes([data[place] ^ 0x40]) + data[place + 1 :]
        for place in (0, 9, len(data) // 2, len(data) - 1)
    ]
    for damaged in (*truncated, *flipped, data + b"\n"):
        (folder / name).write_bytes(damaged)
        assert f"is damaged, as {name} does not have the SHA-256" in refusal(folder)


@pytest.mark.parametrize(("kind", "name"), OTHER_FILES)
def test_a_missing_file_is_named(saved: Path, tmp_path: Path, kind: str, name: str) -> None:
    folder = Path(shutil.copytree(saved / kind, tmp_path / "agent"))
    (folder / name).unlink()
    assert f"{name} is missing" in refusal(folder)


def test_names_in_the_manifest_lead_to_no_file_outside_the_folder(folder: Path) -> None:
    manifest = json.loads((folder / "agent.json").read_text())
    manifest["files"] = {f"../{name}": value for name, value in manifest["files"].items()}
    (folder / "agent.json").write_bytes(sign(manifest))
    assert "level_0.safetensors does not have the SHA-256" in refusal(folder)


@pytest.mark.parametrize("data", [b"", b"not tensors at all", b"\x80\x04\x95pickle"])
def test_a_weight_file_of_another_kind_is_named(folder: Path, data: bytes) -> None:
    forge(folder, "level_0.safetensors", data)
    assert "level_0.safetensors is not a safetensors file" in refusal(folder)


def forge_tensors(folder: Path, change: Callable[[dict[str, Tensor]], object]) -> None:
    tensors = safetensors.torch.load((folder / "level_1.safetensors").read_bytes())
    change(tensors)
    forge(folder, "level_1.safetensors", safetensors.torch.save(tensors))


NAME = "policy.value_head.bias"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda tensors: tensors.pop(NAME), f"it lacks a tensor {NAME}"),
        (lambda tensors: tensors.update(extra=torch.zeros(1)), "it has a tensor extra"),
        (lambda tensors: tensors.update({NAME: torch.zeros(2)}), rf"it has {NAME} of shape (2,), and (1,) would fit"),
        (lambda tensors: tensors.update({NAME: torch.zeros(1).double()}), "as torch.float64, and torch.float32"),
        (lambda tensors: tensors.update({NAME: torch.zeros(1).half()}), "as torch.float16, and torch.float32"),
        (lambda tensors: tensors.update({NAME: torch.zeros(1).long()}), "as torch.int64, and torch.float32"),
        (lambda tensors: tensors.update({NAME: torch.tensor([np.nan])}), f"has NaN or infinity in {NAME}"),
        (lambda tensors: tensors.update({NAME: torch.tensor([np.inf])}), f"has NaN or infinity in {NAME}"),
    ],
)
def test_weights_that_do_not_fit_are_named(
    folder: Path, change: Callable[[dict[str, Tensor]], object], reason: str
) -> None:
    forge_tensors(folder, change)
    message = refusal(folder)
    assert "level_1.safetensors" in message
    assert reason in message


def test_the_level_of_another_agent_is_a_mismatch(folder: Path, tmp_path: Path) -> None:
    Agent.create(replace(SMALL, actions=("go", "take", "jump")), make_stages("find", ["red", "blue"])).save(
        tmp_path / "other"
    )
    forge(folder, "level_0.safetensors", (tmp_path / "other" / "level_0.safetensors").read_bytes())
    message = refusal(folder)
    assert "level_0.safetensors does not belong to the agent" in message
    assert "policy.action_head" in message


def test_a_grammar_that_cannot_be_read_is_named(folder: Path) -> None:
    forge(folder, "grammar_1.json", b"{")
    assert "grammar_1.json is not JSON" in refusal(folder)
    forge(folder, "grammar_1.json", b"[]")
    assert "grammar_1.json is not a grammar" in refusal(folder)


def test_the_grammar_of_another_stage_is_a_mismatch(folder: Path) -> None:
    _, other = make_stages("find put", SMALL.vocabulary.items)
    forge(folder, "grammar_1.json", json.dumps(Grammar(other.tasks, other.base, 0.0).to_json()).encode())
    assert "grammar_1.json does not belong to the agent" in refusal(folder)
