"""Gymnasium's CarRacing-v3, drawn only on request.

The environment draws 1000 × 800 pixels in every step and scales them to its observation of 96 × 96, which takes more
than nine tenths of the time of a step. Here a step draws nothing. A frame is drawn on request from the state that the
step left, and is identical, pixel by pixel, to the observation that the environment would have returned.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from gymnasium.envs.box2d import car_racing
from numpy.typing import NDArray
from PIL import Image

from racer_env.games.game import PIXELS, DrawData, TickResult
from racer_env.games.worker_protocol import Action

_NOT_DRAWN = np.zeros((car_racing.STATE_H, car_racing.STATE_W, 3), np.uint8)
_transform = car_racing.pygame.transform  # type: ignore[attr-defined]
_EDGE = 4.0
"""Margin around the image in which polygons still count as visible, because outlines are antialiased [px]."""


class UndrawnCarRacing(car_racing.CarRacing):
    """CarRacing whose steps return an empty observation; `observation` draws the real one."""

    def __init__(self) -> None:
        super().__init__()
        self._shown_reward = 0.0
        self._size: tuple[int, int] | None = None
        self._corners: NDArray[np.float64] | None = None

    def observation(self) -> NDArray[np.uint8]:
        """Draw the observation that the step would have returned: (96, 96, 3)."""
        observation: NDArray[np.uint8] = self._draw("state_pixels")
        return observation

    def image(self, size: tuple[int, int]) -> Image.Image:
        """Draw what the environment's own window would show, scaled to this size [px]."""
        image: Image.Image = self._draw("rgb_array", size)
        return image

    def _draw(self, mode: str, size: tuple[int, int] | None = None) -> Any:
        reward, self.reward = self.reward, self._shown_reward
        self._size = size
        try:
            return super()._render(mode)
        finally:
            self.reward = reward

    def reset(self, **options: Any) -> Any:
        self._corners = None
        return super().reset(**options)

    def _render(self, mode: str) -> NDArray[np.uint8]:
        """Replace the drawing within a step; keep the score, which the image shows without the cost of the step."""
        self._shown_reward = self.reward
        return _NOT_DRAWN

    def _create_image_array(self, screen: Any, size: tuple[int, int]) -> Any:
        """Return the canvas as an image; its pixels are blue, green, red and an unused byte."""
        if self._size is not None:
            scaled = screen if screen.get_size() == self._size else _transform.smoothscale(screen, self._size)
            return Image.frombuffer("RGB", self._size, scaled.get_buffer().raw, "raw", "BGRX", 0, 1)
        return super()._create_image_array(screen, size)  # type: ignore[no-untyped-call]

    def _render_road(self, zoom: float, translation: tuple[float, float], angle: float) -> None:
        """Draw as the environment does, but skip polygons outside the image: nine out of ten."""
        draw: Any = partial(self._draw_colored_polygon, self.surf, zoom=zoom, translation=translation, angle=angle)
        draw(_FIELD, self.bg_color, clip=False)
        if self._corners is None:
            self._corners = np.array([*_GRASS, *(corners for corners, _ in self.road_poly)])
        for number in _visible(self._corners, zoom, translation, angle):
            if number < len(_GRASS):
                draw(_GRASS[number], self.grass_color)
            else:
                corners, colour = self.road_poly[number - len(_GRASS)]
                draw(corners, [int(part) for part in colour])


class CarRacingGame:
    """CarRacing as a game backend."""

    def __init__(self, seed: int | None = None) -> None:
        self.env = UndrawnCarRacing()
        self._seed = seed

    def restart(self) -> None:
        """Begin an episode; the seed determines the first track and, through the generator, all later ones."""
        self.env.reset(seed=self._seed)
        self._seed = None

    def tick(self, action: Action) -> TickResult:
        _, reward, terminated, truncated, info = self.env.step(np.array(action))
        return TickResult(float(reward), bool(terminated), bool(truncated), info)

    def telemetry(self) -> dict[str, Any]:
        env, car = self.env, self.env.car
        assert car is not None, "an episode has begun"
        hull = car.hull
        (x, y), (vx, vy) = hull.position, hull.linearVelocity
        return {
            "car_x": float(x),
            "car_y": float(y),
            "car_vx": float(vx),
            "car_vy": float(vy),
            "car_angle": float(hull.angle),
            "car_angular_vel": float(hull.angularVelocity),
            "speed": float(np.hypot(vx, vy)),
            "wheel_speeds": [float(wheel.omega) for wheel in car.wheels],
            "tiles_visited": env.tile_visited_count,
            "total_tiles": len(env.track),
        }

    def frame(self) -> bytes:
        return self.env.observation().tobytes()

    def draw_data(self, width: int, height: int) -> DrawData:
        """Draw an image with the aspect ratio of the environment's window that fits, at most at its full size."""
        scale = min(1.0, width / car_racing.WINDOW_W, height / car_racing.WINDOW_H)
        size = max(1, round(scale * car_racing.WINDOW_W)), max(1, round(scale * car_racing.WINDOW_H))
        return DrawData(PIXELS, *size, self.env.image(size).tobytes())


def prepare_drawing() -> None:
    """Draw once, so that no game is delayed by the first drawing, which takes a tenth of a second longer."""
    game = CarRacingGame(seed=0)
    game.restart()
    game.frame()


def _grass_patches() -> list[list[tuple[float, float]]]:
    """Return the light squares of the field, in the order in which the environment draws them."""
    side = car_racing.GRASS_DIM
    return [
        [
            (side * x + side, side * y + 0),
            (side * x + 0, side * y + 0),
            (side * x + 0, side * y + side),
            (side * x + side, side * y + side),
        ]
        for x in range(-20, 20, 2)
        for y in range(-20, 20, 2)
    ]


_GRASS = _grass_patches()
_FIELD = [
    (x * car_racing.PLAYFIELD, y * car_racing.PLAYFIELD)
    for x, y in ((1.0, 1.0), (1.0, -1.0), (-1.0, -1.0), (-1.0, 1.0))
]


def _visible(
    polygons: NDArray[np.float64], zoom: float, translation: tuple[float, float], angle: float
) -> NDArray[np.int64]:
    """Return the indices of the polygons (n, 4, 2) whose bounding boxes touch the image."""
    cos, sin = np.cos(angle), np.sin(angle)
    x = (polygons[..., 0] * cos - polygons[..., 1] * sin) * zoom + translation[0]
    y = (polygons[..., 0] * sin + polygons[..., 1] * cos) * zoom + translation[1]
    right, bottom = car_racing.WINDOW_W + _EDGE, car_racing.WINDOW_H + _EDGE
    inside = (x.max(1) >= -_EDGE) & (x.min(1) <= right) & (y.max(1) >= -_EDGE) & (y.min(1) <= bottom)
    return np.flatnonzero(inside)
