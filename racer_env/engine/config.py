"""Reward weights, reward terms and episode limits: the ai-config JSON, which is also the `config` of the protocol."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from racer_env.engine.rewards import REWARD_COMPONENTS, Component
from racer_env.engine.terms import TERM_RULES, parse_terms, program_of, term_components, write_program
from racer_env.errors import ConfigError, os_reason, short, suggestion

MAX_FILE_BYTES = 256 * 2**10
"""Maximum size of an ai-config file [bytes]; a complete one has 500."""
MAX_NUMBER = 1e9
"""Maximum size of a weight; far larger ones give rewards that are not finite."""
MAX_KEY_LENGTH = 60
"""Maximum length of an unknown key in a message [characters]; the rest is cut off before keys are compared."""
MAX_UNKNOWN_KEYS = 20
"""Maximum number of unknown keys of a section that are reported."""
Ticks = Annotated[int, msgspec.Meta(ge=0, le=2**31)]


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
    """Ticks after which an episode is truncated; with 0 in its first tick, as with 1."""
    stillness_timeout_ticks: Ticks = 180
    """Ticks in a row of standing still after which an episode is terminated; with 0 in its first tick."""


RULES = np.dtype([
    *((name, "f8") for name in Weights.__struct_fields__), *((name, "i8") for name in EpisodeLimits.__struct_fields__),
    *TERM_RULES,
], align=True)  # fmt: skip
"""Reward weights, episode limits and the program of the terms, as compiled code reads them."""


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The whole ai-config. Missing keys have their defaults.

    terms: formula of each reward term by its name; unset without terms, so that nothing is written about them.
    """

    weights: Weights = Weights()
    episode: EpisodeLimits = EpisodeLimits()
    terms: dict[str, str] | msgspec.UnsetType = msgspec.UNSET

    @property
    def formulas(self) -> dict[str, str]:
        """Formula of each reward term by its name; empty without terms."""
        return {} if isinstance(self.terms, msgspec.UnsetType) else self.terms

    @property
    def components(self) -> tuple[Component, ...]:
        """All reward components: those of the table, then the terms."""
        return (*REWARD_COMPONENTS, *term_components(self.formulas)) if self.terms else REWARD_COMPONENTS

    def table(self) -> NDArray[np.void]:
        """Return the config as a record that compiled code reads. Raises FormulaError."""
        record = np.zeros(1, RULES)
        for section in (self.weights, self.episode):
            for name in section.__struct_fields__:
                record[name] = getattr(section, name)
        write_program(program_of(self.formulas), record)
        return record

    def to_json(self) -> dict[str, Any]:
        """Return the complete ai-config JSON."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        return plain


class UnknownKey(NamedTuple):
    """Key of a config that has no meaning.

    place: section that has the key, as `config.weights`.
    known: keys of that section.
    """

    place: str
    key: str
    known: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.place}: unknown key {self.key!r}; {suggestion(self.key, self.known)}"


def parse_config(
    content: Config | Mapping[str, Any] | bytes | str | None, unknown: list[UnknownKey] | None = None
) -> Config:
    """Return the checked config of a JSON text or a parsed mapping; None gives the default.

    unknown: list that unknown keys are added to; without it they raise a ConfigError.
    """
    if isinstance(content, Config):
        return content
    if isinstance(content, (bytes, str)):
        try:
            content = msgspec.json.decode(content)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise ConfigError(f"config is not JSON: {error}") from None
    if content is None:
        return Config()
    if not isinstance(content, Mapping):
        raise ConfigError(f"config must be an object with weights, terms and episode, not {type(content).__name__}")
    sections = _known_values("config", content, Config, unknown)
    terms = parse_terms(sections.pop("terms", {}))
    for section, kind in (("weights", Weights), ("episode", EpisodeLimits)):
        values = sections.get(section, {})
        if not isinstance(values, Mapping):
            raise ConfigError(f"config.{section} must be an object, not {type(values).__name__}")
        values = _known_values(f"config.{section}", values, kind, unknown)
        sections[section] = {key: _number(f"config.{section}.{key}", value) for key, value in values.items()}
    sections["episode"] = {key: _whole_number(value) for key, value in sections["episode"].items()}
    try:
        return msgspec.convert({**sections, "terms": terms} if terms else sections, Config)
    except msgspec.ValidationError as error:
        raise ConfigError(f"config: {error}") from None


def load_config(path: str | Path) -> Config:
    """Read and check an ai-config.json file."""
    try:
        if Path(path).is_fifo():
            raise ConfigError("is a pipe, which may never have an end: give a file")
        with Path(path).open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
        if len(content) > MAX_FILE_BYTES:
            raise ConfigError(f"is larger than {MAX_FILE_BYTES // 2**10} KiB: it is not an ai-config")
        return parse_config(content)
    except OSError as error:
        raise ConfigError(f"cannot read config {path}: {os_reason(error)}") from None
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def _known_values(
    place: str, values: Mapping[str, Any], kind: type[msgspec.Struct], unknown: list[UnknownKey] | None
) -> dict[str, Any]:
    """Return the values whose keys are fields of `kind`."""
    fields = kind.__struct_encode_fields__
    unknown_keys = islice((key for key in values if key not in fields), MAX_UNKNOWN_KEYS)
    others = [UnknownKey(place, str(key)[:MAX_KEY_LENGTH], fields) for key in unknown_keys]
    if others and unknown is None:
        raise ConfigError(str(others[0]))
    if unknown is not None:
        unknown += others
    return {key: value for key, value in values.items() if key in fields}


def _number(place: str, value: Any) -> int | float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ConfigError(f"{place} must be a number, not {short(value)}")
    if not abs(value) <= MAX_NUMBER:
        raise ConfigError(f"{place} must be finite and at most {MAX_NUMBER:g} in size")
    return value


def _whole_number(value: int | float) -> int | float:
    """Return a whole number as int: other programs write 3.0 or 1e6 for a number of ticks."""
    return int(value) if value == int(value) else value
