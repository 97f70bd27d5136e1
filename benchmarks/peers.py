"""The worlds one would take in place of ours, each stepped alone with random actions: `python peers.py NAME`.

Runs in an environment of its own (the extra `bench`) and prints one line of JSON. Each peer gets its best
natural set-up: no wrappers that its frames do not need, nothing drawn that is not asked for, one decision a frame.
Time is taken over whole games, so that each game played pays for exactly one reset.

Miniworld draws with OpenGL and needs, on Debian: apt-get install libegl1 libgl1 libgl1-mesa-dri libglu1-mesa
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

SIZE = 84
WARM_UP_SECONDS = 1.0
GL_PACKAGES = "libegl1 libgl1 libgl1-mesa-dri libglu1-mesa"


@dataclass(frozen=True)
class Measurement:
    """How far one process came; the one line that it prints."""

    name: str
    steps: int
    seconds: float
    warm_up_seconds: float
    """From the first import until the world stepped at full speed, with whatever is compiled on the way."""
    frame: tuple[int, ...]
    """Height, width, channels."""


@dataclass(frozen=True)
class Game:
    """A peer behind two functions; both make a frame, and `step` also says whether the game is over."""

    reset: Callable[[], Any]
    step: Callable[[int], tuple[Any, bool]]
    num_actions: int


def gymnasium_game(env: Any) -> Game:
    """A game of an environment whose observation is the frame."""

    def step(action: int) -> tuple[Any, bool]:
        frame, _, terminated, truncated, _ = env.step(action)
        return frame, terminated or truncated

    return Game(lambda: env.reset()[0], step, int(env.action_space.n))


def miniworld() -> Game:
    """One room and one box: the quickest of Miniworld's worlds."""
    import pyglet

    pyglet.options["headless"] = True  # before Miniworld opens its window: drawn through EGL, without a display
    try:
        import miniworld.envs

        return gymnasium_game(miniworld.envs.OneRoom(obs_width=SIZE, obs_height=SIZE))
    except Exception as error:  # pyglet raises whatever the GL library at hand made of it
        if isinstance(error, ModuleNotFoundError):
            raise
        raise RuntimeError(
            f"Miniworld cannot draw through EGL; on Debian: apt-get install {GL_PACKAGES} "
            f"({type(error).__name__}: {error})"
        ) from error


def minigrid() -> Game:
    """A room with three coloured things, one of which to fetch; the view of 7 x 7 tiles, 12 pixels each."""
    from minigrid.envs import FetchEnv
    from minigrid.wrappers import ImgObsWrapper, RGBImgPartialObsWrapper

    return gymnasium_game(ImgObsWrapper(RGBImgPartialObsWrapper(FetchEnv(size=8, numObjs=3), tile_size=SIZE // 7)))


def crafter() -> Game:
    """Crafter as it comes, at our size; it speaks the Gym of old, where a step gives four things."""
    import crafter

    env = crafter.Env(size=(SIZE, SIZE), seed=0)

    def step(action: int) -> tuple[Any, bool]:
        frame, _, over, _ = env.step(action)
        return frame, over

    return Game(env.reset, step, int(env.action_space.n))


def vizdoom(see: Callable[[Any], Any]) -> Game:
    """The maze of textured rooms `my_way_home`, at the smallest resolution that ViZDoom has; `see` makes the frame."""
    import vizdoom

    doom = vizdoom.DoomGame()
    doom.load_config(str(Path(vizdoom.scenarios_path) / "my_way_home.cfg"))
    doom.set_screen_resolution(vizdoom.ScreenResolution.RES_160X120)
    doom.set_screen_format(vizdoom.ScreenFormat.RGB24)
    doom.set_window_visible(False)
    doom.set_sound_enabled(False)
    for hide in (doom.set_render_weapon, doom.set_render_crosshair, doom.set_render_decals, doom.set_render_particles):
        hide(False)
    doom.init()
    buttons = np.eye(doom.get_available_buttons_size(), dtype=int).tolist()

    def reset() -> Any:
        doom.new_episode()
        return see(doom.get_state().screen_buffer)

    def step(action: int) -> tuple[Any, bool]:
        doom.make_action(buttons[action])
        over = doom.is_episode_finished()  # then there is no last frame to look at
        return None if over else see(doom.get_state().screen_buffer), over

    return Game(reset, step, len(buttons))


def vizdoom_resized(interpolation: str) -> Game:
    """ViZDoom with its frames brought to our size by OpenCV."""
    import cv2

    cv2.setNumThreads(1)  # waking a second thread costs more than so small a picture
    return vizdoom(lambda frame: cv2.resize(frame, (SIZE, SIZE), interpolation=getattr(cv2, interpolation)))


@dataclass(frozen=True)
class Peer:
    """A world one would take in place of ours."""

    label: str
    make: Callable[[], Game]


PEERS = {
    "vizdoom-raw": Peer("ViZDoom, raw", lambda: vizdoom(lambda frame: frame)),
    "vizdoom": Peer("ViZDoom, resized", lambda: vizdoom_resized("INTER_LINEAR")),
    # What Gymnasium's ResizeObservation does, and many Atari set-ups: finer, and slower than drawing the frame.
    "vizdoom-area": Peer("ViZDoom, resized by area", lambda: vizdoom_resized("INTER_AREA")),
    "miniworld": Peer("Miniworld (EGL)", miniworld),
    "minigrid": Peer("Minigrid, RGB view", minigrid),
    "crafter": Peer("Crafter", crafter),
}


def play(game: Game, actions: Any, seconds: float) -> tuple[int, float]:
    """Play whole games until the time is up; steps taken, and seconds they took."""
    steps = 0
    start = time.perf_counter()
    while (elapsed := time.perf_counter() - start) < seconds:
        game.reset()
        over = False
        while not over:
            _, over = game.step(next(actions))
            steps += 1
    return steps, elapsed


def measure(name: str, seconds: float) -> Measurement:
    """Step one peer for about so many seconds, after a warm-up."""
    start = time.perf_counter()
    game = PEERS[name].make()
    # Drawn beforehand, so that the choosing costs no time; 4096 of them do not repeat within a game.
    actions = cycle(np.random.default_rng(0).integers(game.num_actions, size=4096).tolist())
    play(game, actions, WARM_UP_SECONDS)
    warm_up = time.perf_counter() - start
    steps, elapsed = play(game, actions, seconds)
    return Measurement(name, steps, elapsed, warm_up, np.shape(game.reset()))


def main() -> None:
    """Measure the named peer, or say in a sentence why it cannot run."""
    parser = argparse.ArgumentParser(description="Step one peer with random actions and print one line of JSON.")
    parser.add_argument("name", choices=PEERS)
    parser.add_argument("--seconds", type=float, default=3.0)
    args = parser.parse_args()
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")  # its greeting would come before our line
    try:
        line: dict[str, Any] = asdict(measure(args.name, args.seconds))
    except ModuleNotFoundError as error:
        line = {"name": args.name, "error": f"{error}: install the extra `bench` for this Python."}
    except Exception as error:  # a peer that cannot run must not end the comparison of the others
        line = {"name": args.name, "error": str(error) or repr(error)}
    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
