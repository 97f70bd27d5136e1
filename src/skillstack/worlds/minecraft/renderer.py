"""What the player sees, drawn by OpenGL without a screen: the game's blocks with Minecraft's textures.

The camera is the embedded rooms', and so is the light: daylight, each face by its direction, as in Minecraft without
smooth lighting. Frames are drawn one by one into the same picture, so that they do not depend on each other.
"""

from __future__ import annotations

import os
from functools import cache
from threading import RLock
from typing import Any

import numpy as np
import numpy.typing as npt

from skillstack.errors import SkillstackError
from skillstack.worlds.minecraft.materials import BlockLooks, Vertices
from skillstack.worlds.rooms.layout import (
    BLOCK_X,
    BLOCK_Y,
    BLOCK_Z,
    FACING,
    FORWARD_X,
    FORWARD_Z,
    HELD,
    ITEM,
    NOTHING,
    THEME,
    RoomsConfig,
    State,
    X,
    Z,
)
from skillstack.worlds.rooms.looks import SKY_HORIZON, SKY_ZENITH, TEXELS
from skillstack.worlds.world import Frames, IntArray

NEAR, FAR = 0.05, 400.0  # blocks
CUBE = 36  # vertices
HAND_CENTRE, HAND_EDGE, HAND_TURN, HAND_FOV = (0.52, -0.52, 1.10), 0.36, 30.0, 70.0  # as in `sprites.make_hand`

Matrix = npt.NDArray[np.float64]

BLOCK_SHADERS = (
    """
    #version 330
    uniform mat4 camera;
    uniform vec3 offset;
    in vec3 place;
    in vec2 pixel;
    in vec2 tile;
    in float light;
    out vec2 at;
    flat out vec2 corner;
    flat out float shade;
    void main() {
        gl_Position = camera * vec4(place + offset, 1.0);
        at = pixel;
        corner = tile;
        shade = light;
    }
    """,
    f"""
    #version 330
    uniform sampler2D atlas;
    in vec2 at;
    flat in vec2 corner;
    flat in float shade;
    out vec4 colour;
    void main() {{
        ivec2 texel = ivec2(clamp(floor(at), corner, corner + {TEXELS - 1}.0));
        colour = vec4(floor(texelFetch(atlas, texel, 0).rgb * 255.0 * shade + 0.001) / 255.0, 1.0);
    }}
    """,
)
SKY_SHADERS = (
    """
    #version 330
    in vec2 corner;
    void main() { gl_Position = vec4(corner, 0.0, 1.0); }
    """,
    """
    #version 330
    uniform vec3 view;  // twice the tangent of half the field of view over the size, and the pitch's cosine and sine
    uniform float tangent;
    uniform vec3 horizon, zenith;
    out vec4 colour;
    void main() {
        float v = gl_FragCoord.y * view.x - tangent;
        float slope = -(view.z + v * view.y) / (view.y - v * view.z);
        colour = vec4(floor(mix(horizon, zenith, clamp(slope, 0.0, 1.0))) / 255.0, 1.0);
    }
    """,
)


@cache
def open_context() -> tuple[Any, RLock]:
    """One context for all worlds of the process; who draws holds the lock."""
    try:
        import moderngl
    except ImportError as error:
        raise SkillstackError(
            'Drawing Minecraft needs moderngl: run "make minecraft", or pip install "skillstack[minecraft]".'
        ) from error
    os.environ.setdefault("LP_NUM_THREADS", "1")  # of Mesa's software renderer; frames are small, threads only wait
    try:
        create: Any = moderngl.create_context  # its types do not know the backends' own settings
        context = create(standalone=True, backend="egl", libgl="libGL.so.1", libegl="libEGL.so.1", require=330)
    except Exception as error:  # moderngl raises plain Exceptions
        raise SkillstackError(
            "Drawing Minecraft needs OpenGL 3.3 over EGL, which is not here "
            f'({error}): run "make minecraft", or install Debian\'s libegl1, libgl1 and libgl1-mesa-dri.'
        ) from error
    context.gc_mode = "context_gc"  # what worlds leave behind is kept until the context is ours: see `draw`
    return context, RLock()


class Renderer:
    """Draws states of games."""

    def __init__(self, config: RoomsConfig, looks: BlockLooks, rooms: list[Vertices], wools: tuple[str, ...]) -> None:
        """`rooms` are the meshes of the empty rooms."""
        self._config = config
        self._context, self._lock = open_context()
        size = config.image_size
        with self._lock, self._context as context:
            self._frame = context.framebuffer(
                [context.renderbuffer((size, size), 4)], context.depth_renderbuffer((size, size))
            )
            high, wide = looks.atlas.shape[:2]
            self._atlas = context.texture((wide, high), 4, looks.atlas.tobytes())
            self._program = context.program(*BLOCK_SHADERS)
            cubes = np.concatenate([looks.cube(wool) for wool in wools])
            self._rooms, self._cubes = [self._vertex_array(room) for room in rooms], self._vertex_array(cubes)
            self._sky = self._make_sky()
        self._hand = _hand()

    def draw(self, states: State, games: IntArray) -> Frames:
        """The views of `states[games]`."""
        frames: Frames = np.empty((len(games), *self._config.description.image_shape), dtype=np.uint8)
        with self._lock, self._context as context:
            context.gc()
            self._frame.use()
            self._atlas.use(0)
            context.front_face = "cw"  # pictures are drawn upside down, as NumPy counts rows from above
            for frame, game in zip(frames, games.tolist(), strict=True):
                self._draw_one(context, states[game])
                self._frame.read_into(memoryview(frame).cast("B"), components=3, alignment=1)
        return frames

    def _draw_one(self, context: Any, state: Any) -> None:
        agent, blocks = state["agent"], state["blocks"]
        self._frame.clear(depth=1.0)
        context.disable(context.DEPTH_TEST | context.CULL_FACE)
        self._sky.render()
        context.enable(context.DEPTH_TEST | context.CULL_FACE)
        self._program["camera"].write(_bytes(_projection(self._config.fov) @ _view(self._config, agent)))
        self._program["offset"].value = (0.0, 0.0, 0.0)
        self._rooms[state["room"][THEME]].render()  # a room's number is its theme's
        for block in blocks[blocks[:, ITEM] != NOTHING].tolist():
            self._program["offset"].value = (block[BLOCK_X], block[BLOCK_Y], block[BLOCK_Z])
            self._cubes.render(vertices=CUBE, first=CUBE * block[ITEM])
        if agent[HELD] != NOTHING:
            context.disable(context.DEPTH_TEST)  # the hand is before everything
            self._program["camera"].write(_bytes(self._hand))
            self._program["offset"].value = (0.0, 0.0, 0.0)
            self._cubes.render(vertices=CUBE, first=CUBE * int(agent[HELD]))

    def _vertex_array(self, vertices: Vertices) -> Any:
        buffer = self._context.buffer(vertices.tobytes())
        return self._context.vertex_array(self._program, [(buffer, "3f 2f 2f 1f", "place", "pixel", "tile", "light")])

    def _make_sky(self) -> Any:
        program = self._context.program(*SKY_SHADERS)
        tangent, pitch = np.tan(np.radians(self._config.fov) / 2), np.radians(self._config.pitch)
        program["view"].value = (2 * tangent / self._config.image_size, np.cos(pitch), np.sin(pitch))
        program["tangent"].value = tangent
        program["horizon"].value, program["zenith"].value = SKY_HORIZON, SKY_ZENITH
        triangle = self._context.buffer(np.array([-1, -1, 3, -1, -1, 3], dtype=np.float32).tobytes())
        return self._context.vertex_array(program, [(triangle, "2f", "corner")])


def _view(config: RoomsConfig, agent: Any) -> Matrix:
    """From places in the rooms to what is right of, above and ahead of the eye."""
    fx, fz = int(FORWARD_X[agent[FACING]]), int(FORWARD_Z[agent[FACING]])
    cosine, sine = np.cos(np.radians(config.pitch)), np.sin(np.radians(config.pitch))
    turn = np.array([[-fz, 0, fx], [0, 1, 0], [fx, 0, fz]], dtype=np.float64)
    nod = np.array([[1, 0, 0], [0, cosine, sine], [0, -sine, cosine]])
    matrix = np.eye(4)
    matrix[:3, :3] = nod @ turn
    matrix[:3, 3] = -matrix[:3, :3] @ np.array([agent[X] + 0.5, config.eye, agent[Z] + 0.5])
    return matrix


def _projection(fov: float) -> Matrix:
    """From right, above, ahead to OpenGL's clip space, upside down."""
    scale = 1.0 / np.tan(np.radians(fov) / 2)
    depth, shift = (FAR + NEAR) / (FAR - NEAR), -2 * FAR * NEAR / (FAR - NEAR)
    return np.array([[scale, 0, 0, 0], [0, -scale, 0, 0], [0, 0, depth, shift], [0, 0, 1, 0]])


def _hand() -> Matrix:
    """From a cube at 0..1 to the held block in the lower right corner, whatever the camera does."""
    cosine, sine = np.cos(np.radians(HAND_TURN)), np.sin(np.radians(HAND_TURN))
    turn = np.array([[cosine, 0, sine], [0, 1, 0], [sine, 0, -cosine]])  # z towards us, else it is turned inside out
    matrix = np.eye(4)
    matrix[:3, :3] = HAND_EDGE * turn
    matrix[:3, 3] = np.array(HAND_CENTRE) - matrix[:3, :3] @ np.full(3, 0.5)
    return _projection(HAND_FOV) @ matrix


def _bytes(matrix: Matrix) -> bytes:
    """As OpenGL wants it, column by column."""
    return matrix.T.astype(np.float32).tobytes()
