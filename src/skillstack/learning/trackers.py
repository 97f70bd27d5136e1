"""Metrics for people to look at while a run goes on: TensorBoard by default, Weights & Biases where it is asked for.

`metrics.jsonl` is the run's own record. A tracker gets its numbers, one curve for each, over the episodes of the whole
run.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from skillstack.disk import write_file
from skillstack.errors import SkillstackError
from skillstack.learning.config import TrainConfig
from skillstack.learning.run_folder import TENSORBOARD_FOLDER, WANDB_FILE


class Tracker(Protocol):
    """Something that draws curves."""

    def write(self, numbers: Mapping[str, float], step: int) -> None: ...

    def close(self) -> None: ...


class TensorBoard:
    """Event files in the run's folder: `tensorboard --logdir RUN`."""

    def __init__(self, folder: Path, step: int) -> None:
        """What was written after `step` by a run that was cut off is dropped."""
        from torch.utils.tensorboard import SummaryWriter

        self._folder = folder / TENSORBOARD_FOLDER
        self._writer = SummaryWriter(str(self._folder), purge_step=step + 1)

    def write(self, numbers: Mapping[str, float], step: int) -> None:
        try:
            for name, number in numbers.items():
                self._writer.add_scalar(name, number, step)
        except OSError as error:
            raise SkillstackError(
                f"Curves cannot be written into {self._folder} ({error.strerror or error}); make space there, and "
                "resume the run."
            ) from error

    def close(self) -> None:
        with suppress(OSError):  # what went wrong before is what people should hear of
            self._writer.close()


class WeightsAndBiases:
    """A run of a Weights & Biases project; the same folder is the same run."""

    def __init__(self, project: str, folder: Path, config: TrainConfig) -> None:
        try:
            import wandb
        except ModuleNotFoundError as error:
            raise SkillstackError('Weights & Biases is an extra: pip install "skillstack[wandb]".') from error
        name = folder.resolve().name
        try:
            self._run = wandb.init(
                project=project, name=name, id=_identity(folder, name), resume="allow", config=config.to_json()
            )
        except wandb.Error as error:
            raise SkillstackError(f"Weights & Biases does not take the run: {error}") from error

    def write(self, numbers: Mapping[str, float], step: int) -> None:
        self._run.log(dict(numbers), step=step)

    def close(self) -> None:
        self._run.finish()


def _identity(folder: Path, name: str) -> str:
    """Of a run, kept in its folder: two runs of one name are two."""
    file = folder / WANDB_FILE
    if not file.exists():
        write_file(file, f"{name}-{secrets.token_hex(4)}".encode())
    return file.read_text(encoding="utf-8")


@contextmanager
def open_trackers(config: TrainConfig, folder: Path, step: int) -> Iterator[list[Tracker]]:
    """The trackers that a run asks for, closed in the end."""
    trackers: list[Tracker] = []
    with ExitStack() as stack:
        if config.tensorboard:
            trackers.append(TensorBoard(folder, step))
            stack.callback(trackers[-1].close)
        if config.wandb is not None:
            trackers.append(WeightsAndBiases(config.wandb, folder, config))
            stack.callback(trackers[-1].close)
        yield trackers


def curves(metrics: Mapping[str, Any]) -> dict[str, float]:
    """The numbers of a turn, by level and name: "pi_1/success of get" and the like."""
    found: dict[str, float] = {}
    for name, value in metrics.items():
        if name in ("event", "level", "phase"):
            continue
        parts = {f"success of {skill}": share for skill, share in value.items()} if name == "windows" else {name: value}
        found.update({f"pi_{metrics['level']}/{part}": float(number) for part, number in parts.items()})
    return found
