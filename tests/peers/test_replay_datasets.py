"""Replays exported as data sets: minari opens them, and imitation learning with torch learns from them."""

from pathlib import Path

import gymnasium
import numpy as np
import pytest

from racer_env.engine import ANYWHERE, Config, Driver, Simulation, Start, load_circuit
from racer_viewer.cli import main
from racer_viewer.replays import Replay, ReplayRecorder, save_replay
from tests.documents import Document
from tests.replays.replay_drives import ring_run, weaving_run

minari = pytest.importorskip("minari", reason="python run.py --with peers installs it")
pytestmark = pytest.mark.slow


def circuit_run(circuit: str, ticks: int, start: Start, seed: int) -> Replay:
    """Drive a bundled circuit with the engine's driver."""
    track = load_circuit(circuit)
    simulation, driver = Simulation(track, start=start, seed=seed), Driver(track)
    recorder = ReplayRecorder(track.circuit, Config(), start, seed, "Anna")
    for _ in range(ticks):
        action = driver.act(simulation.cars).astype(np.float32).astype(np.float64)
        result = simulation.step(action)
        recorder.add(action[0], float(result.rewards[0]), int(result.finished_lap_ticks[0]))
    return recorder.replay()


@pytest.fixture
def drives() -> list[Replay]:
    return [circuit_run("track-02", 400, Start(), 0), circuit_run("track-02", 300, ANYWHERE, 7)]


def exported(drives: list[Replay], folder: Path, target: Path) -> Path:
    """Save replays and export them; return the folder of the data."""
    paths = [folder / f"{number}.racer" for number in range(len(drives))]
    for drive, path in zip(drives, paths, strict=True):
        save_replay(drive, path)
    assert main(["export", *map(str, paths), "--minari", str(target)]) == 0
    return target / "data"


def test_minari_loads_the_drives_by_their_id(
    drives: list[Replay], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "sets"))
    exported(drives, tmp_path, tmp_path / "sets" / "racer" / "laps-v0")
    dataset = minari.load_dataset("racer/laps-v0")
    assert (dataset.total_episodes, dataset.total_steps) == (2, 700)
    assert [each["seed"] for each in dataset.storage.get_episode_metadata([0, 1])] == [0, 7]
    assert dataset.storage.metadata["replays"][0]["driver"] == "Anna"
    assert dataset.sample_episodes(1)[0].observations.dtype == np.float32


def test_every_step_is_what_the_environment_gives(drives: list[Replay], tmp_path: Path) -> None:
    dataset = minari.MinariDataset(exported(drives, tmp_path, tmp_path / "laps-v0"))
    environment = dataset.recover_environment()
    assert environment.spec.id == "Racer-v0"
    facts = dataset.storage.metadata["replays"]
    for episode, about in zip(dataset.iterate_episodes(), facts, strict=True):
        options = {key: about[key] for key in ("circuit", "start", "config")}
        observation, first = environment.reset(seed=about["seed"], options=options)
        observations, rewards, infos = [observation], [], [first]
        for action in episode.actions:
            observation, reward, _, _, info = environment.step(action)
            observations.append(observation)
            rewards.append(reward)
            infos.append(info)
        np.testing.assert_array_equal(episode.observations, observations)
        np.testing.assert_array_equal(episode.rewards, rewards)
        for key in info:
            np.testing.assert_array_equal(episode.infos[key], [each[key] for each in infos], err_msg=key)
        assert environment.action_space.contains(episode.actions[0])
        assert environment.observation_space.contains(episode.observations[-1])
        assert not episode.terminations.any()
        assert episode.truncations.tolist() == [False] * (len(episode) - 1) + [True]
        assert episode.truncations.dtype == np.bool_
    environment.close()


def test_drives_on_own_circuits_bring_them_along(tmp_path: Path) -> None:
    dataset = minari.MinariDataset(exported([ring_run(), weaving_run(200)], tmp_path, tmp_path / "ring-v1"))
    environment = dataset.recover_environment()
    first, _ = environment.reset(seed=0)
    np.testing.assert_array_equal(first, next(iter(dataset.iterate_episodes())).observations[0])
    environment.close()


def test_a_standstill_terminates_its_episode(tmp_path: Path) -> None:
    track, config = load_circuit("track-01"), Config()
    simulation, recorder = Simulation(track, config=config), ReplayRecorder(track.circuit, config, Start())
    while not simulation.cars.terminated[0]:
        recorder.add((0.0, 0.0, 1.0), float(simulation.step([[0.0, 0.0, 1.0]]).rewards[0]))
    (episode,) = minari.MinariDataset(exported([recorder.replay()], tmp_path, tmp_path / "still-v0")).iterate_episodes()
    assert episode.terminations[-1]
    assert not episode.truncations.any()


def test_data_sets_of_minari_can_be_combined_with_it(drives: list[Replay], tmp_path: Path) -> None:
    """Copy the episodes with minari's own storage, which writes them with h5py."""
    dataset = minari.MinariDataset(exported(drives, tmp_path, tmp_path / "laps-v0"))
    storage = type(dataset.storage).new(tmp_path / "copy", env_spec=dataset.env_spec)
    storage.update_from_storage(dataset.storage)
    assert storage.total_steps == 700
    for mine, copied in zip(dataset.iterate_episodes(), storage.get_episodes([0, 1]), strict=True):
        np.testing.assert_array_equal(mine.observations, copied["observations"])


def test_plain_torch_clones_the_driver_from_the_data_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the example of docs/training.md: the clone drives most of a lap in the environment of the data set."""
    exported([circuit_run("track-01", 2400, Start(), 0)], tmp_path, tmp_path / "shared" / "laps-v0")
    monkeypatch.chdir(tmp_path)
    (example,) = Document("docs/training.md").snippets("py")
    names: dict[str, object] = {}
    exec(example, names)
    environment, policy = names["environment"], names["policy"]
    assert isinstance(environment, gymnasium.Env)
    observation, info = environment.reset(seed=0)
    for _ in range(900):
        action, _ = policy.predict(observation, deterministic=True)  # type: ignore[attr-defined]
        observation, _, _, _, info = environment.step(action)
    assert info["checkpoint"] + 100 * info["lap"] >= 110
    environment.close()
