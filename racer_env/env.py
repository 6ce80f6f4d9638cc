"""RacerEnv and DiscreteRacerEnv: one car as a Gymnasium environment."""

from __future__ import annotations

import itertools
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
    complete_reset_info,
    component_keys,
)
from racer_env.bridge.shadow_car import ShadowCar, ShadowedClient
from racer_env.engine import TICKS_PER_SECOND, Config, Start, Track
from racer_env.errors import RacerError
from racer_env.scenarios import changed_scenario, make_scenario, open_bridge

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
"""Actions of `DiscreteRacerEnv`: left, straight or right, each with full throttle, no pedal or full brake."""


KEYS = ("w", "a", "s", "d")
"""Keys of `RacerEnv.get_keys_to_action`: throttle, left, brake, right."""


class EnvClosedError(RacerError, gymnasium.error.ClosedEnvironmentError):
    """An environment was used after close()."""


class ClosedBridge:
    """Placeholder for the bridge of a closed environment: any access raises EnvClosedError."""

    def __getattr__(self, name: str) -> NoReturn:
        raise EnvClosedError("this environment is closed: make a new one")


class CarWindow(Protocol):
    """Renderer of one car on its track.

    `racer_env` cannot draw. A package that can registers a function in the entry point group `racer_env.window`; it
    takes whether a window is shown on the screen, and returns a `CarWindow`.
    """

    def draw(self, track: Track, car: CarRow) -> NDArray[np.uint8] | None:
        """Draw the car; return the image (height, width, 3), or None if it was shown in a window."""
        ...

    def close(self) -> None: ...


def open_window(visible: bool) -> CarWindow:
    """Open the first renderer that is installed."""
    for point in entry_points(group="racer_env.window"):
        return cast(CarWindow, point.load()(visible))
    raise RacerError("no renderer is installed: install racer-viewer")


class RacerEnv(gymnasium.Env[Observations, NDArray[np.float32]]):
    """
    ## Description
    Drive a car around a circuit as fast as possible. The car sees its distance to the walls along nine rays, its own
    motion, and its place on the lap. One step is one tick of 1/60 s.

    ## Action space
    `Box([-1, 0, 0], [1, 1, 1], (3,), float32)`. Values out of range are clamped; anything but three finite numbers
    raises `ActionError`.

    | index | action | range |
    |---|---|---|
    | 0 | steer; positive is right | -1 to 1 |
    | 1 | throttle | 0 to 1 |
    | 2 | brake | 0 to 1 |

    ## Observation space
    `Box(14, float32)`:

    | index | observation | range |
    |---|---|---|
    | 0-8 | distance to the wall along nine rays, from 90° right to 90° left, divided by 200 units | 0 to 1 |
    | 9 | speed, divided by 160 units/s | 0 to 1 |
    | 10 | yaw rate, positive to the left, divided by 5 rad/s | -1 to 1 |
    | 11 | current steering of the car, positive to the right | -1 to 1 |
    | 12 | progress along the lap | 0 to 1 |
    | 13 | distance from the centreline, divided by 80 units | 0 to 1 |

    ## Rewards
    The sum of six components, each in `info` by its name: `progress` along the lap (a whole lap is worth 1), `speed`,
    `wall` (contact), `offTrack`, `backward` and `stillness`. Their weights are in ai-config.json, which can add terms
    with formulas of their own (docs/rewards.md).

    ## Starting state
    At rest on the start line, unless `start` gives ranges to draw the start from.

    ## Episode end
    - Terminated after 180 ticks (three seconds) in a row below 2 units/s.
    - Truncated after 3000 ticks (50 seconds).

    Both limits are in ai-config.json. Neither a wall nor a finished lap ends an episode: `info["lap"]` counts laps.

    ## Arguments
    - `bridge_url`: URL of a running bridge, such as `ws://localhost:9876`; None simulates in this process.
    - `config_path`: path of an ai-config.json.
    - `track_id`: circuit id, `random:SEED`, or path of a circuit file (not over a bridge). Given several, each episode
      draws one.
    - `render_mode`: None, "human" (a window) or "rgb_array".
    - `config`: content of an ai-config.json, instead of `config_path`.
    - `start`: start of the episodes: a `racer_env.engine.Start` or a mapping with its fields.
    - `token`: token of a bridge that requires one.

    `reset(options=...)` accepts `circuit`, `start` and `config`, which apply from that episode on.

    ## Version history
    - v0: initial version. Physics, observations and rewards match those of existing bridges.
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
            raise RacerError(f"render_mode must be None, 'human' or 'rgb_array', not {render_mode!r}")
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
        observation, info = self._bridge.reset(scenario, seed)
        self._scenario, self._seeded = scenario, True
        if self.render_mode == "human":
            self._draw()
        return observation, complete_reset_info(info, scenario.config.formulas)

    def step(self, action: NDArray[np.float32]) -> tuple[Observations, float, bool, bool, Info]:
        result = self._bridge.step(action)
        if self.render_mode == "human":
            self._draw()
        return result

    def get_keys_to_action(self) -> dict[tuple[str, ...] | str, Any]:
        """Return the action of every combination of the keys W, A, S and D, for `gymnasium.utils.play.play`."""
        return {keys: DISCRETE_ACTIONS[action].copy() for keys, action in _actions_of_keys().items()}

    @property
    def component_keys(self) -> tuple[str, ...]:
        """Info keys of the reward components."""
        return component_keys(self._scenario.config)

    @property
    def track(self) -> Track:
        """Track of the current episode. Over a bridge this needs a `render_mode`."""
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
        """Return an image of the car with "rgb_array". With "human" the window shows every step by itself."""
        if self.render_mode is None:
            raise RacerError('this environment draws nothing: make it with render_mode="human" or "rgb_array"')
        return self._draw()

    def close(self) -> None:
        if not isinstance(self._bridge, ClosedBridge):
            self._bridge.close()
            self._bridge = cast(Bridge, ClosedBridge())
        if self._window is not None:
            self._window.close()
            self._window = None

    def _draw(self) -> NDArray[np.uint8] | None:
        track, car = self.track, self.car
        if self._window is None:
            self._window = open_window(self.render_mode == "human")
        return self._window.draw(track, car)


class DiscreteRacerEnv(RacerEnv):
    """
    ## Description
    `RacerEnv` with nine discrete actions.

    ## Action space
    `Discrete(9)`:

    | | full throttle | no pedal | full brake |
    |---|---|---|---|
    | left | 0 | 1 | 2 |
    | straight | 3 | 4 | 5 |
    | right | 6 | 7 | 8 |

    Everything else is as in `RacerEnv`.

    ## Version history
    - v0: initial version.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.action_space = spaces.Discrete(len(DISCRETE_ACTIONS))  # type: ignore[assignment]

    def step(self, action: Any) -> tuple[Observations, float, bool, bool, Info]:
        if not self.action_space.contains(action):
            raise RacerError(f"an action is a whole number from 0 to {len(DISCRETE_ACTIONS) - 1}, not {action!r}")
        return super().step(DISCRETE_ACTIONS[action])

    def get_keys_to_action(self) -> dict[tuple[str, ...] | str, Any]:
        return _actions_of_keys()


def _actions_of_keys() -> dict[tuple[str, ...] | str, Any]:
    """Return the discrete action of every combination of `KEYS`; with throttle and brake, the car brakes.

    No keys are an empty string: `play` refuses an empty tuple, and the action it has for unknown combinations is 0.
    """
    combinations = (keys for count in range(len(KEYS) + 1) for keys in itertools.combinations(KEYS, count))
    return {
        keys or "": 3 * (1 + ("d" in keys) - ("a" in keys)) + (2 if "s" in keys else 0 if "w" in keys else 1)
        for keys in combinations
    }
