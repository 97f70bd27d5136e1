"""What every job needs, imported and compiled once by the server that starts their processes."""

from skillstack.evaluation import evaluate
from skillstack.learning.run import begin
from skillstack.rollout.casting import find_candidate
from skillstack.worlds.rooms import RoomsConfig, RoomsWorld

__all__ = ["begin", "evaluate", "find_candidate"]


def _compile() -> None:
    """Load the world's compiled code, which takes most of a second in each process, and much longer the first time."""
    world = RoomsWorld(RoomsConfig(image_size=36))
    tasks = world.description.vocabulary.encode(world.description.vocabulary.tasks[:1])
    world.reset(tasks, [0])
    world.step([0])
    world.observe()
    world.achieved(tasks)
    world.executable(tasks)


_compile()
