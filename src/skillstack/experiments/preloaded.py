"""What every job imports, imported once by the server that starts their processes."""

from skillstack.evaluation import evaluate
from skillstack.learning.run import begin
from skillstack.rollout.casting import find_candidate

__all__ = ["begin", "evaluate", "find_candidate"]
