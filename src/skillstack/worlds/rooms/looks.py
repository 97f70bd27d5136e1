"""What the rooms are made of: textures like Minecraft's, the camera, and how both may differ from game to game."""

from __future__ import annotations

import colorsys
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from skillstack.errors import SkillstackError
from skillstack.randomness import uniforms

TEXELS = 16  # texels along the edge of a block, as in Minecraft
TOP, FACE_X, FACE_Z = range(3)  # faces by their normal; east and west faces share FACE_X, north and south FACE_Z
SHADES = np.array([1.0, 0.6, 0.8])  # light on each face, as in Minecraft
THEMES = 2  # the two rooms' looks
FLOOR, WALL_X, WALL_Z = range(3)  # the textures of a theme, then TOP, FACE_X, FACE_Z of each item

# Mean colours of Minecraft's wool.
WOOL = {
    "white": (233, 236, 236),
    "orange": (240, 118, 19),
    "magenta": (189, 68, 179),
    "cyan": (21, 137, 145),
    "yellow": (248, 197, 39),
    "lime": (112, 185, 25),
    "pink": (237, 141, 172),
    "gray": (62, 68, 71),
    "silver": (142, 142, 134),
    "purple": (121, 42, 172),
    "blue": (53, 57, 157),
    "brown": (114, 71, 40),
    "green": (84, 109, 27),
    "red": (161, 39, 34),
    "black": (20, 21, 25),
    "turquoise": (58, 175, 217),
}
SKY_HORIZON = (184, 211, 255)
SKY_ZENITH = (120, 167, 255)


@dataclass(frozen=True)
class Randomisation:
    """How far a game's look may be from the standard one. All are drawn from the game's seed."""

    texture: float = 0.35
    """Change of a texture's contrast, as a fraction, and the strength of the grain that is added."""
    hue: float = 0.12
    """Change of each material's red, green and blue, as a fraction."""
    light: float = 0.25
    """Change of the light, as a fraction."""
    fov: float = 5.0
    """Change of the field of view, in degrees."""
    eye: float = 0.08
    """Change of the eye's height, in blocks."""
    pitch: float = 6.0
    """Change of the camera's pitch, in degrees."""
    variety: int = 512
    """How many looks there are; a game's seed picks one. They are painted once, some 20 kB and 1 ms each."""

    def __post_init__(self) -> None:
        if not 1 <= self.variety <= 65_536:
            raise SkillstackError(f"There can be 1 to 65536 looks, not {self.variety}.")
        most_of = {"texture": 1.0, "hue": 0.5, "light": 0.6, "fov": 10.0, "eye": 0.3, "pitch": 15.0}
        for name, most in most_of.items():
            if not 0 <= getattr(self, name) <= most:
                raise SkillstackError(f"Randomisation of {name} must be from 0 to {most}, not {getattr(self, name)}.")


STEADY = Randomisation(texture=0.0, hue=0.0, light=0.0, fov=0.0, eye=0.0, pitch=0.0, variety=1)
"""No change at all: the standard look."""


def check_camera(fov: float, eye: float, pitch: float, randomise: Randomisation | None) -> None:
    """Refuse cameras, or ranges of cameras, that the ray caster does not serve."""
    change = randomise or STEADY
    if not 30 <= fov - change.fov <= fov + change.fov <= 100:
        raise SkillstackError(f"The field of view must stay from 30 to 100 degrees; it is {fov:g} +- {change.fov:g}.")
    if not 1.05 <= eye - change.eye <= eye + change.eye <= 1.95:
        raise SkillstackError(
            "The eye must stay between the tops of one and of two blocks, 1.05 to 1.95; "
            f"it is {eye:g} +- {change.eye:g}."
        )
    steepest = abs(pitch) + change.pitch + (fov + change.fov) / 2
    if not steepest <= 85:
        raise SkillstackError(
            "The view must not reach straight down or up: "
            f"pitch and half the field of view come to {steepest:g} degrees, at most 85 are possible."
        )


@dataclass(frozen=True)
class Looks:
    """L looks, painted and ready to draw with."""

    texels: npt.NDArray[np.uint8]
    """(L, faces, 16 * 16, 3): FLOOR, WALL_X, WALL_Z of each theme, then TOP, FACE_X, FACE_Z of each item."""
    sky: npt.NDArray[np.float64]
    """(L, 2, 3): the colours of horizon and zenith."""
    view: npt.NDArray[np.float64]
    """(L, 4): tangent of half the field of view, height of the eye, cosine and sine of the pitch."""


def make_materials(items: tuple[str, ...]) -> npt.NDArray[np.float64]:
    """The unlit materials, (2 * themes + items, 16, 16, 3) in 0..255: floor and wall of each theme, then the wools."""
    rng = np.random.default_rng(7)  # the textures are part of the world: the same for everyone
    oak, spruce = _planks(rng, (162, 130, 78)), _planks(rng, (104, 78, 47))
    stone, sandstone = _bricks(rng, (122, 122, 122)), _cut_stone(rng, (218, 206, 160))
    wools = [_wool(rng, _item_colour(item, number)) for number, item in enumerate(items)]
    return np.stack([oak, stone, spruce, sandstone, *wools])


def paint_looks(
    materials: npt.NDArray[np.float64], fov: float, eye: float, pitch: float, randomise: Randomisation | None
) -> Looks:
    """Paint all the looks there are: `randomise.variety` of them, or the standard one alone."""
    change = randomise or STEADY
    seeds = np.arange(change.variety, dtype=np.uint64)
    few = np.array_split(seeds, -(-len(seeds) // 16))  # at a time, so that the numbers on the way stay small
    parts = [_paint(materials, fov, eye, pitch, change, some) for some in few]
    return Looks(
        texels=np.concatenate([part.texels for part in parts]),
        sky=np.concatenate([part.sky for part in parts]),
        view=np.concatenate([part.view for part in parts]),
    )


def _paint(
    materials: npt.NDArray[np.float64],
    fov: float,
    eye: float,
    pitch: float,
    change: Randomisation,
    seeds: npt.NDArray[np.uint64],
) -> Looks:
    size, num_materials = materials[0].size // 3, len(materials)
    draws = 2.0 * uniforms(seeds[:, None], np.arange(8 + num_materials * (4 + size))) - 1.0  # in [-1, 1)
    whole, each = draws[:, :8], draws[:, 8:].reshape(len(seeds), num_materials, 4 + size)
    light = 1.0 + change.light * whole[:, 0]
    sky = np.array([SKY_HORIZON, SKY_ZENITH]) * (1.0 + change.hue * whole[:, None, 4:7])  # (L, 2, 3)
    return Looks(
        texels=_light_faces(_vary(materials, change, each) * light[:, None, None, None]),
        sky=np.clip(sky * np.minimum(light, 1.0)[:, None, None], 0, 255),
        view=_views(fov, eye, pitch, change, whole),
    )


def _views(
    fov: float, eye: float, pitch: float, change: Randomisation, draws: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    half = np.radians(fov + change.fov * draws[:, 1]) / 2.0
    height = eye + change.eye * draws[:, 2]
    turn = np.radians(pitch + change.pitch * draws[:, 3])
    return np.stack([np.tan(half), height, np.cos(turn), np.sin(turn)], axis=1)


def _vary(
    materials: npt.NDArray[np.float64], change: Randomisation, draws: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Each look's own contrast, grain and tint of each material: (L, materials, 16 * 16, 3)."""
    flat = materials.reshape(1, len(materials), -1, 3)
    mean = flat.mean(axis=2, keepdims=True)
    contrast = 1.0 + change.texture * draws[:, :, :1, None]
    tint = 1.0 + change.hue * draws[:, :, None, 1:4]
    grain = 30.0 * change.texture * draws[:, :, 4:, None]
    return np.asarray(np.maximum(mean + contrast * (flat - mean) + grain, 0.0) * tint)


def _light_faces(materials: npt.NDArray[np.float64]) -> npt.NDArray[np.uint8]:
    """Each material as the faces that show it, in the order that `Looks.texels` states."""
    shaded = materials[:, :, None] * SHADES[:, None, None]  # (L, materials, 3 faces, texels, 3)
    themes = [shaded[:, (2 * theme, 2 * theme + 1, 2 * theme + 1), (TOP, FACE_X, FACE_Z)] for theme in range(THEMES)]
    wools = shaded[:, 2 * THEMES :].reshape(len(materials), -1, *materials.shape[2:])
    return np.asarray(np.clip(np.concatenate([*themes, wools], axis=1), 0, 255), dtype=np.uint8)


def _item_colour(item: str, number: int) -> npt.NDArray[np.float64]:
    """Wool of that name, or for other words a hue of its own."""
    if item in WOOL:
        return np.array(WOOL[item], dtype=np.float64)
    hue = (number * 0.618034) % 1.0
    return 255.0 * np.array(colorsys.hsv_to_rgb(hue, 0.75 if number % 2 else 0.45, 0.85))


def _wool(rng: np.random.Generator, colour: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Soft woven noise: light and dark threads that change every other texel."""
    threads = rng.normal(0.0, 0.035, (TEXELS, TEXELS))
    weave = 0.03 * np.where((np.add.outer(np.arange(TEXELS), np.arange(TEXELS)) // 2) % 2, 1.0, -1.0)
    return _coloured(colour, 1.0 + threads + weave)


def _bricks(rng: np.random.Generator, colour: tuple[int, int, int]) -> npt.NDArray[np.float64]:
    """Stone bricks: two courses of 8 texels, the lower one shifted by half a brick, light edge above, mortar below."""
    shade = 1.0 + rng.normal(0.0, 0.05, (TEXELS, TEXELS))
    for course in range(2):
        rows = slice(8 * course, 8 * course + 8)
        shade[rows][0] += 0.12
        shade[rows][7] -= 0.30
        joint = 15 if course == 0 else 7
        shade[rows, joint] -= 0.30
        shade[rows, (joint + 1) % TEXELS] += 0.08
    return _coloured(colour, shade)


def _cut_stone(rng: np.random.Generator, colour: tuple[int, int, int]) -> npt.NDArray[np.float64]:
    """Cut stone: a slab of 13 texels under a course of 3, light above and left, dark below and right."""
    shade = 1.0 + rng.normal(0.0, 0.03, (TEXELS, TEXELS))
    for top, bottom in ((0, 2), (3, 15)):
        shade[top] += 0.12
        shade[bottom] -= 0.15
    shade[4:15, 0] += 0.10
    shade[3:15, 15] -= 0.15
    return _coloured(colour, shade)


def _planks(rng: np.random.Generator, colour: tuple[int, int, int]) -> npt.NDArray[np.float64]:
    """Four boards of 4 texels with grain along them, a dark line between boards, and a joint in each."""
    grain = np.repeat(rng.normal(0.0, 0.05, (TEXELS, TEXELS // 4)), 4, axis=1)
    shade = 1.0 + grain + rng.normal(0.0, 0.02, (TEXELS, TEXELS))
    for board in range(4):
        shade[4 * board + 3] -= 0.22
        shade[4 * board : 4 * board + 3, (5 + 8 * (board % 2)) % TEXELS] -= 0.18
    return _coloured(colour, shade)


def _coloured(colour: npt.ArrayLike, shade: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """A texture of one colour, each texel in its own shade."""
    return np.asarray(np.clip(np.asarray(colour) * shade[..., None], 0, 255))
