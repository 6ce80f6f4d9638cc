"""Remote bridges: one car, or a batch of cars, on a bridge server.

Every reply is validated before any of its values is used.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from msgspec import UNSET
from numpy.typing import ArrayLike, NDArray

from racer_env.bridge.batch_format import BatchContract, encode_step
from racer_env.bridge.interface import (
    COMPONENT_KEYS,
    BatchStep,
    Bools,
    CarRow,
    CarStep,
    Info,
    Observations,
    Scenario,
    copy_rows,
    set_step_columns,
)
from racer_env.bridge.messages import (
    BatchResetRequest,
    EpisodeContract,
    ResetReply,
    ResetRequest,
    StepReply,
    StepRequest,
    Telemetry,
    TrackGeometry,
    TrackReply,
    TrackRequest,
    step_reply,
)
from racer_env.bridge.ws_client import DEFAULT_URL, ClientConnection
from racer_env.engine import Circuit, Start, Track, circuits
from racer_env.engine.circuits import named_circuit
from racer_env.errors import ActionError, BridgeError, CircuitError, ContractError, RacerError, short

NOT_STARTED = "step before reset: reset the environment first"


class BridgeClient:
    """One car on a bridge server.

    telemetry: request the car's state in every reply, for `car`.
    has_telemetry: whether the server can send it; existing servers cannot (see `shadow_car`).
    """

    def __init__(
        self, url: str = DEFAULT_URL, token: str | None = None, telemetry: bool = False, **timeouts: float
    ) -> None:
        self.connection = ClientConnection(url, token, **timeouts)
        self.has_telemetry = "telemetry" in self.connection.capabilities
        self._telemetry = telemetry and self.has_telemetry
        self._contract = EpisodeContract()
        self._scenario: Scenario | None = None
        self._step_reply = StepReply
        """Schema of the replies to steps; it depends on the terms of the config."""
        self._row: CarRow | None = None
        self._track_id = ""
        self._tracks: dict[str, Track] = {}

    @property
    def track(self) -> Track:
        if self._track_id not in self._tracks:
            self._tracks[self._track_id] = self._fetch_track(self._track_id)
        return self._tracks[self._track_id]

    @property
    def car(self) -> CarRow:
        if self._row is None:
            reason = "it was not requested" if self.has_telemetry else "the server sends none; use a ShadowedClient"
            raise BridgeError(f"no telemetry from {self.connection.url}: {reason}")
        gates = len(self.track.gates)
        if self._row["checkpoint"] >= gates:
            raise ContractError(f"telemetry.checkpoint: {self._row['checkpoint']}, but the track has {gates} gates")
        return copy_rows(self._row)[0]  # type: ignore[no-any-return]

    def reset(self, scenario: Scenario | None = None, seed: int | None = None) -> tuple[Observations, Info]:
        scenario = scenario or self._scenario or Scenario()
        request = self._reset_request(scenario, seed)
        return self.connection.request(request, ResetReply, lambda reply: self._accept_reset(reply, scenario))

    def step(self, action: ArrayLike) -> CarStep:
        if self._scenario is None:
            raise RacerError(NOT_STARTED)
        request = StepRequest(_action(action))
        if self._telemetry:
            return self.connection.request(
                request, self._step_reply, lambda reply: self._accept_step(reply, request.action)
            )
        return self.connection.request(request, self._step_reply, self._contract.step)

    def close(self) -> None:
        self.connection.close()

    def _reset_request(self, scenario: Scenario, seed: int | None) -> ResetRequest:
        """Return a request with fields the server knows. On existing servers every episode has the standing start."""
        several, capabilities = len(scenario.tracks) > 1, self.connection.capabilities
        if several:
            self.connection.require("trackIds", "drawing from several circuits")
        if scenario.start != Start():
            self.connection.require("start", "a start elsewhere than on the start line")
        _require_terms(self.connection, scenario)
        return ResetRequest(
            track_id=scenario.tracks[0],
            config=scenario.config.to_json(),
            track_ids=list(scenario.tracks) if several else None,
            start=asdict(scenario.start) if "start" in capabilities else None,
            seed=seed if "seed" in capabilities else None,
            telemetry=self._telemetry,
        )

    def _accept_reset(self, reply: ResetReply, scenario: Scenario) -> tuple[Observations, Info]:
        result = self._contract.reset(reply)
        self._scenario, self._track_id = scenario, scenario.tracks[0]
        self._step_reply = step_reply(tuple(scenario.config.formulas))
        if self._telemetry:
            self._row = self._telemetry_row(reply.telemetry)
        return result

    def _accept_step(self, reply: StepReply, action: tuple[float, ...]) -> CarStep:
        assert self._scenario is not None
        step, before, row = self._contract.step(reply), self._row, self._telemetry_row(reply.telemetry)
        set_step_columns(row, action, step, self._scenario.config)
        if before is not None and row["lap"] != before["lap"]:
            row["finished_lap_ticks"] = row["last_lap_ticks"]
        self._row = row
        return step

    def _telemetry_row(self, telemetry: Telemetry | None) -> CarRow:
        if telemetry is None:
            raise ContractError("telemetry: missing")
        self._track_id = telemetry.track_id
        return telemetry.row()

    def _fetch_track(self, track_id: str) -> Track:
        if "track" not in self.connection.capabilities:
            return named_circuit(track_id)
        return self.connection.request(
            TrackRequest(track_id), TrackReply, lambda reply: checked_track(track_id, reply.track)
        )


class RemoteBatch:
    """N cars on a bridge server; one round trip steps all of them.

    auto_reset: whether a car whose episode ends starts the next one within the same step.
    """

    def __init__(
        self,
        num_cars: int,
        url: str = DEFAULT_URL,
        token: str | None = None,
        *,
        auto_reset: bool = True,
        **timeouts: float,
    ) -> None:
        self.num_cars = num_cars
        self.auto_reset = auto_reset
        self.connection = ClientConnection(url, token, **timeouts)
        try:
            self.connection.require("batch", "a vector environment")
            if not auto_reset:
                self.connection.require("autoReset", "an autoreset mode other than SameStep")
        except BridgeError:
            self.connection.close()
            raise
        self._contract = BatchContract(auto_reset)
        self._scenario: Scenario | None = None
        self._components = len(COMPONENT_KEYS)
        """Number of reward components in a result."""

    @property
    def cars(self) -> NDArray[np.void]:
        raise BridgeError("the binary batch carries no positions: use a RacerEnv with a render_mode, or a local batch")

    @property
    def tracks(self) -> tuple[Track, ...]:
        raise BridgeError("the binary batch carries no tracks: use a RacerEnv with a render_mode, or a local batch")

    def reset(
        self,
        scenario: Scenario | None = None,
        seeds: int | Sequence[int | None] | None = None,
        mask: Bools | None = None,
    ) -> BatchStep:
        scenario = scenario or self._scenario or Scenario()
        _require_terms(self.connection, scenario)
        several = seeds is not None and not isinstance(seeds, int)
        request = BatchResetRequest(
            num_cars=self.num_cars,
            track_ids=list(scenario.tracks),
            redraw=scenario.redraw,
            config=scenario.config.to_json(),
            start=asdict(scenario.start),
            seed=seeds if isinstance(seeds, int) else None,
            seeds=list(seeds) if several else None,  # type: ignore[arg-type]
            mask=None if mask is None else np.asarray(mask, np.bool_).tolist(),
            auto_reset=UNSET if self.auto_reset else False,
        )
        components = len(scenario.config.components)
        result = self.connection.request_batch(
            request, self.num_cars, lambda step: self._contract.reset(step, mask), components
        )
        self._scenario, self._components = scenario, components
        return result

    def step(self, actions: ArrayLike) -> BatchStep:
        if self._scenario is None:
            raise RacerError(NOT_STARTED)
        try:
            rows = np.asarray(actions, np.float64)
        except (TypeError, ValueError) as error:
            raise ActionError(f"actions must be {self.num_cars} rows of 3 finite numbers: {error}") from None
        if rows.shape != (self.num_cars, 3) or not np.isfinite(rows).all():
            raise ActionError(f"actions must be {self.num_cars} rows of steer, throttle, brake as finite numbers")
        return self.connection.request_batch(encode_step(rows), self.num_cars, self._contract.step, self._components)

    def close(self) -> None:
        self.connection.close()


def _require_terms(connection: ClientConnection, scenario: Scenario) -> None:
    """Raise BridgeError if a config has terms and the server would ignore them."""
    if scenario.config.formulas:
        connection.require("terms", "a reward with terms")


def _action(action: Any) -> tuple[float, float, float]:
    """Return the three numbers of an action."""
    try:
        steer, throttle, brake = values = [*map(float, action.tolist() if isinstance(action, np.ndarray) else action)]
        if all(map(math.isfinite, values)):
            return steer, throttle, brake
    except (TypeError, ValueError):
        pass
    raise ActionError(f"an action must be 3 finite numbers, steer, throttle, brake, not {short(action)}")


def checked_track(track_id: str, geometry: TrackGeometry) -> Track:
    """Build a track from its control points and compare its walls with the server's.

    If it is the circuit known locally by this id, return that one, with its name and medals.
    """
    points, gates = tuple(geometry.control_points), len(geometry.gates)
    try:
        built = Circuit(track_id, points, gates=gates, id=track_id).build()
        same = all(
            np.allclose(own, received, atol=1e-6)
            for own, received in ((built.inner, geometry.inner), (built.outer, geometry.outer))
        )
    except (CircuitError, TypeError, ValueError) as error:
        raise ContractError(f"track: {error}") from None
    if not same:
        raise ContractError("track: the server's walls do not match its control points")
    known = next((circuit for circuit in circuits() if circuit.id == track_id), None)
    is_known = known is not None and (known.control_points, known.gates) == (points, gates)
    return named_circuit(track_id) if is_known else built
