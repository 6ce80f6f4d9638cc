"""The whole configuration of a training run: one frozen dataclass, which is also its command line and its file.

Settings that are known to work on this environment, by algorithm and name.

What made the difference: a policy that begins with its foot on the pedal (`first_action`), little noise on the actions
from the start, and a short horizon (gamma 0.98): the car can take nearly every bend at full speed, so all that is to be
learned is the line, and noise hides what a better line is worth.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal, get_origin, get_type_hints

import msgspec

from racer_env.engine import Config, parse_config
from racer_env.errors import ConfigError

Algorithm = Literal["ppo", "sac"]
Starts = Literal["line", "anywhere"]
Activation = Literal["tanh", "relu"]

PAID_UNITS = 1000.0
"""Way that a run with `progress_in_units` pays as much for as others for a lap."""


@dataclass(frozen=True)
class RunConfig:
    """What is learned, where and how. Presets are made from these defaults, which are for PPO."""

    algo: Annotated[Algorithm, "ppo or sac"] = "ppo"
    tracks: Annotated[tuple[str, ...], "circuits to learn on; of several, each episode draws one"] = ("track-01",)
    timesteps: Annotated[int, "steps to learn for, of all cars together"] = 1_000_000
    name: Annotated[str, "name of the run; by default the algorithm, the circuit and a number"] = ""
    seed: Annotated[int, "seed of everything random"] = 0
    num_cars: Annotated[int, "cars that learn at the same time"] = 64
    begin_from: Annotated[str, "a model whose weights and normalisation it begins with; all else is new"] = ""
    device: Annotated[str, "where torch computes: cpu, cuda or auto; small networks are fastest on the cpu"] = "cpu"
    rewards: Annotated[Config, "the ai-config: reward weights, episode limits"] = field(default_factory=Config)

    progress_in_units: Annotated[
        bool, "pay progress per 1,000 units instead of per lap, so that circuits of all lengths are worth the same"
    ] = False
    starts: Annotated[Starts, "where episodes start: line, or anywhere on the road at any speed"] = "line"
    learning_rate: Annotated[float, "of the optimiser, at the beginning"] = 1e-3
    final_learning_rate: Annotated[float, "at the end; in between it falls evenly"] = 2e-4
    gamma: Annotated[float, "discount of a tick"] = 0.98
    net: Annotated[tuple[int, ...], "hidden layers of the policy and of the value function"] = (64, 64)
    activation: Annotated[Activation, "of the hidden layers: tanh or relu"] = "tanh"
    batch_size: Annotated[int, "steps per gradient step"] = 2048

    n_steps: Annotated[int, "PPO: ticks of every car between two updates"] = 128
    n_epochs: Annotated[int, "PPO: how often an update goes over them"] = 5
    gae_lambda: Annotated[float, "PPO: how far advantages look ahead"] = 0.95
    clip_range: Annotated[float, "PPO: how far a step may change the policy"] = 0.2
    ent_coef: Annotated[float, "PPO: weight of the entropy bonus"] = 0.0
    vf_coef: Annotated[float, "PPO: weight of the value function's loss"] = 0.5
    max_grad_norm: Annotated[float, "PPO: where gradients are clipped"] = 0.5
    first_action: Annotated[
        tuple[float, float, float], "PPO: what a policy that knows nothing does: steer, throttle, brake before clipping"
    ] = (0.0, 1.0, -1.0)
    log_std: Annotated[float, "logarithm of the noise on actions, at the beginning"] = -1.0
    final_log_std: Annotated[float, "PPO: at the end it is at most this; in between the limit falls evenly"] = -2.5

    buffer_size: Annotated[int, "SAC: steps that are remembered"] = 300_000
    learning_starts: Annotated[int, "SAC: steps before it learns"] = 10_000
    train_freq: Annotated[int, "SAC: ticks between two updates"] = 8
    gradient_steps: Annotated[int, "SAC: gradient steps of an update"] = 8
    tau: Annotated[float, "SAC: how fast the target networks follow"] = 0.02

    clip_obs: Annotated[float, "normalised observations are clipped here"] = 10.0
    norm_reward: Annotated[bool, "divide rewards by the spread of returns"] = True
    checkpoint_every: Annotated[int, "steps between two checkpoints"] = 500_000
    evaluate_every: Annotated[int, "steps between two evaluations on lap time, for the best so far"] = 100_000

    def __post_init__(self) -> None:
        """Refuse what cannot be learned with, by name."""
        for name in ("timesteps", "num_cars", "n_steps", "n_epochs", "batch_size", "buffer_size", "train_freq"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1, not {getattr(self, name)}")
        for name in ("checkpoint_every", "evaluate_every", "learning_starts", "gradient_steps"):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name} must not be negative, not {getattr(self, name)}")
        for name in ("gamma", "gae_lambda", "tau"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ConfigError(f"{name} must be from 0 to 1, not {getattr(self, name)}")
        for name in ("learning_rate", "clip_range", "max_grad_norm", "clip_obs"):
            if not getattr(self, name) > 0.0:
                raise ConfigError(f"{name} must be above 0, not {getattr(self, name)}")
        if self.name and not re.fullmatch(r"[\w][\w.-]*", self.name):
            raise ConfigError(f"name: letters, digits, - and _ only, not {self.name!r}")
        if not self.tracks:
            raise ConfigError("tracks: at least one circuit is needed")
        if not self.net or min(self.net) < 1:
            raise ConfigError(f"net: sizes of hidden layers, as 64,64; not {self.net}")

    @property
    def circuits(self) -> tuple[str, ...]:
        """Those it learns on, each once: one that is there twice is only drawn more often."""
        return tuple(dict.fromkeys(self.tracks))

    def to_json(self) -> str:
        """The content of a run's config.json."""
        return msgspec.json.format(msgspec.json.encode(self)).decode() + "\n"


def parse_run_config(values: Mapping[str, Any], base: RunConfig | None = None) -> RunConfig:
    """A checked config from JSON values, on top of another; what is unknown or of the wrong type is named."""
    known = [each.name for each in fields(RunConfig)]
    for key in values:
        if key not in known:
            close = difflib.get_close_matches(key, known, n=1)
            raise ConfigError(f"unknown setting {key!r}; " + (f"did you mean {close[0]}?" if close else "see --help"))
    checked: dict[str, Any] = {}
    for each in fields(RunConfig):
        if each.name in values:
            value = values[each.name]
            checked[each.name] = parse_config(value) if each.name == "rewards" else _convert(each.name, value)
    return replace(base or RunConfig(), **checked)


def load_run_config(path: Path) -> RunConfig:
    """Read a run's config.json."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror or error}") from None
    except ValueError as error:
        raise ConfigError(f"{path} is not JSON: {error}") from None
    if not isinstance(values, dict):
        raise ConfigError(f"{path}: an object with the settings of a run is expected")
    return parse_run_config(values)


def parse_settings(settings: Sequence[str]) -> dict[str, Any]:
    """`key=value` from the command line: numbers and words as they are, lists with commas."""
    values: dict[str, Any] = {}
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals:
            raise ConfigError(f"--set takes key=value, not {setting!r}")
        values[key] = text
    return values


_TYPES = get_type_hints(RunConfig)


def _convert(name: str, value: Any) -> Any:
    """A value of the setting's type, from JSON or from text of the command line."""
    kind = _TYPES[name]
    text = isinstance(value, str)
    if text and get_origin(kind) is tuple:
        value = [part.strip() for part in value.split(",") if part.strip()]
    try:
        return msgspec.convert(value, kind, strict=not text)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{name}: {error}") from None


DEFAULT_PRESET = "quick"

CIRCUITS = tuple(f"track-0{number}" for number in range(1, 7))
CLEAN = {
    "weights": {"offTrackPenalty": -0.004, "wallPenalty": -0.01},
    "episode": {"maxSteps": 600},
}
"""Leaving the road costs more than it gains. Short episodes: with starts anywhere, more of them see more corners."""

TIDY = {"weights": {"offTrackPenalty": -0.002}, "episode": {"maxSteps": 600}}
"""Leaving the road costs as much as it gains: learns faster than the usual weights, and stays on the road more."""

CHAMPION: dict[str, Any] = {
    "tracks": [*CIRCUITS, *CIRCUITS, *(f"random:{seed}" for seed in range(20))],
    "timesteps": 8_000_000,
    "num_cars": 128,
    "batch_size": 4096,
    "net": [128, 128],
    "starts": "anywhere",
    "progress_in_units": True,
    "rewards": CLEAN,
    "final_learning_rate": 1e-4,
    "log_std": -1.6,
    "final_log_std": -3.0,
    "evaluate_every": 250_000,
    "checkpoint_every": 1_000_000,
}
"""One policy for every circuit. Many circuits make it better on each than that one alone would."""

PRESETS: dict[str, dict[str, dict[str, Any]]] = {
    "ppo": {
        "quick": {"starts": "anywhere", "progress_in_units": True, "rewards": TIDY},
        "champion": CHAMPION,
        "specialist": {
            **CHAMPION,
            "begin_from": "champion",
            "tracks": ["track-01"],
            "timesteps": 4_000_000,
            "learning_rate": 5e-4,
            "log_std": -2.0,
            "evaluate_every": 100_000,
        },
    },
    "sac": {
        "quick": {
            "num_cars": 16,
            "timesteps": 800_000,
            "learning_rate": 7.3e-4,
            "final_learning_rate": 7.3e-4,
            "gamma": 0.98,
            "batch_size": 256,
            "activation": "relu",
            "log_std": -3.0,
            "evaluate_every": 20_000,
            "checkpoint_every": 100_000,
        },
    },
}


def preset(algo: str, name: str = DEFAULT_PRESET) -> RunConfig:
    """The config of a preset."""
    if algo not in PRESETS:
        raise ConfigError(f"unknown algorithm {algo!r}; known: {', '.join(PRESETS)}")
    if name not in PRESETS[algo]:
        raise ConfigError(f"{algo} has no preset {name!r}; known: {', '.join(PRESETS[algo])}")
    return parse_run_config({"algo": algo, **PRESETS[algo][name]})
