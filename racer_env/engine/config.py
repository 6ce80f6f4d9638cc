"""Reward weights and episode limits: the ai-config JSON, which is also the `config` of the protocol."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from racer_env.engine.rewards import REWARD_COMPONENTS
from racer_env.errors import ConfigError

MAX_NUMBER = 1e9
"""Maximum size of a weight; far larger ones give rewards that are not finite."""
Ticks = Annotated[int, msgspec.Meta(ge=1, le=2**31)]


if TYPE_CHECKING:

    class Weights(msgspec.Struct, frozen=True):
        """Reward weights as a type checker sees them."""

        def __init__(self, **weights: float) -> None: ...
        def __getattr__(self, name: str) -> float: ...

else:
    Weights = msgspec.defstruct(
        "Weights",
        [
            *((each.weight, float, each.default) for each in REWARD_COMPONENTS),
            ("stillness_speed_threshold", float, 2.0),
        ],
        namespace={"__doc__": "Weights of the reward components, and the speed [units/s] below which a car is still."},
        module=__name__,
        frozen=True,
        forbid_unknown_fields=True,
        rename="camel",
    )


class EpisodeLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Limits of an episode."""

    max_steps: Ticks = 3000
    """Ticks after which an episode is truncated."""
    stillness_timeout_ticks: Ticks = 180
    """Ticks in a row of standing still after which an episode is terminated."""


RULES = np.dtype([
    *((name, "f8") for name in Weights.__struct_fields__), *((name, "i8") for name in EpisodeLimits.__struct_fields__),
])  # fmt: skip
"""Reward weights and episode limits, as compiled code reads them."""


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The whole ai-config. Missing keys have their defaults."""

    weights: Weights = Weights()
    episode: EpisodeLimits = EpisodeLimits()

    def table(self) -> NDArray[np.void]:
        """Return the config as a record that compiled code reads."""
        return np.array([(*msgspec.structs.astuple(self.weights), *msgspec.structs.astuple(self.episode))], RULES)

    def to_json(self) -> dict[str, Any]:
        """Return the complete ai-config JSON."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        return plain


def parse_config(content: Config | Mapping[str, Any] | bytes | str | None) -> Config:
    """Return the checked config of a JSON text or a parsed mapping; None gives the default."""
    if isinstance(content, Config):
        return content
    if isinstance(content, (bytes, str)):
        try:
            content = msgspec.json.decode(content)
        except msgspec.DecodeError as error:
            raise ConfigError(f"config is not JSON: {error}") from None
    if content is None:
        return Config()
    if not isinstance(content, Mapping):
        raise ConfigError(f"config must be an object with weights and episode, not {type(content).__name__}")
    _check_keys("config", content, Config)
    for section, kind in (("weights", Weights), ("episode", EpisodeLimits)):
        values = content.get(section, {})
        if not isinstance(values, Mapping):
            raise ConfigError(f"config.{section} must be an object, not {type(values).__name__}")
        _check_keys(f"config.{section}", values, kind)
        _check_numbers(f"config.{section}", values)
    try:
        return msgspec.convert(content, Config)
    except msgspec.ValidationError as error:
        raise ConfigError(f"config: {error}") from None


def load_config(path: str | Path) -> Config:
    """Read and check an ai-config.json file."""
    try:
        return parse_config(Path(path).read_bytes())
    except OSError as error:
        raise ConfigError(f"cannot read config {path}: {error.strerror or error}") from None
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def _check_keys(where: str, values: Mapping[str, Any], kind: type[msgspec.Struct]) -> None:
    known = kind.__struct_encode_fields__
    for key in values:
        if key not in known:
            close = difflib.get_close_matches(str(key), known, n=1)
            meant = f"; did you mean {close[0]}?" if close else f"; known: {', '.join(known)}"
            raise ConfigError(f"{where}: unknown key {key!r}{meant}")


def _check_numbers(where: str, values: Mapping[str, Any]) -> None:
    for key, value in values.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise ConfigError(f"{where}.{key} must be a number, not {value!r}")
        if not abs(value) <= MAX_NUMBER:
            raise ConfigError(f"{where}.{key} must be finite and at most {MAX_NUMBER:g} in size")
