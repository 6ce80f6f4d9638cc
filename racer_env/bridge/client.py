"""One car, or a batch of them, on a bridge server.

Every reply is held to the contract before anything of it is used.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from racer_env.bridge.batch_format import encode_step
from racer_env.bridge.interface import BatchStep, Bools, CarRow, Info, Observations, Scenario, Step, set_result
from racer_env.bridge.messages import TELEMETRY_KEYS, BatchContract, RacerContract, car_of
from racer_env.bridge.validation import field, number, short
from racer_env.bridge.ws_client import DEFAULT_URL, Connection, Reply
from racer_env.engine import Circuit, Start, Track, build_track, circuits
from racer_env.engine.car import ROAD, RUNOFF, SHOULDER
from racer_env.engine.circuits import named_circuit
from racer_env.errors import ActionError, BridgeError, CircuitError, ContractError, RacerError

SURFACES = (ROAD, SHOULDER, RUNOFF)
FARTHEST = 1e6
"""No place, speed or angle of a car is beyond this [units]."""
COUNTERS = frozenset(("lap", "checkpoint", "lapTicks", "stepCount", "stillness", "lastLapTicks", "bestLapTicks"))
"""Of telemetry, what counts something."""


class BridgeClient:
    """One car on a bridge server.

    telemetry: ask for the car's state in every reply, for `car`. `has_telemetry` says whether the server gives it;
    existing servers do not (see `ShadowCar`).
    """

    def __init__(
        self, url: str = DEFAULT_URL, token: str | None = None, telemetry: bool = False, **timeouts: float
    ) -> None:
        self.connection = Connection(url, token, **timeouts)
        self.has_telemetry = "telemetry" in self.connection.capabilities
        self._telemetry = telemetry
        self._contract = RacerContract()
        self._scenario: Scenario | None = None
        self._row: CarRow | None = None
        self._track_id = ""
        self._built: dict[str, Track] = {}

    @property
    def description(self) -> Mapping[str, Any]:
        """What the server said of itself; empty from an existing server."""
        return self.connection.description

    @property
    def track(self) -> Track:
        if self._track_id not in self._built:
            self._built[self._track_id] = self._fetch_track(self._track_id)
        return self._built[self._track_id]

    @property
    def car(self) -> CarRow:
        if self._row is None:
            reason = "it was not requested" if self.has_telemetry else "the server sends none; use a ShadowedClient"
            raise BridgeError(f"no telemetry from {self.connection.url}: {reason}")
        gates = len(self.track.gates)
        if self._row["checkpoint"] >= gates:
            raise ContractError(f"telemetry.checkpoint: {self._row['checkpoint']}, but the track has {gates} gates")
        return self._row.copy()

    def reset(self, scenario: Scenario | None = None, seed: int | None = None) -> tuple[Observations, Info]:
        scenario = scenario or self._scenario or Scenario()
        request = self._reset_request(scenario, seed)
        return self.connection.request(request, "reset_result", lambda reply: self._judge_reset(reply, scenario))

    def step(self, action: ArrayLike) -> Step:
        if self._scenario is None:
            raise RacerError("step before reset: reset the environment first")
        values = _action(action)
        request = {"type": "step", "action": values}
        if self._telemetry and self.has_telemetry:
            return self.connection.request(request, "step_result", lambda reply: self._judge_step(reply, values))
        return self.connection.request(
            request, "step_result", self._contract.step_result, glance=self._contract.plain_step
        )

    def close(self) -> None:
        self.connection.close()

    def _reset_request(self, scenario: Scenario, seed: int | None) -> dict[str, Any]:
        """Existing servers get only what they know: on them every episode is the standing start, seed or not."""
        request: dict[str, Any] = {
            "type": "reset",
            "trackId": scenario.tracks[0],
            "config": scenario.config.to_json(),
        }
        if len(scenario.tracks) > 1:
            self.connection.require("trackIds", "drawing from several circuits")
            request["trackIds"] = scenario.tracks
        if scenario.start != Start():
            self.connection.require("start", "a start elsewhere than on the line")
        if "start" in self.connection.capabilities:
            request["start"] = asdict(scenario.start)
        if seed is not None and "seed" in self.connection.capabilities:
            request["seed"] = seed
        if self.has_telemetry:
            request["telemetry"] = self._telemetry
        return request

    def _judge_reset(self, reply: Reply, scenario: Scenario) -> tuple[Observations, Info]:
        result = self._contract.reset_result(reply)
        self._scenario, self._track_id = scenario, scenario.tracks[0]
        self._take_telemetry(reply)
        return result

    def _judge_step(self, reply: Reply, action: list[float]) -> Step:
        step, before = self._contract.step_result(reply), self._row
        self._take_telemetry(reply)
        if self._row is not None and before is not None:
            set_result(self._row, action, step)
            if self._row["lap"] != before["lap"]:
                self._row["finished_lap_ticks"] = self._row["last_lap_ticks"]
        return step

    def _take_telemetry(self, reply: Reply) -> None:
        if self._telemetry and self.has_telemetry:
            telemetry = _checked_telemetry(field(reply, "telemetry"))
            self._row, self._track_id = car_of(telemetry), telemetry["trackId"]

    def _fetch_track(self, track_id: str) -> Track:
        if "track" not in self.connection.capabilities:
            return named_circuit(track_id)
        request = {"type": "track", "trackId": track_id}
        return self.connection.request(
            request, "track_result", lambda reply: _checked_track(track_id, field(reply, "track"))
        )


class RemoteBatch:
    """N cars on a bridge server, one round trip for a step of all of them."""

    def __init__(self, num_cars: int, url: str = DEFAULT_URL, token: str | None = None, **timeouts: float) -> None:
        self.num_cars = num_cars
        self.connection = Connection(url, token, **timeouts)
        try:
            self.connection.require("batch", "a vector environment")
        except BridgeError:
            self.connection.close()
            raise
        self._contract = BatchContract()
        self._scenario: Scenario | None = None

    @property
    def cars(self) -> NDArray[np.void]:
        raise BridgeError("the binary batch carries no positions: use a RacerEnv with a render_mode, or a local batch")

    def reset(
        self,
        scenario: Scenario | None = None,
        seeds: int | Sequence[int | None] | None = None,
        mask: Bools | None = None,
    ) -> BatchStep:
        scenario = scenario or self._scenario or Scenario()
        request: dict[str, Any] = {
            "type": "batch_reset",
            "numCars": self.num_cars,
            "trackIds": scenario.tracks,
            "redraw": scenario.redraw,
            "config": scenario.config.to_json(),
            "start": asdict(scenario.start),
        }
        if isinstance(seeds, int):
            request["seed"] = seeds
        elif seeds is not None:
            request["seeds"] = list(seeds)
        if mask is not None:
            request["mask"] = np.asarray(mask, np.bool_).tolist()
        result = self.connection.request_batch(
            request, self.num_cars, lambda step: self._contract.reset_result(step, mask)
        )
        self._scenario = scenario
        return result

    def step(self, actions: ArrayLike) -> BatchStep:
        if self._scenario is None:
            raise RacerError("step before reset: reset the environment first")
        try:
            rows = np.asarray(actions, np.float64)
        except (TypeError, ValueError) as error:
            raise ActionError(f"actions must be {self.num_cars} rows of 3 finite numbers: {error}") from None
        if rows.shape != (self.num_cars, 3) or not np.isfinite(rows).all():
            raise ActionError(f"actions must be {self.num_cars} rows of steer, throttle, brake as finite numbers")
        return self.connection.request_batch(encode_step(rows), self.num_cars, self._contract.step_result)

    def close(self) -> None:
        self.connection.close()


def _action(action: Any) -> list[float]:
    """The three numbers of an action, whatever they came in."""
    try:
        values = [float(value) for value in (action.tolist() if isinstance(action, np.ndarray) else action)]
        if len(values) == 3 and all(map(math.isfinite, values)):
            return values
    except (TypeError, ValueError):
        pass
    raise ActionError(f"an action must be 3 finite numbers, steer, throttle, brake, not {short(action)}")


def _checked_telemetry(telemetry: Any) -> dict[str, Any]:
    if type(telemetry) is not dict:
        raise ContractError(f"telemetry: an object expected, got {short(telemetry)}")
    for key in TELEMETRY_KEYS:
        value = field(telemetry, key)
        if key == "trackId":
            right = isinstance(value, str)
        elif key == "wallContact":
            right = isinstance(value, bool)
        elif key == "surface":
            right = value in SURFACES and type(value) is int
        elif key in COUNTERS:
            right = type(value) is int and 0 <= value < 2**63
        elif key == "rays":
            right = isinstance(value, list) and len(value) == 9
            for ray in value if right else ():
                number("telemetry.rays", ray)
        else:
            right = abs(number(f"telemetry.{key}", value)) <= FARTHEST
        if not right:
            raise ContractError(f"telemetry.{key}: got {short(value)}")
    return telemetry


def _checked_track(track_id: str, track: Any) -> Track:
    """Built here from its control points, and compared with what the server built.

    If it is the circuit that is known here by this id, it is that, with its name and its medals.
    """
    if type(track) is not dict:
        raise ContractError(f"track: an object expected, got {short(track)}")
    try:
        points, gates = tuple(map(tuple, field(track, "controlPoints"))), len(field(track, "gates"))
        built = build_track(points, gates, Circuit(track_id, points, gates=gates, id=track_id))
        same = np.allclose(built.inner, field(track, "inner"), atol=1e-6) and np.allclose(
            built.outer, field(track, "outer"), atol=1e-6
        )
    except (CircuitError, TypeError, ValueError) as error:
        raise ContractError(f"track: {error}") from None
    if not same:
        raise ContractError("track: the server's walls are not those of its control points")
    known = next((circuit for circuit in circuits() if circuit.id == track_id), None)
    same = known is not None and (known.control_points, known.gates) == (points, gates)
    return named_circuit(track_id) if same else built
