"""Corrections: a person drives for a moment in an agent's place, and the agent's policy learns from it (DAgger).

A correction is the replay of a drive that ends where the person handed the car back, and the tick in which they took
it. It is kept as a replay file, so it can be simulated again and nothing is lost if the app dies. The policy is always
trained from the agent's own weights with all corrections, so each can be taken back without a trace.
"""

from __future__ import annotations

import math
import re
import time
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from racer_env.engine import TICKS_PER_SECOND, Simulation, Start, Track
from racer_env.errors import RacerError, os_reason
from racer_viewer.agents import Agent, AgentError
from racer_viewer.agents.model_writer import save_model
from racer_viewer.agents.networks import ONE_THREAD_PRODUCTS, Layer, Network
from racer_viewer.agents.policies import ACTION_HIGH, ACTION_LOW, OBSERVATION_SIZE, GaussianPolicy
from racer_viewer.paths import free_path
from racer_viewer.replays import Replay, ReplayError, ReplayLap, load_replay, save_replay, trace_replay
from racer_viewer.replays.demonstrations import demonstrated_lap
from racer_viewer.replays.recoveries import recoveries
from racer_viewer.training.export import model_content
from racer_viewer.training.native.cloning import CloningLoss
from racer_viewer.training.native.network import POLICY, Parameters
from racer_viewer.training.native.update import AdamState, adam_step

Floats = NDArray[np.float32]

MIN_TICKS = 15
"""Shortest correction that is learned from [ticks]; below, a key was pressed by mistake."""
MAX_CORRECTIONS = 100
"""Maximum number of corrections of a model; they are all learned again after each."""
OWN_CARS, OWN_TICKS = 24, 180
"""Cars that show what the agent does by itself on a circuit, started all over it, and their time [ticks]."""
MARGIN = 40.0
"""Distance before and after a correction in which the agent's own driving is not learned [units]."""
STEPS, MIN_ROWS, MAX_ROWS = 900, 16, 32
"""Gradient steps, and limits of the rows of each that come from the corrections; as many come from the agent itself.
A step has as many rows as OpenBLAS multiplies with one thread, see `ONE_THREAD_PRODUCTS`."""
LEARNING_RATE = 1.5e-3
AVERAGED = 0.3
"""Share of the last steps whose weights are averaged."""
NOISE, NOISE_INTERVAL = 0.03, 25
"""Standard deviation of the noise on normalised observations, and steps after which it is drawn again."""
PAUSE_STEPS, PAUSE = 4, 0.0005
"""Gradient steps, about a millisecond, after which the window gets its turn, and for how long at least [s]."""
ACTIVATIONS = {"Tanh": "tanh", "ReLU": "relu"}
"""Activations that the native learner has, by their names in torch."""
FOLDER, DAMAGED, MODELS = "corrections", ".damaged", "models"
_FILE = re.compile(r"(\d{4})-from-(\d{1,6})\.racer")


@dataclass(frozen=True, eq=False)
class Correction:
    """A stretch that a person drove in an agent's place.

    replay: drive that ends with it. first: tick of the drive before its first one.
    """

    path: Path
    replay: Replay
    first: int

    @property
    def ticks(self) -> int:
        return self.replay.ticks - self.first

    @property
    def seconds(self) -> float:
        return self.ticks / TICKS_PER_SECOND


class CorrectionFolder:
    """Corrections of one model on disk, a file for each.

    problems: what was wrong with files that were set aside while they were read.
    """

    def __init__(self, data: Path, agent: Agent) -> None:
        """Name the folder after the model and its content: other weights need other corrections."""
        try:
            checksum = zlib.crc32(agent.info.path.read_bytes())
        except OSError as error:
            raise AgentError(f"cannot read {agent.info.path}: {os_reason(error)}") from None
        plain = re.sub(r"[^\w.-]+", "-", agent.name)[:40]
        self.path = data / FOLDER / f"{plain}-{checksum:08x}"
        self.problems: list[str] = []

    def load(self) -> list[Correction]:
        """Read all corrections, the oldest first; damaged files are set aside."""
        found = []
        for path in sorted(self.path.glob("*.racer"))[:MAX_CORRECTIONS]:
            name = _FILE.fullmatch(path.name)
            if name is None:
                continue
            try:
                found.append(_checked(Correction(path, load_replay(path), int(name[2]))))
            except (RacerError, OSError) as error:
                self.set_aside(path, error)
        return found

    def add(self, replay: Replay, first: int) -> Correction:
        """Keep a correction: `replay` ends with it, and `first` ticks of it are not part of it."""
        numbers = [int(name[1]) for path in self.path.glob("*.racer") if (name := _FILE.fullmatch(path.name))]
        if len(numbers) >= MAX_CORRECTIONS:
            raise RacerError(f"a model learns from at most {MAX_CORRECTIONS} corrections: save it, then correct that")
        path = self.path / f"{max(numbers, default=0) + 1:04}-from-{first}.racer"
        correction = _checked(Correction(path, replay, first))
        save_replay(replay, path)
        return correction

    def remove(self, correction: Correction) -> None:
        """Delete a correction."""
        try:
            correction.path.unlink(missing_ok=True)
        except OSError as error:
            raise RacerError(f"cannot delete {correction.path}: {os_reason(error)}") from None
        with suppress(OSError):
            self.path.rmdir()  # unless it has others

    def set_aside(self, path: Path, error: Exception) -> None:
        """Rename a file that cannot be used, so that it is neither read again nor lost."""
        self.problems.append(f"{path.name}: {error}")
        with suppress(OSError):
            path.replace(path.with_name(path.name + DAMAGED))


def _checked(correction: Correction) -> Correction:
    """Return a correction. Raises ReplayError if it has too few ticks to learn from."""
    if correction.ticks < MIN_TICKS:
        raise ReplayError(f"too short to learn from: {max(0, correction.ticks)} ticks")
    return correction


@dataclass(frozen=True, eq=False)
class CorrectionSteps:
    """Steps that are learned from a correction.

    observations: (n, 14). actions: (n, 3) of the person, and how they would come back to their line beside it.
    start, length: where it begins on the lap and its length, with MARGIN [units].
    """

    track: Track
    observations: Floats
    actions: Floats
    start: float
    length: float

    def covers(self, progress: Floats) -> NDArray[np.bool_]:
        """Return which places on the lap (0 to 1) it is about."""
        return (progress * self.track.length - self.start) % self.track.length <= self.length


def correction_steps(correction: Correction) -> CorrectionSteps:
    """Simulate a correction again. Raises ReplayError if that gives another drive."""
    trace = trace_replay(correction.replay)
    if trace.mismatch is not None:
        raise ReplayError(f"it drives differently here: {correction.replay.engine_warning or trace.mismatch}")
    part = ReplayLap(correction.first, trace.ticks, ())
    shown, beside = demonstrated_lap(trace, part), recoveries(trace, part, seed=0)
    arcs = trace.rows["arc"][correction.first :]
    steps = (np.diff(arcs) + 0.5 * trace.track.length) % trace.track.length - 0.5 * trace.track.length
    driven = min(trace.track.length, max(0.0, float(steps.sum())) + 2.0 * MARGIN)
    return CorrectionSteps(
        trace.track,
        np.concatenate([shown.observations[:-1], beside.observations]),
        np.concatenate([shown.actions, beside.actions]),
        float(arcs[0]) - MARGIN,
        driven,
    )


class CorrectablePolicy:
    """Policy of an agent that learns from corrections.

    agent: the agent as it was before any correction.
    """

    def __init__(self, agent: Agent) -> None:
        """Raise AgentError if the agent is of a kind that cannot be corrected."""
        policy = agent.policy
        if not isinstance(policy, GaussianPolicy) or policy.squashed or policy.mean_limit is not None:
            raise AgentError(f"{agent.name} cannot be corrected: only models of PPO, A2C and TRPO can")
        if policy.actor.activation.name not in ACTIVATIONS or not policy.actor.hidden:
            raise AgentError(f"{agent.name} cannot be corrected: its network is of another kind")
        if not (np.array_equal(policy.box.low, ACTION_LOW) and np.array_equal(policy.box.high, ACTION_HIGH)):
            raise AgentError(f"{agent.name} cannot be corrected: its actions have other limits")
        self.agent, self._policy = agent, policy
        self._activation = ACTIVATIONS[policy.actor.activation.name]
        self._steps: dict[Path, CorrectionSteps] = {}
        self._own: dict[int, tuple[Floats, Floats]] = {}
        self._trained: Parameters | None = None

    def learn(self, corrections: Sequence[Correction], cancelled: Callable[[], bool] = lambda: False) -> Agent:
        """Return the agent after all corrections; without any, the agent itself.

        cancelled: polled while it learns; learning ends early if it is true, and the result is of no use.
        """
        if not corrections:
            self._trained = None
            return self.agent
        learned = [self.read(each) for each in corrections]
        observations = np.concatenate([each.observations for each in learned])
        actions = np.concatenate([each.actions for each in learned])
        own = [self._own_steps(track, learned) for track in {id(each.track): each.track for each in learned}.values()]
        parameters = self._parameters()
        self._fit(
            parameters,
            (self._normalised(observations), actions),
            (self._normalised(np.concatenate([each[0] for each in own])), np.concatenate([each[1] for each in own])),
            cancelled,
        )
        self._trained = parameters
        return self._agent_of(parameters)

    def save(self, data: Path) -> Path:
        """Save the policy as it learned last, as a model that opens everywhere; return its path."""
        if self._trained is None:
            raise RacerError("there is nothing to save: the policy has no corrections")
        content = model_content(self.agent)
        learned = {
            name: tensor
            for name, tensor in self._trained.tensors().items()
            if name.startswith(("mlp_extractor.policy_net.", "action_net."))
        }
        path = free_path(data / MODELS / f"{self.agent.name}-corrected.zip")
        try:
            return save_model(replace(content, tensors={**content.tensors, **learned}), path)
        except OSError as error:
            raise RacerError(f"cannot save {path}: {os_reason(error)}") from None

    def _parameters(self) -> Parameters:
        """Return a copy of the agent's weights; those of its value function are not needed and are 0."""
        actor = self._policy.actor
        parameters = Parameters(actor.sizes)
        for layer, weights, biases in zip(
            (*actor.hidden, actor.head), parameters.weights, parameters.biases, strict=True
        ):
            weights[POLICY], biases[POLICY] = layer.weights, layer.bias
        return parameters

    def _agent_of(self, parameters: Parameters) -> Agent:
        layers = [
            Layer(weights[POLICY].copy(), biases[POLICY].copy())
            for weights, biases in zip(parameters.weights, parameters.biases, strict=True)
        ]
        actor = Network(tuple(layers[:-1]), layers[-1], self._policy.actor.activation)
        return replace(self.agent, policy=replace(self._policy, actor=actor))

    def _normalised(self, observations: Floats) -> Floats:
        normaliser = self.agent.normaliser
        return observations.astype(np.float32) if normaliser is None else normaliser.apply(observations)

    def read(self, correction: Correction) -> CorrectionSteps:
        """Return what is learned from a correction. Raises ReplayError if it cannot be used."""
        if correction.path not in self._steps:
            self._steps[correction.path] = correction_steps(correction)
        return self._steps[correction.path]

    def _own_steps(self, track: Track, learned: Sequence[CorrectionSteps]) -> tuple[Floats, Floats]:
        """Return what the agent does by itself on a circuit, except where it was corrected."""
        if id(track) not in self._own:
            self._own[id(track)] = _own_driving(self.agent, track)
        observations, actions = self._own[id(track)]
        kept = np.ones(len(observations), np.bool_)
        for each in learned:
            if each.track is track:
                kept &= ~each.covers(observations[:, PROGRESS])
        return observations[kept], actions[kept]

    def _fit(
        self,
        parameters: Parameters,
        corrected: tuple[Floats, Floats],
        own: tuple[Floats, Floats],
        cancelled: Callable[[], bool],
    ) -> None:
        """Train the policy with as many steps of the corrections as of the agent's own driving in each batch."""
        rng = np.random.default_rng(len(corrected[0]))
        seen, actions = (np.concatenate(parts) for parts in zip(corrected, own, strict=True))
        noisy, split, average = seen.copy(), len(corrected[0]), np.zeros(len(parameters.flat))
        loss, state = CloningLoss(noisy, actions, parameters, self._activation), AdamState.create(parameters.sizes)
        rows_each = ONE_THREAD_PRODUCTS // max(weights[POLICY].size for weights in parameters.weights) // 2
        rows_each = min(MAX_ROWS, max(MIN_ROWS, rows_each))
        first_averaged = round(STEPS * (1.0 - AVERAGED))
        for step in range(STEPS):
            if step % NOISE_INTERVAL == 0:
                rng.standard_normal(out=noisy, dtype=np.float32)
                noisy *= np.float32(NOISE)
                noisy += seen
            rows = [rng.integers(0, split, rows_each)]
            if split < len(seen):
                rows.append(rng.integers(split, len(seen), rows_each))
            rate = LEARNING_RATE * 0.5 * (1.0 + math.cos(math.pi * step / STEPS))
            adam_step(parameters, loss.gradient(np.sort(np.concatenate(rows)))[0], state, rate)
            if step >= first_averaged:
                average += parameters.flat
            if step % PAUSE_STEPS == 0:
                time.sleep(PAUSE)
                if cancelled():
                    return
        parameters.flat[...] = average / (STEPS - first_averaged)


def _own_driving(agent: Agent, track: Track) -> tuple[Floats, Floats]:
    """Return the steps of cars that start all over a circuit and are driven by an agent."""
    simulation = Simulation(track, OWN_CARS, start=Start(arc=(0.0, 1.0), speed=(0.0, 100.0)), seed=1)
    observations = np.empty((OWN_TICKS, OWN_CARS, OBSERVATION_SIZE), np.float32)
    actions = np.empty((OWN_TICKS, OWN_CARS, len(ACTION_LOW)), np.float32)
    for tick in range(OWN_TICKS):
        observations[tick] = simulation.result.observations
        actions[tick] = agent.act(observations[tick])
        simulation.step(actions[tick])
        if tick % PAUSE_STEPS == 0:
            time.sleep(PAUSE)
    return observations.reshape(-1, OBSERVATION_SIZE), actions.reshape(-1, len(ACTION_LOW))


PROGRESS = 12
"""Index of the progress along the lap in an observation."""
