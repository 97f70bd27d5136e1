"""What a page may say to the server: every message is one of these, to the letter, or is refused in a sentence."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from skillstack.errors import SkillstackError

MAX_MESSAGE = 16_384
"""Bytes of a message at the most; the longest sensible one lays out a room full of blocks."""

Word = Annotated[str, Field(min_length=1, max_length=40)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Lane = Annotated[int, Field(ge=0, le=1)]
Cell = Annotated[int, Field(ge=0, le=127)]


class Message(BaseModel):
    """Strict: no field more, no text in place of a number."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Setup(Message):
    """A game to look at: who plays what, where."""

    type: Literal["setup"]
    instruction: Annotated[str, Field(max_length=200)]
    agents: Annotated[list[Name], Field(min_length=1, max_length=2)]
    room: Literal["small", "big"] = "small"
    blocks: Annotated[int, Field(ge=1, le=12)] | None = None
    """How many, or as many as the seed has it."""
    seed: Annotated[int, Field(ge=0, lt=2**53)] = 0
    """Up to what JavaScript's numbers hold."""
    greedy: bool = False


class Block(Message):
    item: Word
    x: Cell
    z: Cell
    y: Annotated[int, Field(ge=0, le=1)] = 0


class Place(Message):
    x: Cell
    z: Cell
    facing: Word


class Arrange(Message):
    """Blocks and agent somewhere else, before the run."""

    type: Literal["arrange"]
    agent: Place
    blocks: Annotated[list[Block], Field(max_length=32)]


class Start(Message):
    """Play the game that is set up; `drive` leaves the actions to the person."""

    type: Literal["start"]
    drive: bool = False


class Instruct(Message):
    """Another instruction from where things stand: an interruption, or the next thing to do."""

    type: Literal["instruct"]
    instruction: Annotated[str, Field(max_length=200)]
    drive: bool = False


class Act(Message):
    """One action of the person who drives."""

    type: Literal["act"]
    action: Word


class Pause(Message):
    type: Literal["pause"]


class Resume(Message):
    type: Literal["resume"]


class Step(Message):
    """One moment, while paused."""

    type: Literal["step"]


class Speed(Message):
    type: Literal["speed"]
    steps: Annotated[float, Field(ge=0.5, le=60)]
    """A second."""


class Export(Message):
    """A game that was played, as a file."""

    type: Literal["export"]
    act: Annotated[int, Field(ge=0)]
    kind: Literal["json", "svg", "gif", "html"]


class Save(Message):
    """Put a game that was played into the gallery."""

    type: Literal["save"]
    act: Annotated[int, Field(ge=0)]


class ShowGrammar(Message):
    type: Literal["grammar"]
    agent: Name
    instruction: Annotated[str, Field(max_length=200)]
    level: Annotated[int, Field(ge=1, le=64)]


class ListRuns(Message):
    type: Literal["runs"]


class Curves(Message):
    """How far a run has come; `known` says what the page has already."""

    type: Literal["curves"]
    run: Name
    known: Annotated[int, Field(ge=-1)] = -1


class ListGallery(Message):
    type: Literal["gallery"]


class Open(Message):
    """A recorded game of the gallery."""

    type: Literal["open"]
    name: Name


AnyMessage = (
    Setup | Arrange | Start | Instruct | Act | Pause | Resume | Step | Speed
    | Export | Save | ShowGrammar | ListRuns | Curves | ListGallery | Open
)  # fmt: skip

_READER: TypeAdapter[AnyMessage] = TypeAdapter(Annotated[AnyMessage, Field(discriminator="type")])


def read_message(text: str) -> AnyMessage:
    """The message that a text is, or a sentence about what is wrong with it."""
    if len(text.encode(errors="surrogatepass")) > MAX_MESSAGE:
        raise SkillstackError(f"A message has at most {MAX_MESSAGE} bytes.")
    try:
        return _READER.validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        place = ".".join(str(part) for part in first["loc"][1:])
        raise SkillstackError(
            f"This is no message of the viewer: {place + ': ' if place else ''}{first['msg']}."
        ) from error
