"""Arguments of environments: makes scenarios from them and opens local or remote bridges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from racer_env.bridge.client import BridgeClient, RemoteBatch
from racer_env.bridge.embedded import EmbeddedBatch, EmbeddedBridge
from racer_env.bridge.interface import Batch, Bridge, Scenario
from racer_env.bridge.shadow_car import ShadowedClient
from racer_env.engine import Config, Start, load_config, parse_config, parse_start
from racer_env.errors import ConfigError, short, suggestion

OPTIONS = ("circuit", "start", "config")
"""Options of `reset`."""


def make_scenario(
    track_id: str | Sequence[str],
    config_path: str | None,
    config: Config | Mapping[str, Any] | None,
    start: Start | Mapping[str, Any] | None,
    redraw: bool,
) -> Scenario:
    """Return the scenario of an environment's arguments."""
    if config_path is not None and config is not None:
        raise ConfigError("give config_path or config, not both")
    checked = load_config(config_path) if config_path is not None else parse_config(config)
    return Scenario(parse_tracks(track_id), checked, parse_start(start), redraw)


def changed_scenario(scenario: Scenario, options: Mapping[str, Any] | None) -> Scenario:
    """Return the scenario after a reset with these options; options left out keep their values."""
    if not options:
        return scenario
    for key in options:
        if key not in OPTIONS:
            raise ConfigError(f"reset: unknown option {short(key)}; {suggestion(str(key), OPTIONS)}")
    if "circuit" in options:
        several = not isinstance(options["circuit"], str)
        scenario = replace(scenario, tracks=parse_tracks(options["circuit"]), redraw=scenario.redraw or several)
    if "start" in options:
        scenario = replace(scenario, start=parse_start(options["start"]))
    if "config" in options:
        scenario = replace(scenario, config=parse_config(options["config"]))
    return scenario


def parse_tracks(track_id: str | Sequence[str]) -> tuple[str, ...]:
    names = (track_id,) if isinstance(track_id, str) else tuple(str(name) for name in track_id)
    if not names:
        raise ConfigError("track_id: at least one circuit is needed")
    return names


def open_bridge(url: str | None = None, token: str | None = None, telemetry: bool = False) -> Bridge:
    """Open a bridge to one car, in this process or on a server; with `telemetry`, its row is available too."""
    if url is None:
        return EmbeddedBridge()
    client = BridgeClient(url, token, telemetry)
    return ShadowedClient(client) if telemetry and not client.has_telemetry else client


def open_batch(
    num_cars: int, url: str | None = None, token: str | None = None, threads: int = 1, auto_reset: bool = True
) -> Batch:
    """Open a batch of cars, in this process or on a server."""
    if url is None:
        return EmbeddedBatch(num_cars, threads, auto_reset=auto_reset)
    return RemoteBatch(num_cars, url, token, auto_reset=auto_reset)
