"""What is kept of finished jobs beside the results, small enough to be committed.

Runs are large and stay where they were made. A record has what figures and tables are made of, so that a job is run
once, on whatever machine, and results grow from session to session. The agents that all other runs of a seed start
from, pi_0, are kept whole: then runs made on different machines still stand on the same one.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from skillstack.disk import make_folder, write_file
from skillstack.errors import SkillstackError
from skillstack.experiments.jobs import FINISHED_FILE, Job, Training
from skillstack.learning.run_folder import AGENT_FOLDER

FORMAT = "skillstack-record"
FORMAT_VERSION = 1

Record = dict[str, Any]


class Records:
    """The records of some jobs: NAME.json for each that is finished, and a folder NAME with its agent if it is kept."""

    def __init__(self, folder: Path, jobs: Sequence[Job]) -> None:
        self._folder = folder
        self._jobs = {job.name: job for job in jobs}

    def __contains__(self, job: Job) -> bool:
        return self._file(job).exists()

    def read(self, job: Job) -> Record:
        path = self._file(job)
        try:
            record: Record = json.loads(path.read_bytes())
            known = record["format"] == FORMAT and record["format_version"] == FORMAT_VERSION
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise SkillstackError(f"{path} cannot be read ({error}); restore it, or remove it.") from error
        if not known:
            raise SkillstackError(f"{path} is not a record of this version of Skillstack; move it away.")
        return record

    def check(self) -> None:
        """Refuse records of jobs that were other ones, or that stood on other ones."""
        for job in self._jobs.values():
            if job in self and not self._same(job, self.read(job)["made"]):
                raise SkillstackError(
                    f"{self._file(job)} was made with other settings; move it away, or choose another place with --out."
                )

    def left(self, runs: Path) -> list[Job]:
        """The jobs to run: those without a record, and what they start from where that is not at hand."""
        needed: set[str] = set()
        for job in reversed(self._jobs.values()):  # a job comes after those that it needs
            if not job.finished(runs) and (job not in self or job.name in needed):
                needed |= {job.name, *job.needs}
        return [job for job in self._jobs.values() if job.name in needed]

    def restore(self, runs: Path) -> None:
        """Put the agents that are kept where runs look for them, unless they are there."""
        for job in self._jobs.values():
            if isinstance(job, Training) and job in self and not job.begun(runs) and self._agent(job).is_dir():
                make_folder(runs / job.name)
                shutil.copytree(self._agent(job), runs / job.name / AGENT_FOLDER, dirs_exist_ok=True)
                write_file(runs / job.name / FINISHED_FILE, _text(self.read(job)))

    def keep(self, runs: Path) -> None:
        """Make a record of each job that is finished and has none."""
        for job in self._jobs.values():
            if job in self or not job.finished(runs):
                continue
            make_folder(self._file(job).parent)
            if isinstance(job, Training) and job.carries_others:
                shutil.copytree(runs / job.name / AGENT_FOLDER, self._agent(job), dirs_exist_ok=True)
            head = {"format": FORMAT, "format_version": FORMAT_VERSION, "made": self._made(job)}
            write_file(self._file(job), _text({**head, **job.record(runs)}))

    def _made(self, job: Job) -> Record:
        """What was asked of a job, and of those that it stands on."""
        return {"asked": job.asked, "on": {need: self._made(self._jobs[need]) for need in job.needs}}

    def _same(self, job: Job, made: Record) -> bool:
        """Whether that is what would be asked now."""
        return job.is_asked(made["asked"]) and all(
            need in made["on"] and self._same(self._jobs[need], made["on"][need]) for need in job.needs
        )

    def _file(self, job: Job) -> Path:
        return self._folder / f"{job.name}.json"

    def _agent(self, job: Job) -> Path:
        return self._folder / job.name


def _text(data: Record) -> bytes:
    """A line for each part: lists of numbers are long."""
    parts = [f"{json.dumps(name)}: {json.dumps(part)}" for name, part in data.items()]
    return ("{\n" + ",\n".join(parts) + "\n}\n").encode()
