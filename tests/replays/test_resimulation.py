"""Re-simulated replays equal the recorded drive bit for bit: every tick, lap and reward."""

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from racer_env import RacerEnv
from racer_env.engine import ANYWHERE, CAR, Circuit, Config, Simulation, Start, load_circuit, parse_config
from racer_env.engine.rewards import COMPONENT_CAPACITY
from racer_viewer.agents import load_agent
from racer_viewer.replays import (
    ENGINE_VERSION,
    ReplayError,
    ReplayRecorder,
    Trace,
    replay_from_bytes,
    replay_to_bytes,
    trace_replay,
)
from racer_viewer.replays.trace import track_of
from tests.replays.replay_drives import RING, ring_run

CHAMPION = Path(__file__).parents[2] / "models" / "champion.zip"
CONFIG = parse_config({"weights": {"speedBonus": 0.01, "wallPenalty": -0.5}, "episode": {"maxSteps": 10_000}})


class RecordedEpisode:
    """A recorded episode of a RacerEnv: everything that its replay must reproduce."""

    def __init__(self, circuit: Circuit | str, start: Start, seed: int, ticks: int) -> None:
        agent, chance = load_agent(CHAMPION), random.Random(seed)
        self.env = RacerEnv(track_id=circuit if isinstance(circuit, str) else circuit.id, config=CONFIG, start=start)
        self.env.reset(seed=3)
        self.env.step((0.0, 1.0, 0.0))  # type: ignore[arg-type]
        observation, _ = self.env.reset(seed=seed)
        definition = self.env.track.circuit
        assert definition is not None
        recorder = ReplayRecorder(definition, CONFIG, start, seed, "champion")
        self.rows, self.observations, self.rewards = [self.row()], [observation], [0.0]
        self.totals = np.zeros(COMPONENT_CAPACITY)
        for tick in range(ticks):
            action: Any = agent.act(observation)
            if tick % 300 >= 260:
                action = (chance.uniform(-1.0, 1.0), 1.0, chance.uniform(0.0, 0.3))
            observation, reward, _, _, _ = self.env.step(action)
            self.rows.append(self.row())
            self.observations.append(observation)
            self.rewards.append(self.rewards[-1] + reward)
            self.totals += self.rows[-1]["components"]
            recorder.add(action, reward, int(self.rows[-1]["finished_lap_ticks"]))
        self.replay = recorder.replay()

    def row(self) -> Any:
        return np.array(self.env.car, CAR)


def same_bits(one: NDArray[Any], other: NDArray[Any]) -> bool:
    assert one.dtype.names is not None
    return all(one[name].tobytes() == other[name].tobytes() for name in one.dtype.names)


@pytest.mark.parametrize(
    ("circuit", "start", "seed", "ticks"),
    [("track-01", Start(), 0, 3000), ("track-03", ANYWHERE, 2**63 + 11, 1500), ("random:5:hard", ANYWHERE, 4, 1500)],
)
def test_an_episode_of_an_agent_is_reproduced_bit_for_bit(circuit: str, start: Start, seed: int, ticks: int) -> None:
    driven = RecordedEpisode(circuit, start, seed, ticks)
    trace = trace_replay(replay_from_bytes(replay_to_bytes(driven.replay)))
    rows = np.array(driven.rows)
    assert rows["wall_contact"].sum() > 20
    assert same_bits(trace.rows, rows)
    assert trace.observations.tobytes() == np.array(driven.observations).tobytes()
    assert trace.reward == driven.rewards[-1] == driven.replay.reward
    assert trace.totals[-1].tobytes() == driven.totals.tobytes()
    assert tuple(lap.ticks for lap in trace.laps) == driven.replay.laps
    assert trace.mismatch is None
    if circuit == "track-01":
        assert len(trace.laps) >= 3


def test_a_custom_circuit_is_built_from_the_replay_alone() -> None:
    own = msgspec.structs.replace(RING, id="nobody-has-this")
    trace = trace_replay(replay_from_bytes(replay_to_bytes(replace(ring_run(), circuit=own))))
    assert same_bits(trace.rows, ring_trace().rows)


def test_a_bundled_circuit_uses_the_shared_track() -> None:
    track = load_circuit("track-02")
    assert track.circuit is not None
    assert track_of(track.circuit) is track
    changed = msgspec.structs.replace(track.circuit, gates=7)
    assert len(track_of(changed).gates) == 7


def test_a_track_that_is_given_must_be_that_of_the_circuit() -> None:
    track = track_of(RING)
    assert trace_replay(ring_run(60), track).track is track
    for other in (load_circuit("track-01"), msgspec.structs.replace(RING, gates=11).build()):
        with pytest.raises(ReplayError, match="another circuit"):
            trace_replay(ring_run(60), other)


def test_a_circuit_that_cannot_be_built_says_so() -> None:
    crossed = Circuit("Knot", ((0.0, 0.0, 9.0), (100.0, 100.0, 9.0), (100.0, 0.0, 9.0), (0.0, 100.0, 9.0)))
    with pytest.raises(ReplayError, match="cannot be built"):
        trace_replay(replace(ring_run(60), circuit=crossed))


def ring_trace(**changes: Any) -> Trace:
    return trace_replay(replace(ring_run(), **changes))


def test_laps_run_from_line_to_line() -> None:
    trace = ring_trace()
    first, *flying = trace.laps
    assert len(flying) >= 2
    assert first.first == 0
    for before, after in zip(trace.laps, flying, strict=False):
        assert after.first == before.last
    for lap in trace.laps:
        assert trace.rows["finished_lap_ticks"][lap.last] == lap.ticks
        assert trace.rows["lap"][lap.last] == trace.rows["lap"][lap.first] + 1
        assert trace.rows["lap_ticks"][lap.first] == 0


def test_every_gate_of_a_lap_has_its_tick() -> None:
    trace = ring_trace()
    for lap in trace.laps:
        line, *gates = lap.gate_ticks
        assert line == lap.ticks
        assert len(gates) == RING.gates - 1
        assert gates == sorted(gates)
        for gate, ticks in enumerate(gates, 1):
            assert trace.rows["checkpoint"][lap.first + ticks] == gate
            assert trace.rows["checkpoint"][lap.first + ticks - 1] == gate - 1


def test_the_gates_of_the_lap_that_is_being_driven_are_known_at_every_tick() -> None:
    trace = ring_trace()
    lap = trace.laps[1]
    for tick in range(lap.first, lap.last):
        expected = (0, *(ticks if ticks <= tick - lap.first else 0 for ticks in lap.gate_ticks[1:]))
        assert trace.gate_ticks_at(tick) == expected
    assert trace.gate_ticks_at(lap.last) == (0,) * RING.gates


def test_the_ghost_is_the_best_lap_from_its_line_on() -> None:
    trace = ring_trace()
    best = trace.best_lap
    assert best is not None
    assert best.ticks == min(lap.ticks for lap in trace.laps) == trace.rows["best_lap_ticks"][-1]
    ghost = trace.ghost
    assert ghost is not None
    assert len(ghost) == best.ticks + 1
    assert ghost["lap_ticks"][:-1].tolist() == list(range(best.ticks))
    assert ghost["finished_lap_ticks"][-1] == best.ticks


def test_a_run_without_a_lap_has_no_best_and_no_ghost() -> None:
    trace = trace_replay(ring_run(60))
    assert (trace.laps, trace.best_lap, trace.ghost) == ((), None, None)


def test_a_lap_is_clean_unless_a_wall_was_touched_or_the_road_left() -> None:
    trace = ring_trace()
    assert all(lap.clean for lap in trace.laps)
    second = trace.laps[1]
    for column, value in (("wall_contact", True), ("surface", 2)):
        rows = trace.rows.copy()
        rows[column][second.first + 40] = value
        assert [lap.clean for lap in replace(trace, rows=rows).laps] == [True, False, *[True] * (len(trace.laps) - 2)]


def test_a_lap_that_began_away_from_the_line_is_none() -> None:
    trace = trace_replay(ring_run(start=Start(arc=(0.3, 0.3))))
    first, *_ = trace.laps
    assert first.first > 0
    assert trace.rows["lap"][first.first] == 2
    partial = trace.gate_ticks_at(first.first - 1)
    assert partial[1] == 0
    assert partial[RING.gates - 1] > 0


def test_a_wrong_result_is_reported() -> None:
    laps = ring_run().laps
    faster = ring_trace(laps=(laps[0] - 1, *laps[1:])).mismatch
    assert faster is not None
    assert str(laps[0] - 1) in faster
    assert str(laps[0]) in faster
    richer = ring_trace(reward=ring_run().reward + 0.001).mismatch
    assert richer is not None
    assert "reward" in richer
    none = ring_trace(laps=()).mismatch
    assert none is not None
    assert "recorded: none" in none


def test_every_tick_is_one_step_of_the_simulation(monkeypatch: pytest.MonkeyPatch) -> None:
    stepped: list[Any] = []
    original = Simulation.step

    def watched(self: Simulation, actions: Any) -> Any:
        stepped.append(actions.copy())
        return original(self, actions)

    monkeypatch.setattr(Simulation, "step", watched)
    trace_replay(ring_run(60))
    assert np.concatenate(stepped).tobytes() == ring_run(60).actions.tobytes()


PINNED_ENGINE = 1
PINNED_COLUMNS = ("x", "y", "heading", "speed", "arc", "centre_distance", "reward")
PINNED_TICKS = (100, 300, 500, 700, 900)
PINNED_LAPS: tuple[int, ...] = (667,)
PINNED_ROWS = [
    [66.5400523, 40.2561835, 2.1309307, 44.6686521, 43.5024649, 2.2425604, 0.0015304, 94.1059548, 0.0866147],
    [-118.8379235, 11.6136859, -1.863267, 21.6214904, 243.5889981, 39.4532673, -0.0025263, 7.6408903, 0.4849929],
    [-91.5317058, -57.4283319, -0.6056238, 45.8408404, 295.798325, 28.0496284, 7.9e-06, 111.8748341, 0.5889432],
    [70.1434546, 48.0591241, 1.5831524, 93.3226524, 47.9761226, 5.0481, 0.0024145, 51.1349007, 1.0955219],
    [20.9391294, 117.5230136, 2.8727927, 9.9111004, 111.6539574, 39.479735, -0.0027768, 12.1970981, 1.2223063],
]  # fmt: skip


def pinned_drive() -> Trace:
    """Drive the ring with fixed actions, partly along walls and off the road."""
    ticks = range(900)
    steer = [-0.16 if tick % 120 < 30 else -0.09 for tick in ticks]
    pedals = [(0.6 * (tick % 90 < 70), 0.2 * (tick % 90 >= 80)) for tick in ticks]
    recorder = ReplayRecorder(RING, Config(), Start())
    for angle, (throttle, brake) in zip(steer, pedals, strict=True):
        recorder.add((angle, throttle, brake), 0.0)
    return trace_replay(recorder.replay())


def test_a_change_of_the_physics_raises_the_engine_version() -> None:
    trace = pinned_drive()
    rows = trace.rows[list(PINNED_TICKS)]
    actual = np.column_stack(
        [*(rows[name] for name in PINNED_COLUMNS), rows["rays"][:, 4], trace.totals[PINNED_TICKS, 0]]
    )
    message = "the engine drives differently: raise ENGINE_VERSION, and pin the new drive here"
    assert trace.rows["wall_contact"].sum() > 200
    assert tuple(lap.ticks for lap in trace.laps) == PINNED_LAPS, message
    np.testing.assert_allclose(actual, PINNED_ROWS, rtol=0.0, atol=1e-6, err_msg=message)
    assert ENGINE_VERSION == PINNED_ENGINE, "the version was raised, but the pinned drive is of the version before"
