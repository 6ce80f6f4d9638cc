"""Configuration of a training run: one frozen dataclass that declares every setting, and presets made from it.

`RunConfig` is the only declaration of a setting: its type, its default and its help text. The command line, the file
config.json and the window's form are generated from it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, get_origin, get_type_hints

import msgspec
import orjson

from racer_env.engine import ANYWHERE, Config, Start, parse_config
from racer_env.engine.tick import OBSERVATION_SIZE
from racer_env.errors import ConfigError, os_reason, short, suggestion
from racer_viewer.paths import open_regular
from racer_viewer.plain_text import is_utf8, plain_line

Algorithm = Literal["ppo", "sac"]
Starts = Literal["line", "anywhere"]
Activation = Literal["tanh", "relu"]
Engine = Literal["auto", "native", "sb3", "ray"]

MAX_CONFIG_BYTES = 2**20
"""Maximum size of a config.json [bytes]."""
CIRCUITS_FOLDER = "circuits"
"""Folder of the circuits that a run keeps: copies of circuit files, and those it was changed to while it learned."""
LAPS_FOLDER = "laps"
"""Folder of the replays that a run learns from: copies, so that it can be resumed or repeated without the originals."""
_KEPT = re.compile(
    rf"\./({CIRCUITS_FOLDER}/([0-9]{{1,6}}/)?[^/\\]{{1,200}}\.json|{LAPS_FOLDER}/[^/\\]{{1,200}}\.racer)"
)
"""Names in a run's files of the files in these folders; the run may be moved."""
STARTS: Mapping[Starts, Start] = {"line": Start(), "anywhere": ANYWHERE}
PAID_UNITS = 1000.0
"""Distance [units] that earns the progress reward of one lap when `progress_in_units` is set."""
MAX_NAME_LENGTH = 80
"""Maximum length of a run's name; file names have at most 255 bytes, and checkpoints append to the name."""
MAX_TRACKS = 256
MAX_LESSONS = 64
"""Maximum number of replays that a run learns from."""
MAX_LAYERS = 8
MAX_WEIGHTS = 3_000_000
"""Maximum number of weights of one network; SAC saves five of them, in a file that `agents.archive` must accept."""
MAX_SAMPLES = 2**24
"""Maximum number of samples of a rollout, which take about 4 GB."""
MAX_FIRST_ACTION = 100.0
DEVICES = r"cpu|mps|auto|cuda(:\d{1,2})?"
"""Names of torch devices."""


@dataclass(frozen=True)
class Limits:
    """Limits of a number. above: True if `lowest` itself is not allowed."""

    lowest: float
    highest: float
    above: bool = False

    def check(self, name: str, value: float) -> None:
        """Raise ConfigError for a number outside of the limits, or NaN."""
        if value <= self.highest and (value > self.lowest if self.above else value >= self.lowest):
            return
        text = f"{value:,}" if abs(value) < MAX_SHOWN else "NaN" if value != value else "a number that large"
        if self.highest == 1.0 and not self.above:
            raise ConfigError(f"{name} must be from 0 to 1, not {text}")
        if value > self.highest:
            raise ConfigError(f"{name} must be at most {self.highest:,}, not {text}")
        raise ConfigError(f"{name} must be {'above' if self.above else 'at least'} {self.lowest:,}, not {text}")


MAX_SHOWN = 1e15
"""Size from which a number is not repeated in a message."""
MAX_STEPS = 10**12
LIMITS = {
    "timesteps": Limits(1, MAX_STEPS),
    "seed": Limits(0, 2**32 - 1),
    "threads": Limits(0, 64),
    "num_cars": Limits(1, 65_536),
    "n_steps": Limits(1, 1_000_000),
    "n_epochs": Limits(1, 1000),
    "batch_size": Limits(1, 2**20),
    "buffer_size": Limits(1, 10_000_000),
    "train_freq": Limits(1, 1_000_000),
    "gradient_steps": Limits(0, 1_000_000),
    "learning_starts": Limits(0, MAX_STEPS),
    "clone_steps": Limits(1, MAX_STEPS),
    "teach_weight": Limits(0.0, 1e6),
    "teach_until": Limits(0.0, 1.0),
    "checkpoint_every": Limits(0, MAX_STEPS),
    "evaluate_every": Limits(0, MAX_STEPS),
    "gamma": Limits(0.0, 1.0),
    "gae_lambda": Limits(0.0, 1.0),
    "tau": Limits(0.0, 1.0),
    "learning_rate": Limits(0.0, 100.0, above=True),
    "final_learning_rate": Limits(0.0, 100.0),
    "clip_range": Limits(0.0, 1e6, above=True),
    "max_grad_norm": Limits(0.0, 1e9, above=True),
    "clip_obs": Limits(0.0, 1e9, above=True),
    "ent_coef": Limits(-1e6, 1e6),
    "vf_coef": Limits(0.0, 1e6),
    "log_std": Limits(-30.0, 10.0),
    "final_log_std": Limits(-30.0, 10.0),
}
"""Limits of every setting that is a number."""


def _check_text(name: str, text: str) -> None:
    """Raise ConfigError for text that no file could store, such as a file name that is not UTF-8."""
    if "\0" in text or not is_utf8(text):
        raise ConfigError(
            f"{name}: {plain_line(text[:MAX_NAME_LENGTH])} is not valid UTF-8: rename the file, then give its new name"
        )


@dataclass(frozen=True)
class LinearSchedule:
    """Schedule from `first` to `last`."""

    first: float
    last: float

    def __call__(self, remaining: float) -> float:
        """Return the value at the remaining share of the run: from 1 to 0, below 0 if the last rollout exceeds it."""
        return self.last + (self.first - self.last) * max(0.0, remaining)


@dataclass(frozen=True)
class RunConfig:
    """Settings of a training run. The defaults suit PPO; presets override some of them."""

    algo: Annotated[Algorithm, "learning algorithm: ppo or sac"] = "ppo"
    tracks: Annotated[tuple[str, ...], "circuits to train on; each episode draws one of them"] = ("track-01",)
    timesteps: Annotated[int, "environment steps to train for, summed over all cars"] = 1_000_000
    name: Annotated[str, "name of the run; default: algorithm, circuit and a number"] = ""
    seed: Annotated[int, "seed of all random numbers"] = 0
    num_cars: Annotated[int, "cars that drive at the same time"] = 64
    begin_from: Annotated[str, "model whose weights and normalisation the run starts with"] = ""
    engine: Annotated[
        Engine, "what learns: native, sb3 (stable-baselines3), ray, or auto: native for PPO on the cpu, else sb3"
    ] = "auto"
    threads: Annotated[
        int, "native engine: threads that learn; 0 takes one per free core, at most 4, and leaves one core to a window"
    ] = 0
    device: Annotated[str, "torch device: cpu, cuda or auto; the cpu is fastest for small networks"] = "cpu"
    rewards: Annotated[Config, "the ai-config: reward weights and episode limits"] = field(default_factory=Config)

    progress_in_units: Annotated[
        bool, "pay progress per 1,000 units instead of per lap, so that all circuits are worth the same"
    ] = False
    starts: Annotated[Starts, "start of episodes: line, or anywhere on the road at any speed"] = "line"
    learning_rate: Annotated[float, "learning rate at the start of the run"] = 1e-3
    final_learning_rate: Annotated[float, "learning rate at the end of the run; it falls linearly"] = 2e-4
    gamma: Annotated[float, "discount factor per tick"] = 0.98
    net: Annotated[tuple[int, ...], "sizes of the hidden layers of policy and value function"] = (64, 64)
    activation: Annotated[Activation, "activation of the hidden layers: tanh or relu"] = "tanh"
    batch_size: Annotated[int, "minibatch size of a gradient step"] = 2048

    n_steps: Annotated[int, "PPO: ticks per car in one rollout"] = 128
    n_epochs: Annotated[int, "PPO: passes over the rollout in one update"] = 5
    gae_lambda: Annotated[float, "PPO: lambda of generalised advantage estimation"] = 0.95
    clip_range: Annotated[float, "PPO: clip range of the policy ratio"] = 0.2
    ent_coef: Annotated[float, "PPO: weight of the entropy bonus"] = 0.0
    vf_coef: Annotated[float, "PPO: weight of the value loss"] = 0.5
    max_grad_norm: Annotated[float, "PPO: maximum norm of a gradient"] = 0.5
    first_action: Annotated[
        tuple[float, float, float], "PPO: mean action of an untrained policy: steer, throttle, brake before clipping"
    ] = (0.0, 1.0, -1.0)
    log_std: Annotated[float, "logarithm of the action noise at the start of the run"] = -1.0
    final_log_std: Annotated[
        float, "PPO: upper limit of log_std at the end of the run; the limit falls linearly"
    ] = -2.5

    teach: Annotated[
        tuple[str, ...], "replays to learn from: the policy is first cloned from their clean laps, then PPO goes on"
    ] = ()
    clone_steps: Annotated[int, "with teach: steps that the cars drive while the policy is cloned"] = 100_000
    teach_weight: Annotated[float, "with teach: weight of the cloning loss beside PPO's, which falls linearly"] = 0.1
    teach_until: Annotated[float, "with teach: part of the run after which that weight is 0"] = 0.5

    buffer_size: Annotated[int, "SAC: size of the replay buffer in steps"] = 300_000
    learning_starts: Annotated[int, "SAC: steps before the first update"] = 10_000
    train_freq: Annotated[int, "SAC: ticks between two updates"] = 8
    gradient_steps: Annotated[int, "SAC: gradient steps per update"] = 8
    tau: Annotated[float, "SAC: update rate of the target networks"] = 0.02

    clip_obs: Annotated[float, "limit of normalised observations"] = 10.0
    norm_reward: Annotated[bool, "normalise rewards by the standard deviation of returns"] = True
    checkpoint_every: Annotated[int, "steps between two checkpoints; 0 saves none"] = 500_000
    evaluate_every: Annotated[int, "steps between two evaluations, which select the best policy; 0 evaluates never"] = (
        100_000
    )

    def __post_init__(self) -> None:
        """Raise ConfigError for a value that no run can work with."""
        for name, limits in LIMITS.items():
            limits.check(name, getattr(self, name))
        for name in ("name", "begin_from", "device"):
            _check_text(name, getattr(self, name))
        if self.name and not re.fullmatch(r"[\w][\w.-]*", self.name):
            raise ConfigError(f"name: use letters, digits, . - and _ only, not {self.name!r}")
        if len(self.name) > MAX_NAME_LENGTH:
            raise ConfigError(f"name: use at most {MAX_NAME_LENGTH} characters, not {len(self.name)}")
        if not re.fullmatch(DEVICES, self.device):
            raise ConfigError(f"device: use cpu, cuda, cuda:1, mps or auto, not {self.device[:MAX_NAME_LENGTH]!r}")
        if not self.tracks:
            raise ConfigError("tracks: expected at least one circuit")
        if len(self.tracks) > MAX_TRACKS:
            raise ConfigError(f"tracks: use at most {MAX_TRACKS} circuits, not {len(self.tracks):,}")
        if len(self.teach) > MAX_LESSONS:
            raise ConfigError(f"teach: use at most {MAX_LESSONS} replays, not {len(self.teach):,}")
        for name, paths in (("tracks", self.tracks), ("teach", self.teach)):
            for path in paths:
                _check_text(name, path)
        if not all(abs(value) <= MAX_FIRST_ACTION for value in self.first_action):
            raise ConfigError(f"first_action: use numbers from -{MAX_FIRST_ACTION:g} to {MAX_FIRST_ACTION:g}")
        self._check_engine()
        self._check_sizes()

    def _check_engine(self) -> None:
        """Raise ConfigError for an engine that cannot train this."""
        if self.engine == "native" and self.algo != "ppo":
            raise ConfigError(f"--engine native trains with PPO only; use --engine sb3 for {self.algo.upper()}")
        if self.engine == "native" and self.device != "cpu":
            raise ConfigError(f"--engine native trains on the cpu only; use --engine sb3 with --device {self.device}")
        if self.teach and (self.local_engine != "native" or self.engine == "ray"):
            raise ConfigError(
                "teach: only the native engine learns from laps: use PPO on the cpu, with --engine native"
            )
        if self.teach and self.begin_from:
            raise ConfigError("teach: a run begins with a clone or with begin_from, not with both")

    def _check_sizes(self) -> None:
        """Raise ConfigError for a network, a rollout or a minibatch that cannot be learned with."""
        if not self.net or min(self.net) < 1:
            raise ConfigError(f"net: expected sizes of hidden layers such as 64,64, not {self.net[:MAX_LAYERS]}")
        if len(self.net) > MAX_LAYERS:
            raise ConfigError(f"net: use at most {MAX_LAYERS} hidden layers, not {len(self.net):,}")
        weights = sum(size * after for size, after in pairwise((OBSERVATION_SIZE, *self.net)))
        if weights > MAX_WEIGHTS:
            raise ConfigError(f"net: {weights:,} weights are more than {MAX_WEIGHTS:,}; use smaller layers, as 256,256")
        if self.algo == "sac":
            return
        samples = self.num_cars * self.n_steps
        if samples < 2:
            raise ConfigError("a rollout of one car and one step is too short: raise num_cars or n_steps")
        if samples > MAX_SAMPLES:
            raise ConfigError(
                f"num_cars times n_steps must be at most {MAX_SAMPLES:,}, not {samples:,}: lower one of them"
            )
        if self.batch_size < 2:
            raise ConfigError(f"batch_size must be at least 2 for PPO, not {self.batch_size}")

    @property
    def local_engine(self) -> Literal["native", "sb3"]:
        """Engine that trains this in one process; a run that began on Ray continues with the default one."""
        if self.engine in ("native", "sb3"):
            return self.engine
        return "native" if self.algo == "ppo" and self.device == "cpu" else "sb3"

    @property
    def learning_rates(self) -> LinearSchedule:
        return LinearSchedule(self.learning_rate, self.final_learning_rate)

    @property
    def log_std_limits(self) -> LinearSchedule:
        """Schedule of the upper limit of PPO's action noise."""
        return LinearSchedule(self.log_std, self.final_log_std)

    def teach_weights(self, remaining: float) -> float:
        """Return the weight of the cloning loss at the remaining share of the run."""
        left = 1.0 - (1.0 - remaining) / self.teach_until if self.teach_until else 0.0
        return self.teach_weight * max(0.0, left)

    @property
    def circuits(self) -> tuple[str, ...]:
        """Distinct circuits of `tracks`, in order; a circuit listed twice is only drawn more often."""
        return tuple(dict.fromkeys(self.tracks))

    def to_json(self) -> str:
        """Return the content of a run's config.json."""
        return msgspec.json.format(msgspec.json.encode(self)).decode() + "\n"


def parse_run_config(values: Mapping[str, Any], base: RunConfig | None = None) -> RunConfig:
    """Return `base` with these JSON values; raise ConfigError for an unknown name or a wrong type."""
    known = [each.name for each in fields(RunConfig)]
    for key in values:
        if key not in known:
            hint = suggestion(key[:MAX_NAME_LENGTH], known, "see train --settings")
            raise ConfigError(f"unknown setting {short(key)}; {hint}")
    checked: dict[str, Any] = {}
    for each in fields(RunConfig):
        if each.name in values:
            value = values[each.name]
            checked[each.name] = parse_config(value) if each.name == "rewards" else _convert(each.name, value)
    return replace(base or RunConfig(), **checked)


def kept_name(name: str, folder: Path) -> str:
    """Return the name in a run's files of a circuit or replay that the run keeps in its folder; other names stay."""
    try:
        kept = f"./{Path(name).relative_to(folder.absolute()).as_posix()}"
    except ValueError:
        return name
    return kept if _KEPT.fullmatch(kept) else name


def name_in_run(name: str, folder: Path) -> str:
    """Return the path of a circuit or replay that a run's files name; names of others stay."""
    return str(folder.absolute() / name[2:]) if _KEPT.fullmatch(name) else name


def load_run_config(path: Path) -> RunConfig:
    """Read a run's config.json."""
    try:
        with open_regular(path) as file:
            content = file.read(MAX_CONFIG_BYTES + 1)
        if len(content) > MAX_CONFIG_BYTES:
            raise ConfigError(f"{path} is larger than {MAX_CONFIG_BYTES // 2**20} MiB: it is not the config of a run")
        values = orjson.loads(content)
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {os_reason(error)}") from None
    except ValueError as error:
        raise ConfigError(f"{path} is not JSON: {error}") from None
    if not isinstance(values, dict):
        raise ConfigError(f"{path}: expected an object with the settings of a run")
    config = parse_run_config(values)
    folder = path.parent
    return replace(
        config,
        tracks=tuple(name_in_run(name, folder) for name in config.tracks),
        teach=tuple(name_in_run(name, folder) for name in config.teach),
    )


def parse_settings(settings: Sequence[str]) -> dict[str, Any]:
    """Parse `key=value` texts of the command line; lists are separated by commas."""
    values: dict[str, Any] = {}
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals:
            raise ConfigError(f"--set takes key=value, not {short(setting)}")
        values[key] = text
    return values


_TYPES = get_type_hints(RunConfig)


def _convert(name: str, value: Any) -> Any:
    """Convert a JSON value, or text of the command line, to the type of a setting."""
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
"""Rewards with which leaving the road costs more than it gains. Episodes are short: with starts anywhere, more episodes
see more corners."""

TIDY = {"weights": {"offTrackPenalty": -0.002}, "episode": {"maxSteps": 600}}
"""Rewards with which leaving the road costs as much as it gains. Cars learn faster than with the default weights, and
leave the road less."""

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
"""Preset for one policy on every circuit. It is faster on each circuit than a policy trained on that circuit alone."""

# Three choices matter most: an untrained policy that already accelerates (`first_action`), little action noise from the
# start, and a short horizon (gamma 0.98). The car takes nearly every corner at full speed, so only the racing line has
# to be learned, and noise hides the value of a better line.
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
    """Return the config of a preset."""
    if algo not in PRESETS:
        raise ConfigError(f"unknown algorithm {algo!r}; known: {', '.join(PRESETS)}")
    if name not in PRESETS[algo]:
        raise ConfigError(f"{algo} has no preset {name!r}; known: {', '.join(PRESETS[algo])}")
    return parse_run_config({"algo": algo, **PRESETS[algo][name]})
