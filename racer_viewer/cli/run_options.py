"""Options of a training run, generated from `RunConfig`: a setting is declared once, there."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin, get_type_hints

from racer_env.errors import ConfigError
from racer_viewer.cli.options import LazyParser, resolved

if TYPE_CHECKING:
    from racer_viewer.training.config import RunConfig

FLAGS = {"tracks": "--track", "begin_from": "--from"}
"""Options whose name is not that of their setting."""
METAVARS = {"tracks": "CIRCUIT", "name": "RUN", "begin_from": "MODEL", "device": "DEVICE", "teach": "REPLAY"}
"""Placeholders in `--help` of settings that are not numbers."""
COMMON_SETTINGS = (
    "algo", "tracks", "timesteps", "seed", "begin_from", "teach", "num_cars", "engine", "threads", "device", "name",
)  # fmt: skip
"""Settings that `--help` lists with the verb's own options; the others are in a group below."""
NO_OPTION = {"rewards": "an object with many values, which --config reads from a file"}
"""Settings without an option of their own, and why."""


@dataclass(frozen=True)
class Setting:
    """A field of `RunConfig`, as the command line sees it."""

    name: str
    type: Any
    default: Any
    help: str

    @property
    def flag(self) -> str:
        return FLAGS.get(self.name, "--" + self.name.replace("_", "-"))

    def describe(self) -> str:
        """Return the line of `train --settings`."""
        value = ",".join(map(str, self.default)) if isinstance(self.default, tuple) else str(self.default)
        default = "" if self.name in ("name", "rewards") else f" [{value}]"
        return f"  {self.name}{default}: {self.help}"

    def add_to(self, parser: argparse._ActionsContainer) -> None:
        """Add the option, which is None unless given; only `--algo` has a default, as the presets depend on it."""
        kind, origin, parts = self.type, get_origin(self.type), get_args(self.type)
        default = self.default if self.name == "algo" else None
        text = self.help.replace("%", "%%") + (f" (default: {default})" if default else "")
        options: dict[str, Any] = {"dest": self.name, "default": default, "help": text}
        if kind is bool:
            options["action"] = argparse.BooleanOptionalAction
        elif origin is Literal:
            options["choices"] = parts
        else:
            options["type"] = parts[0] if origin is tuple else kind
            options["metavar"] = METAVARS.get(self.name, "N" if options["type"] is int else "X")
        if origin is tuple:
            options["nargs"] = "+" if parts[1] is ... else len(parts)
        parser.add_argument(self.flag, **options)


def settings() -> Iterator[Setting]:
    """Yield every field of `RunConfig`."""
    from racer_viewer.training.config import RunConfig

    annotated = get_type_hints(RunConfig, include_extras=True)
    for field in fields(RunConfig):
        kind, text = get_args(annotated[field.name])
        yield Setting(field.name, kind, field.default, text)


def add_run_options(parser: LazyParser, own_name: bool = False) -> None:
    """Add the options that decide what is learned and how.

    Parameters:
        own_name: whether the user may name the run
    """
    parser.usage = "%(prog)s [options]"
    parser.add_later = lambda: _add_now(parser, own_name)


def _add_now(parser: LazyParser, own_name: bool) -> None:
    from racer_viewer.training.config import DEFAULT_PRESET, PRESETS

    names = ", ".join(dict.fromkeys(name for presets in PRESETS.values() for name in presets))
    parser.add_argument(
        "--preset", default=DEFAULT_PRESET, help=f"settings to start from: {names} (default: %(default)s)"
    )
    parser.add_argument("--like", type=Path, metavar="FILE", help="instead of a preset: a config.json or best.json")
    parser.add_argument("--config", type=Path, metavar="FILE", help="an ai-config.json: reward weights, episode limits")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="any setting by its name; see train --settings"
    )
    parser.add_argument(
        "--clone-only", action="store_true", help="with --teach: end after cloning; --resume goes on with PPO"
    )
    more = parser.add_argument_group("more settings", "Their defaults are those of the preset.")
    for each in settings():
        if each.name not in NO_OPTION and (own_name or each.name != "name"):
            each.add_to(parser if each.name in COMMON_SETTINGS else more)


def run_config(options: argparse.Namespace) -> RunConfig:
    """Return the config that the options ask for: a preset, then an ai-config, then single settings."""
    from racer_env.engine import load_config
    from racer_viewer.training.config import load_run_config, parse_run_config, parse_settings, preset

    like = None if options.like is None else replace(load_run_config(options.like), name="")
    if like is not None and like.engine == "ray":
        like = replace(like, engine="auto")
    values: dict[str, Any] = parse_settings(options.set)
    if options.config is not None:
        values["rewards"] = load_config(options.config)
    for each in settings():
        given = getattr(options, each.name, None)
        if given is not None and each.name != "algo":
            values[each.name] = given
    config = parse_run_config(values, like or preset(options.algo, options.preset))
    clone_only = getattr(options, "clone_only", False)
    if not config.teach:
        if clone_only:
            raise ConfigError("--clone-only needs --teach REPLAY")
    else:
        config = _with_lessons(config, "tracks" not in values and like is None, clone_only)
    if getattr(options, "bridge", None) is not None:
        return config  # the server knows its circuits
    return replace(config, tracks=tuple(resolved(name, options) for name in config.tracks))


def _with_lessons(config: RunConfig, on_their_circuits: bool, clone_only: bool) -> RunConfig:
    """Check the replays to learn from; train on their circuits unless others were asked for."""
    from racer_env.engine import circuits
    from racer_viewer.replays import load_lessons

    lessons = load_lessons(config.teach)
    if on_their_circuits:
        known, driven = {each.id for each in circuits()}, dict.fromkeys(each.replay.circuit.id for each in lessons)
        if not known.issuperset(driven):
            raise ConfigError("the laps are of a circuit of your own: name its file with --track")
        config = replace(config, tracks=tuple(driven))
    return replace(config, timesteps=config.clone_steps) if clone_only else config
