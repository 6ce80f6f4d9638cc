"""Telemetry: the car's whole state in every reply, for those who asked for it in a reset."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from racer_env.engine import Track

_COLUMNS = (
    "x", "y", "heading", "vx", "vy", "speed", "yaw_rate", "surface", "steer", "throttle", "brake", "slip_angle", "lap",
    "checkpoint", "lap_ticks", "step_count", "wall_contact", "stillness", "arc", "centre_distance", "last_lap_ticks",
    "best_lap_ticks", "rays",
)  # fmt: skip
"""Columns of `engine.CAR` that are sent."""


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


WIRE_NAMES = {name: _camel(name) for name in _COLUMNS}
TELEMETRY_KEYS = ("trackId", *WIRE_NAMES.values())


def telemetry_of(car: Mapping[str, Any], track: Track) -> dict[str, Any]:
    """As it is sent."""
    name = track.circuit.id if track.circuit else ""
    return {"trackId": name, **{key: car[column] for column, key in WIRE_NAMES.items()}}


def car_of(telemetry: Mapping[str, Any]) -> dict[str, Any]:
    """The car's state by the engine's names, from what was sent."""
    return {column: telemetry[key] for column, key in WIRE_NAMES.items()}
