"""How an environment finds someone to draw it.

The environment knows no window. Whoever can draw (the viewer does) says so with an entry point in the group
`racer_env.window`: a callable that takes whether a person watches, and returns a `CarWindow`.


RacerEnv: one car as a Gymnasium environment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import entry_points
from typing import Any, ClassVar, NoReturn, Protocol, cast

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from racer_env.bridge.interface import (
    ACTION_HIGH,
    ACTION_LOW,
    DEFAULT_TRACK,
    OBSERVATION_HIGH,
    OBSERVATION_LOW,
    Bridge,
    CarRow,
    Info,
    Observations,
)
from racer_env.bridge.shadow_car import ShadowCar, ShadowedClient
from racer_env.engine import TICKS_PER_SECOND, Config, Start, Track
from racer_env.errors import RacerError
from racer_env.scenarios import changed_scenario, make_scenario, open_bridge


class CarWindow(Protocol):
    """Draws one car on its track."""

    def draw(self, track: Track, car: CarRow) -> NDArray[np.uint8] | None:
        """The picture (height, width, 3); None if it went to a window."""
        ...

    def close(self) -> None: ...


def open_window(visible: bool) -> CarWindow:
    """The first window that is installed."""
    for point in entry_points(group="racer_env.window"):
        return cast(CarWindow, point.load()(visible))
    raise RacerError("nothing that can draw is installed: install racer-viewer")


OBSERVATION_SPACE = spaces.Box(OBSERVATION_LOW, OBSERVATION_HIGH, dtype=np.float32)
ACTION_SPACE = spaces.Box(ACTION_LOW, ACTION_HIGH, dtype=np.float32)

DISCRETE_ACTIONS = np.array(
    [
        (steer, throttle, brake)
        for steer in (-1.0, 0.0, 1.0)
        for throttle, brake in ((1.0, 0.0), (0.0, 0.0), (0.0, 1.0))
    ],
    np.float32,
)
"""Steer left, not or right, each with full throttle, no pedal or full brake: action 4 rolls straight on."""


class EnvClosedError(RacerError, gymnasium.error.ClosedEnvironmentError):
    """An environment was used after close()."""


class RacerEnv(gymnasium.Env[Observations, NDArray[np.float32]]):
    """Drive a car around a circuit, as fast as it goes.

    ## Action space
    `Box([-1, 0, 0], [1, 1, 1], float32)`: steer (right is positive), throttle, brake. Values beyond are clamped.

    ## Observation space
    `Box(14, float32)`:
    | index | what | range |
    |---|---|---|
    | 0-8 | distance to the wall along nine rays, from the right to the left; 1 is the end of the ray | 0 to 1 |
    | 9 | speed, of 160 units/s | 0 to 1 |
    | 10 | yaw rate, of 5 rad/s | -1 to 1 |
    | 11 | where the steering is now | -1 to 1 |
    | 12 | way along the lap | 0 to 1 |
    | 13 | distance from the centre of the road, of 80 units | 0 to 1 |

    ## Reward
    The sum of six components, each in `info` by its name: `progress` along the lap (a whole lap is 1), `speed`, `wall`
    contact, `offTrack`, `backward`, `stillness`. Their weights are in ai-config.json.

    ## Episode
    Starts at rest on the start line, unless told otherwise. Terminated after three seconds of standing still, truncated
    after 3000 ticks (both in ai-config.json); a tick is 1/60 s. Laps go on counting: `info["lap"]`.

    ## Arguments
    bridge_url: a running bridge, as `ws://localhost:9876`; None simulates in this process.
    config_path: an ai-config.json of your own.
    track_id: a circuit id, `random:SEED`, or (not over a bridge) the path of a circuit file. Of several ids, each
        episode draws one.
    render_mode: None, "human" (a window) or "rgb_array".
    config: the content of an ai-config.json, instead of a path.
    start: where episodes start: a `racer_env.engine.Start`, or a mapping with its fields.
    token: for a bridge that asks for one.

    `reset(options=...)` takes `circuit`, `start` and `config`; they hold from that episode on.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["human", "rgb_array"], "render_fps": TICKS_PER_SECOND}  # type: ignore[misc]

    def __init__(
        self,
        bridge_url: str | None = None,
        config_path: str | None = None,
        track_id: str | Sequence[str] = DEFAULT_TRACK,
        render_mode: str | None = None,
        *,
        config: Config | Mapping[str, Any] | None = None,
        start: Start | Mapping[str, Any] | None = None,
        token: str | None = None,
    ) -> None:
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise RacerError(f"render_mode is None, 'human' or 'rgb_array', not {render_mode!r}")
        self.render_mode = render_mode
        self.observation_space = OBSERVATION_SPACE
        self.action_space = ACTION_SPACE
        self._scenario = make_scenario(track_id, config_path, config, start, redraw=not isinstance(track_id, str))
        self._bridge: Bridge = open_bridge(bridge_url, token, telemetry=render_mode is not None)
        self._seeded = False
        self._window: CarWindow | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Observations, Info]:
        super().reset(seed=seed)
        if seed is None and not self._seeded:
            seed = int(self.np_random.integers(2**62))
        scenario = changed_scenario(self._scenario, options)
        result = self._bridge.reset(scenario, seed)
        self._scenario, self._seeded = scenario, True
        if self.render_mode == "human":
            self._draw()
        return result

    def step(self, action: NDArray[np.float32]) -> tuple[Observations, float, bool, bool, Info]:
        result = self._bridge.step(action)
        if self.render_mode == "human":
            self._draw()
        return result

    @property
    def track(self) -> Track:
        """The track of this episode, to look at. Over a bridge this needs a `render_mode`."""
        return self._bridge.track

    @property
    def car(self) -> CarRow:
        """Copy of the car's row of `racer_env.engine.CAR`. Over a bridge this needs a `render_mode`."""
        return self._bridge.car

    @property
    def shadow(self) -> ShadowCar | None:
        """Local copy of a car whose server sends no telemetry; else None."""
        return self._bridge.shadow if isinstance(self._bridge, ShadowedClient) else None

    def render(self) -> NDArray[np.uint8] | None:
        """The picture of the car now with "rgb_array"; with "human" the window shows every step by itself."""
        if self.render_mode is None:
            raise RacerError('this environment draws nothing: make it with render_mode="human" or "rgb_array"')
        return self._draw()

    def close(self) -> None:
        if not isinstance(self._bridge, _Closed):
            self._bridge.close()
            self._bridge = cast(Bridge, _Closed())
        if self._window is not None:
            self._window.close()
            self._window = None

    def _draw(self) -> NDArray[np.uint8] | None:
        track, car = self.track, self.car
        if self._window is None:
            self._window = open_window(self.render_mode == "human")
        return self._window.draw(track, car)


class DiscreteRacerEnv(RacerEnv):
    """RacerEnv with nine actions: steer left, straight or right, each with throttle, no pedal or brake."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.action_space = spaces.Discrete(len(DISCRETE_ACTIONS))  # type: ignore[assignment]

    def step(self, action: Any) -> tuple[Observations, float, bool, bool, Info]:
        if not self.action_space.contains(action):
            raise RacerError(f"an action is a whole number from 0 to {len(DISCRETE_ACTIONS) - 1}, not {action!r}")
        return super().step(DISCRETE_ACTIONS[action])


class _Closed:
    """Stands where the bridge was: whatever is asked of it is an error."""

    def __getattr__(self, name: str) -> NoReturn:
        raise EnvClosedError("this environment is closed: make a new one")
