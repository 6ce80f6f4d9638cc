"""Model files written without torch open in plain stable-baselines3 and drive the same."""

import io
import pickle
import shutil
import site
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from stable_baselines3 import A2C, PPO, SAC
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from racer_env.env import RacerEnv
from racer_env.errors import RacerError
from racer_viewer.agents import load_agent, load_stats, stats_of
from racer_viewer.agents.load import MissingStatisticsWarning
from racer_viewer.agents.model_writer import VARIABLES, plain_settings, write_vec_normalize
from racer_viewer.agents.pickle_writer import named_tensors, write_pickle, write_tensors
from racer_viewer.agents.pickles import ALLOWED_IN_ARRAYS, TensorFile, read_pickle, to_floats
from racer_viewer.agents.stats import RunningStats, Statistics
from racer_viewer.training.export import fold, share
from tests.agents.models import SETTINGS, some_observations, trained
from tests.agents.zips import pack, unpack

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**100), 2**100) | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda each: st.lists(each) | st.lists(each).map(tuple) | st.dictionaries(st.text(), each),
    max_leaves=20,
)
NUMBERS = st.sampled_from([np.float32, np.float64, np.int64, np.uint8, np.bool_]).flatmap(
    lambda dtype: arrays.arrays(dtype, arrays.array_shapes(min_dims=0, min_side=0, max_side=4))
)


@given(PLAIN)
def test_plain_values_are_pickled_as_python_reads_them(value: Any) -> None:
    written = pickle.loads(write_pickle(value))
    assert written == value
    assert repr(written) == repr(value)
    assert read_pickle(write_pickle(value), ()) == value


@given(NUMBERS)
def test_arrays_are_pickled_as_numpy_reads_them(array: np.ndarray) -> None:
    written = pickle.loads(write_pickle(array))
    assert written.dtype == array.dtype
    np.testing.assert_array_equal(written, array)
    np.testing.assert_array_equal(to_floats(read_pickle(write_pickle(array), ALLOWED_IN_ARRAYS)), array)


def test_values_of_other_kinds_are_refused() -> None:
    with pytest.raises(TypeError, match="a set cannot be pickled here"):
        write_pickle({"a": {1}})


@given(arrays.arrays(np.float32, arrays.array_shapes(min_dims=0, max_side=5), elements=st.floats(-1e6, 1e6, width=32)))
def test_tensors_are_written_as_torch_reads_them(array: np.ndarray) -> None:
    nested = {"state": {0: {"step": array}}, "groups": [{"betas": (0.9, 0.999), "params": [0]}]}
    read = torch.load(io.BytesIO(write_tensors(nested)), weights_only=True)
    np.testing.assert_array_equal(read["state"][0]["step"].numpy(), array)
    assert read["groups"] == nested["groups"]
    named = write_tensors(named_tensors({"weight": array}))
    np.testing.assert_array_equal(torch.load(io.BytesIO(named), weights_only=True)["weight"].numpy(), array)
    np.testing.assert_array_equal(TensorFile(named).read("weight"), array)


@pytest.mark.parametrize("name", SETTINGS)
def test_a_shared_copy_opens_in_stable_baselines_and_acts_the_same(name: str, folder: Path, tmp_path: Path) -> None:
    original = trained(name, folder)
    copy = share(original.path, tmp_path / "copy")
    model = type(original.model).load(copy, device="cpu")
    inputs = original.vec_normalize.normalize_obs(some_observations(200))
    np.testing.assert_array_equal(
        model.predict(inputs, deterministic=True)[0], original.model.predict(inputs, deterministic=True)[0]
    )
    ours, theirs = original.model.policy.state_dict(), model.policy.state_dict()
    assert list(ours) == list(theirs)
    assert all(torch.equal(ours[key], theirs[key]) for key in ours)
    assert model.gamma == original.model.gamma
    assert model.num_timesteps == original.model.num_timesteps
    agent = load_agent(copy)
    assert agent.info.stats_path == copy
    assert agent.info.algorithm == original.agent.info.algorithm


@pytest.mark.parametrize("name", ["ppo", "a2c", "sac-gsde"])
def test_a_shared_copy_goes_on_learning_in_stable_baselines(name: str, folder: Path, tmp_path: Path) -> None:
    original = trained(name, folder)
    copy = share(original.path, tmp_path / "copy")
    env = VecNormalize.load(str(tmp_path / "copy_vecnormalize.pkl"), original.vec_normalize.venv)
    model = type(original.model).load(copy, env=env, device="cpu")
    before = {key: tensor.clone() for key, tensor in model.policy.state_dict().items()}
    model.learn(128)
    assert not any(torch.equal(tensor, before[key]) for key, tensor in model.policy.state_dict().items())
    model.save(tmp_path / "again.zip")
    with pytest.warns(MissingStatisticsWarning):
        assert load_agent(tmp_path / "again.zip").info.timesteps == model.num_timesteps


def test_pickled_objects_of_a_model_are_not_copied(folder: Path, tmp_path: Path) -> None:
    original = trained("ppo", folder).path
    with zipfile.ZipFile(original) as source, zipfile.ZipFile(tmp_path / "evil.zip", "w") as target:
        for member in source.namelist():
            target.writestr(member, source.read(member))
        target.writestr("note.txt", "a word about the machine")
    with pytest.warns(MissingStatisticsWarning):
        copy = share(tmp_path / "evil.zip", tmp_path / "copy.zip")
    with zipfile.ZipFile(copy) as written:
        assert set(written.namelist()) == {
            "data", "policy.pth", "policy.optimizer.pth", "pytorch_variables.pth"
        }  # fmt: skip
        assert b"_last_obs" not in written.read("data")


def test_unknown_variables_of_a_model_are_not_copied(folder: Path, tmp_path: Path) -> None:
    original = trained("sac", folder).path
    members = unpack(original.read_bytes())
    (name,) = known = TensorFile(members[VARIABLES]).names
    variables = {name: np.zeros(1, np.float32), "message": np.arange(500, dtype=np.float32)}
    members[VARIABLES] = write_tensors(named_tensors(variables))
    (tmp_path / "evil.zip").write_bytes(pack(members))
    copy = share(tmp_path / "evil.zip", tmp_path / "copy.zip", original.with_name(f"{original.stem}_vecnormalize.pkl"))
    assert TensorFile(unpack(copy.read_bytes())[VARIABLES]).names == known


def test_a_copy_without_statistics_does_not_take_those_of_another_model(folder: Path, tmp_path: Path) -> None:
    original = trained("ppo", folder).path
    (tmp_path / "model.zip").write_bytes(original.read_bytes())
    exports = tmp_path / "exports"
    other = share(original, exports / "copy.zip")
    other.unlink()
    with (
        pytest.warns(MissingStatisticsWarning),
        pytest.raises(RacerError, match=r"copy_vecnormalize\.pkl has the statistics of another model"),
    ):
        share(tmp_path / "model.zip", exports / "copy.zip")
    assert not other.exists()


@pytest.mark.parametrize("normalises", [True, False])
def test_statistics_open_in_vec_normalize(normalises: bool, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    running = RunningStats(rng.normal(size=14), rng.uniform(0.1, 2.0, 14), 123.5)
    stats = Statistics(running if normalises else None, RunningStats(np.array(0.5), np.array(2.0), 99.0), 5.0, 7.0)
    path = tmp_path / "x_vecnormalize.pkl"
    path.write_bytes(write_vec_normalize(stats))
    env = VecNormalize.load(str(path), DummyVecEnv([RacerEnv]))
    try:
        again = stats_of(env)
        observation = env.reset()
        env.step(np.zeros((1, 3), np.float32))
    finally:
        env.close()
    assert observation.shape == (1, 14)
    for each in (again, load_stats(path)):
        assert (each.clip_obs, each.clip_reward, each.epsilon, each.gamma) == (5.0, 7.0, stats.epsilon, stats.gamma)
        assert (each.observations is not None) == normalises
        np.testing.assert_array_equal(each.returns.var, 2.0)
        if each.observations is not None:
            np.testing.assert_array_equal(each.observations.mean, running.mean)
            assert each.observations.count == 123.5


@pytest.mark.parametrize("name", [name for name in SETTINGS if name not in ("sac-linear", "ppo-linear")])
def test_a_folded_model_takes_raw_observations(name: str, folder: Path, tmp_path: Path) -> None:
    original = trained(name, folder)
    observations = some_observations(400)
    folding = fold(original.agent, tmp_path / "folded.zip", observations)
    assert 0.0 < folding.clipped < 0.5
    assert folding.difference < 1e-4
    inside = (np.abs(original.vec_normalize.normalize_obs(observations)) < 4.0).all(axis=1)
    model = type(original.model).load(folding.path, device="cpu")
    np.testing.assert_allclose(
        model.predict(observations[inside], deterministic=True)[0], original.predict(observations[inside]), atol=1e-4
    )
    (tmp_path / "vecnormalize.pkl").write_bytes((folder / f"{name}_vecnormalize.pkl").read_bytes())
    assert not load_agent(folding.path).normalised, "other statistics beside it are not applied"


@pytest.fixture(scope="session")
def plain_packages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with the packages that stable-baselines3 needs, and without racer-viewer."""
    target = tmp_path_factory.mktemp("packages")
    for source in map(Path, site.getsitepackages()):
        for entry in source.iterdir():
            if "racer" not in entry.name and entry.suffix != ".pth" and not (target / entry.name).exists():
                (target / entry.name).symlink_to(entry, entry.is_dir())
    yield target
    shutil.rmtree(target)


PROGRAM = """
import importlib.util, sys
sys.path.append(sys.argv[1])
assert importlib.util.find_spec("racer_viewer") is None and importlib.util.find_spec("racer_env") is None
import gymnasium, numpy
from stable_baselines3 import PPO, SAC
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

class Spaces(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (14,))
    action_space = gymnasium.spaces.Box(numpy.array([-1, 0, 0], numpy.float32), numpy.ones(3, numpy.float32))

for path in sys.argv[2:]:
    model = (SAC if "sac" in path else PPO).load(path)
    stats = VecNormalize.load(path.replace(".zip", "_vecnormalize.pkl"), DummyVecEnv([Spaces]))
    observation = stats.normalize_obs(numpy.linspace(0.0, 1.0, 14, dtype=numpy.float32))
    print(*model.predict(observation, deterministic=True)[0])
"""


@pytest.mark.slow
def test_models_open_where_racer_viewer_is_not_installed(
    plain_packages: Path, small_runs: list[Path], tmp_path: Path
) -> None:
    """Load final, best and checkpoint models of training, and the bundled ones."""
    bundled = [Path(__file__).parents[2] / "models" / f"{name}.zip" for name in ("champion", "sac-track-01")]
    models = [*small_runs, *bundled]
    command = [sys.executable, "-I", "-S", "-c", PROGRAM, str(plain_packages), *map(str, models)]
    result = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    for line, path in zip(result.stdout.splitlines(), models, strict=True):
        expected = load_agent(path).act(np.linspace(0.0, 1.0, 14, dtype=np.float32))
        np.testing.assert_allclose([float(word) for word in line.split()], expected, atol=1e-5)


@pytest.fixture(scope="module")
def small_runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """All models of a short PPO run and a short SAC run."""
    from racer_viewer.training.config import RunConfig
    from racer_viewer.training.run import Run

    runs = tmp_path_factory.mktemp("runs")
    ppo = RunConfig(name="small-ppo", timesteps=512, num_cars=8, n_steps=16, batch_size=64, checkpoint_every=256)
    sac = RunConfig(
        algo="sac", name="small-sac", timesteps=512, num_cars=8, learning_starts=64, batch_size=32, buffer_size=1000
    )
    for config in (ppo, sac):
        Run(config, runs).learn()
    models = sorted(runs.glob("*/*.zip"))
    assert {path.stem for path in models} >= {"small-ppo", "small-ppo_256_steps", "small-sac"}
    return models


def test_a_resumed_run_has_the_optimiser_of_its_checkpoint(small_runs: list[Path]) -> None:
    checkpoint = next(path for path in small_runs if path.stem == "small-ppo_256_steps")
    model = PPO.load(checkpoint, device="cpu")
    state = model.policy.optimizer.state_dict()["state"]
    assert len(state) == len(model.policy.state_dict())
    assert all(entry["step"] > 0 and entry["exp_avg_sq"].abs().sum() > 0 for entry in state.values())


def test_the_algorithms_are_recognised(folder: Path) -> None:
    kinds = {PPO: "PPO", A2C: "A2C", SAC: "SAC"}
    for name in ("ppo", "a2c", "sac"):
        original = trained(name, folder)
        assert original.agent.info.algorithm == kinds[type(original.model)]


def test_settings_that_no_algorithm_can_have_are_left_out() -> None:
    fields = {"n_epochs": 10**400, "gamma": float("nan"), "batch_size": 64, "policy": "MlpPolicy"}
    assert plain_settings(fields) == {"batch_size": 64}
