"""Learning from corrections: what is learned, what stays as it was, and the files."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from racer_env.engine import Config, Driver, Simulation, Start, load_circuit
from racer_env.errors import RacerError
from racer_viewer.agents import Agent, AgentError, bundled_models, load_agent
from racer_viewer.replays import Replay, ReplayError, ReplayRecorder
from racer_viewer.training.native.corrections import MAX_CORRECTIONS, CorrectablePolicy, CorrectionFolder

MODELS = {path.stem: path for path in bundled_models()}
WEAK = "learning-2-first-lap"


@cache
def agent(name: str = WEAK) -> Agent:
    return load_agent(MODELS[name])


@cache
def corrected_drive(first: int = 210, ticks: int = 360) -> Replay:
    """Let the weak agent drive track-01, and the engine's driver from a tick on."""
    track = load_circuit("track-01")
    simulation, driver = Simulation(track), Driver(track)
    recorder = ReplayRecorder(track.circuit, Config(), Start(), driver=WEAK)
    for tick in range(ticks):
        action = driver.act(simulation.cars) if tick >= first else agent().act(simulation.result.observations)
        result = simulation.step(action)
        recorder.add(action[0], float(result.rewards[0]), int(result.finished_lap_ticks[0]))
    return recorder.replay()


def walls(driver: Agent, ticks: int = 450) -> int:
    """Return for how many ticks an agent touches a wall in its first lap."""
    simulation, touched = Simulation(load_circuit("track-01")), 0
    for _ in range(ticks):
        simulation.step(driver.act(simulation.result.observations))
        touched += int(simulation.cars.wall_contact[0])
    return touched


def test_a_correction_is_learned_and_the_rest_is_kept(tmp_path: Path) -> None:
    folder, policy = CorrectionFolder(tmp_path, agent()), CorrectablePolicy(agent())
    correction = folder.add(corrected_drive(), 210)
    learned = policy.learn([correction])
    assert walls(agent()) > 100
    assert walls(learned) < 20
    steps = policy.read(correction)
    straight = np.abs(learned.act(steps.observations) - steps.actions)
    assert straight.mean() < 0.5 * np.abs(agent().act(steps.observations) - steps.actions).mean()
    start = Simulation(load_circuit("track-01"), 8, start=Start(arc=(0.0, 0.1), speed=(0.0, 60.0))).result.observations
    np.testing.assert_allclose(learned.act(start), agent().act(start), atol=0.25)


def test_the_same_corrections_give_the_same_policy_and_none_gives_the_agent(tmp_path: Path) -> None:
    folder = CorrectionFolder(tmp_path, agent())
    first, second = folder.add(corrected_drive(), 210), folder.add(corrected_drive(ticks=300), 210)
    policy, observation = CorrectablePolicy(agent()), np.full(14, 0.4, np.float32)
    alone = policy.learn([first]).act(observation)
    both = policy.learn([first, second]).act(observation)
    assert not np.array_equal(alone, both)
    np.testing.assert_array_equal(policy.learn([first]).act(observation), alone)
    assert policy.learn([]) is agent()


def test_corrections_are_read_back_in_their_order_and_removed(tmp_path: Path) -> None:
    folder = CorrectionFolder(tmp_path, agent())
    added = [folder.add(corrected_drive(ticks=ticks), 210) for ticks in (300, 360)]
    found = CorrectionFolder(tmp_path, agent()).load()
    assert [(each.path, each.first, each.ticks) for each in found] == [(each.path, 210, each.ticks) for each in added]
    for each in found:
        folder.remove(each)
    assert CorrectionFolder(tmp_path, agent()).load() == []
    assert not folder.path.exists()


def test_other_weights_have_other_corrections(tmp_path: Path) -> None:
    CorrectionFolder(tmp_path, agent()).add(corrected_drive(), 210)
    assert CorrectionFolder(tmp_path, agent("champion")).load() == []


def test_damaged_files_are_set_aside_and_others_are_left_alone(tmp_path: Path) -> None:
    folder = CorrectionFolder(tmp_path, agent())
    kept = folder.add(corrected_drive(), 210)
    (folder.path / "0002-from-210.racer").write_bytes(b"nothing")
    (folder.path / "notes.txt").write_text("mine")
    assert [each.path for each in folder.load()] == [kept.path]
    assert len(folder.problems) == 1
    assert sorted(path.name for path in folder.path.iterdir()) == [
        kept.path.name, "0002-from-210.racer.damaged", "notes.txt",
    ]  # fmt: skip


def test_what_cannot_be_learned_is_refused(tmp_path: Path) -> None:
    folder = CorrectionFolder(tmp_path, agent())
    with pytest.raises(ReplayError, match="too short"):
        folder.add(corrected_drive(), 355)
    folder.path.mkdir(parents=True)
    for number in range(1, MAX_CORRECTIONS + 1):
        (folder.path / f"{number:04}-from-210.racer").touch()
    with pytest.raises(RacerError, match="at most 100 corrections"):
        folder.add(corrected_drive(), 210)
    with pytest.raises(AgentError, match="cannot be corrected"):
        CorrectablePolicy(agent("sac-track-01"))
    with pytest.raises(RacerError, match="nothing to save"):
        CorrectablePolicy(agent()).save(tmp_path)
