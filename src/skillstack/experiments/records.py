"""What is kept of finished jobs beside the results, small enough to be committed.

Runs are large and stay where they were made. A record has what figures and tables are made of, so that a job is run
once, on whatever machine, and results grow from session to session. The agents that other runs of a seed start from,
pi_0 and the full model's levels below the top, are kept, too: then runs made on different machines still stand on the
same ones, to the bit. Of such a level only the files are kept that the agent which it stands on does not have.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from skillstack.disk import make_folder, write_file, write_folder
from skillstack.errors import SkillstackError
from skillstack.experiments.jobs import FINISHED_FILE, Job, Looking, Training
from skillstack.learning.run_folder import AGENT_FOLDER

FORMAT = "skillstack-record"
FORMAT_VERSION = 1

Record = dict[str, Any]
Files = dict[str, bytes]


class Records:
    """The records of some jobs: NAME.json for each that is finished, and a folder NAME with its agent if it is kept."""

    def __init__(self, folder: Path, jobs: Sequence[Job], runs: Path) -> None:
        self._folder, self._runs = folder, runs
        self._jobs = {job.name: job for job in jobs}

    def __contains__(self, job: Job) -> bool:
        """Whether there is a record of the job with all that it has now; of a measurement, of the same agent."""
        if not self._file(job).exists():
            return False
        if isinstance(job, Training) and not job.is_whole(self.read(job)):
            return False
        return not isinstance(job, Looking) or (self._is_same(job) and self._of(job) == self.read(job)["of"])

    def _of(self, job: Looking) -> str | None:
        """The agent that a measurement is of, by the record of its training."""
        trained = self._jobs[job.agent]
        return self.read(trained)["agent"] if trained in self else None

    def read(self, job: Job) -> Record:
        path = self._file(job)
        try:
            record: Record = json.loads(path.read_bytes())
            known = record["format"] == FORMAT and record["format_version"] == FORMAT_VERSION
            parts = {"made", *job.recorded} <= set(record)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise SkillstackError(f"{path} cannot be read ({error}); restore it, or remove it.") from error
        if not known or not parts:
            raise SkillstackError(f"{path} is not a record of this version of Skillstack; move it away.")
        return record

    def check(self) -> None:
        """Refuse records that were made otherwise, and agents that are not those of the records."""
        for job in self._jobs.values():
            if not isinstance(job, Training) or job not in self:
                continue
            path = self._file(job)
            if not self._is_same(job):
                raise SkillstackError(
                    f"{path} was made with other settings; move it away, or choose another place with --out."
                )
            if not self._is_kept(job):
                continue
            expected = self.read(job)["agent"]
            if _digest(self._agent_files(job)) != expected:
                below = f" or {self._agent(self._jobs[job.start.job])}, which it stands on," if job.start else ""
                raise SkillstackError(
                    f"{self._agent(job)} is not the agent of {path}; restore it{below} or remove both."
                )
            if job.finished(self._runs) and digest(self._runs / job.name / AGENT_FOLDER) != expected:
                raise SkillstackError(
                    f"{self._runs / job.name} has another agent than {path}; move it away, or choose another folder "
                    "with --runs."
                )

    def left(self) -> list[Job]:
        """The jobs without a record, and what they start from, which is run if it is not at hand."""
        needed: set[str] = set()
        for job in reversed(self._jobs.values()):  # a job comes after those that it needs
            if not job.finished(self._runs) and (job not in self or job.name in needed):
                needed |= {job.name, *job.needs}
        return [job for job in self._jobs.values() if job.name in needed]

    def restore(self) -> None:
        """Put the agents that are kept where runs look for them, unless they are there."""
        for job in self._jobs.values():
            if isinstance(job, Training) and job in self and self._is_kept(job) and not job.finished(self._runs):
                _write(self._runs / job.name / AGENT_FOLDER, self._agent_files(job))
                write_file(self._runs / job.name / FINISHED_FILE, _text(self.read(job)))

    def keep(self, only: Job | None = None) -> None:
        """Make a record of each job that is finished and has none, or of this one alone: agents take time to read.

        A job that was run once more, as others start from it, gets a new one, and its agent is measured anew.
        """
        for job in self._jobs.values() if only is None else (only,):
            if not job.finished(self._runs):
                continue
            record = {"format": FORMAT, "format_version": FORMAT_VERSION, "made": self._made(job)}
            if isinstance(job, Training):
                agent = _read(self._runs / job.name / AGENT_FOLDER)
                record["agent"], record["files"] = _digest(agent), sorted(agent)
                whole = self._agent(job).exists() or not job.kept
                if whole and job in self and self.read(job)["agent"] == record["agent"]:
                    continue
                if job.kept:
                    below = self._files_below(job)
                    own = {name: data for name, data in agent.items() if below.get(name) != data}
                    self._file(job).unlink(missing_ok=True)  # so that a record is never of another agent
                    _write(self._agent(job), own)
            elif isinstance(job, Looking):
                if job in self:
                    continue
                record["of"] = self._of(job)
            make_folder(self._file(job).parent)
            write_file(self._file(job), _text({**record, **job.record(self._runs)}))

    def _made(self, job: Job) -> Record:
        """What was asked of a job, and of those that it stands on."""
        return {"asked": job.asked, "on": {need: self._made(self._jobs[need]) for need in job.needs}}

    def _is_same(self, job: Job) -> bool:
        """Whether the record is of what would be done now."""
        made = self.read(job)["made"]
        try:
            return self._same(job, made)
        except (KeyError, TypeError, AttributeError, SkillstackError) as error:
            raise SkillstackError(f"{self._file(job)} cannot be understood ({error}); restore or remove it.") from error

    def _same(self, job: Job, made: Record) -> bool:
        return job.is_asked(made["asked"]) and all(
            need in made["on"] and self._same(self._jobs[need], made["on"][need]) for need in job.needs
        )

    def _file(self, job: Job) -> Path:
        return self._folder / f"{job.name}.json"

    def _agent(self, job: Job) -> Path:
        return self._folder / job.name

    def _is_kept(self, job: Training) -> bool:
        """Whether its agent must be there: that of pi_0, which is not made again, or one that was kept."""
        return job.kept and (job.start is None or self._agent(job).exists())

    def _agent_files(self, job: Training) -> Files:
        """The agent that is kept with a job's record; it need not have all files of the one that it stands on."""
        found = self._files_below(job) | _read(self._agent(job))
        return {name: data for name, data in found.items() if name in self.read(job).get("files", found)}

    def _files_below(self, job: Training) -> Files:
        """What is kept of the agent that a job starts from."""
        below = self._jobs[job.start.job] if job.start else None
        return self._agent_files(below) if isinstance(below, Training) else {}


def digest(folder: Path) -> str:
    """What the files of a folder are, by name and content; the same for any folder that is not there."""
    return _digest(_read(folder))


def _digest(files: Files) -> str:
    found = hashlib.sha256()
    for name, data in sorted(files.items()):
        found.update(name.encode() + b"\0" + hashlib.sha256(data).digest())
    return found.hexdigest()


def _read(folder: Path) -> Files:
    return {path.name: path.read_bytes() for path in folder.glob("*") if path.suffix in (".json", ".safetensors")}


def _write(folder: Path, files: Files) -> None:
    write_folder(folder, files, re.compile(".*"))


def _text(data: Record) -> bytes:
    """A line for each part: lists of numbers are long."""
    parts = [f"{json.dumps(name)}: {json.dumps(part)}" for name, part in data.items()]
    return ("{\n" + ",\n".join(parts) + "\n}\n").encode()
