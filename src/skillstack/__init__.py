"""Agents that learn skills in stages, call earlier skills by their names, and can always say their plan."""

from gymnasium.envs.registration import register as _register

from skillstack.errors import SkillstackError
from skillstack.instructions import Instruction, Stage, TaskSet, Vocabulary, make_stages

__version__ = "0.1.0"

__all__ = ["Instruction", "SkillstackError", "Stage", "TaskSet", "Vocabulary", "make_stages"]

_register(
    id="skillstack/Rooms-v0",
    entry_point="skillstack.worlds.rooms.env:RoomsEnv",
    vector_entry_point="skillstack.worlds.rooms.env:RoomsVectorEnv",
)
