"""Learner on stable-baselines3: environment, model, checkpoints, schedules and metric files of PPO and SAC."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3 import PPO, SAC
from stable_baselines3.common import callbacks as sb3_callbacks
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import KVWriter, Logger
from stable_baselines3.common.running_mean_std import RunningMeanStd
from stable_baselines3.common.type_aliases import TrainFreq
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper, VecNormalize
from stable_baselines3.common.vec_env.base_vec_env import VecEnvObs, VecEnvStepReturn

from racer_env.bridge.interface import component_keys
from racer_env.engine import Config, Simulation, Track, load_circuit
from racer_env.engine.rewards import PROGRESS
from racer_env.errors import RacerError
from racer_env.vector import RacerVectorEnv
from racer_viewer.agents import AgentError, load_agent, load_stats, restore_stats, stats_of
from racer_viewer.agents.archive import Archive, read_file
from racer_viewer.agents.model_writer import LEARNED_ENTROPY, VARIABLES, ModelContent, save_model
from racer_viewer.agents.pickles import PickledName, TensorFile, TorchFile
from racer_viewer.training.config import PAID_UNITS, STARTS, RunConfig
from racer_viewer.training.lap_tracker import LapTracker
from racer_viewer.training.learner import Callback, Learner, PolicyWeights
from racer_viewer.training.metric_files import MetricsFiles
from racer_viewer.training.policy_log import PolicyLayout, driving_tensors
from racer_viewer.training.run_folder import CONFIG_FILE, Checkpoint, ResumeError
from racer_viewer.training.run_log import RunLog
from racer_viewer.training.vec_env import SB3VecEnv, find_cars, simulation_of

Model = PPO | SAC

ACTIVATIONS = {"tanh": torch.nn.Tanh, "relu": torch.nn.ReLU}
TORCH_THREADS_VARIABLE = "RACER_TORCH_THREADS"


class SB3Learner(Learner):
    """PPO or SAC of stable-baselines3, with cars in this process or on a bridge.

    env: the normalised environment. model: the algorithm with its policy.
    """

    def __init__(self, config: RunConfig, bridge_url: str | None = None) -> None:
        self.config = config
        self.env = make_env(config, bridge_url)
        with ExitStack() as on_error:
            on_error.callback(self.env.close)
            self.model = make_model(config, self.env)
            on_error.pop_all()
        self._cars = find_cars(self.env)

    @property
    def steps(self) -> int:
        return self.model.num_timesteps

    @property
    def updates(self) -> int:
        return self.model._n_updates

    @property
    def simulation(self) -> Simulation | None:
        return simulation_of(self._cars)

    @property
    def logger(self) -> Logger:
        return self.model.logger

    def load(self, checkpoint: Checkpoint) -> None:
        restore(checkpoint, self.model, self.env)

    def load_weights(self, model: str) -> None:
        begin_from(model, self.model, self.env)

    def learn(self, folder: Path, log: RunLog, callback: Callback) -> None:
        steps = self.steps
        callbacks: list[BaseCallback] = [_LearnerCallback(self, callback)]
        if self.config.algo == "ppo":
            callbacks.insert(0, LogStdLimitCallback(self.config))
        with metrics_files(self.model, folder, log, callback.on_problem):
            self.model.learn(
                self.config.timesteps - steps,
                sb3_callbacks.CallbackList(callbacks),
                log_interval=1,
                reset_num_timesteps=not steps,
            )

    def set_rewards(self, rewards: Config) -> None:
        super().set_rewards(rewards)
        self._cars.set_component_keys(component_keys(rewards))

    def policy_layout(self) -> PolicyLayout:
        shapes = {name: tensor.shape for name, tensor in driving_tensors(self.model.policy.state_dict()).items()}
        return PolicyLayout(
            self.config.algo, self.config.activation, float(self.env.clip_obs), float(self.env.epsilon), shapes
        )

    def policy_weights(self) -> PolicyWeights:
        running = self.observation_statistics
        return PolicyWeights(driving_tensors(self.model.policy.state_dict()), running.mean, running.var)

    @property
    def observation_statistics(self) -> RunningMeanStd:
        assert isinstance(self.env.obs_rms, RunningMeanStd)
        return self.env.obs_rms

    def save(self, path: Path) -> Path:
        return save_checkpoint(self.model, self.env, path)

    def close(self) -> None:
        self.env.close()


class _LearnerCallback(BaseCallback):
    """Forwards the events of stable-baselines3 to a run's callback."""

    def __init__(self, learner: SB3Learner, callback: Callback) -> None:
        super().__init__()
        self._learner, self._callback = learner, callback

    def _on_training_start(self) -> None:
        learner = self._learner
        self._cars = find_cars(learner.env)
        self._laps = LapTracker(learner.config, learner.simulation, self._cars.last_step)
        self._callback.on_training_start()

    def _on_rollout_start(self) -> None:
        self._callback.on_rollout_start()

    def _on_step(self) -> bool:
        go_on = self._callback.on_step(self._laps.step(self._cars.last_step))
        self._laps.update_tracks()
        return go_on

    def _on_rollout_end(self) -> None:
        self._callback.on_rollout_end()

    def _on_training_end(self) -> None:
        self._callback.on_training_end()


def make_env(config: RunConfig, bridge_url: str | None = None) -> VecNormalize:
    """Create the cars, with normalised observations and rewards."""
    env = make_cars(config, bridge_url)
    return VecNormalize(env, norm_reward=config.norm_reward, clip_obs=config.clip_obs, gamma=config.gamma)


def make_cars(config: RunConfig, bridge_url: str | None = None) -> VecEnv:
    """Create the cars with the rewards of the config."""
    cars = RacerVectorEnv(
        config.num_cars,
        bridge_url,
        track_id=config.tracks,
        redraw=len(config.tracks) > 1,
        config=config.rewards,
        start=STARTS[config.starts],
    )
    plain = SB3VecEnv(cars)
    return ProgressInUnits(plain, config.tracks) if config.progress_in_units else plain


def make_model(config: RunConfig, env: VecNormalize) -> Model:
    """Create an untrained model. Small networks learn fastest on one thread of torch."""
    check_device(config.device)
    torch.set_num_threads(int(os.environ.get(TORCH_THREADS_VARIABLE, "1")))
    common: dict[str, Any] = {
        "policy": "MlpPolicy",
        "env": env,
        "learning_rate": config.learning_rates,
        "gamma": config.gamma,
        "batch_size": config.batch_size,
        "seed": config.seed,
        "device": config.device,
        "verbose": 0,
    }
    network = {"net_arch": list(config.net), "activation_fn": ACTIVATIONS[config.activation]}
    if config.algo == "sac":
        return SAC(
            **common,
            buffer_size=config.buffer_size,
            learning_starts=config.learning_starts,
            train_freq=config.train_freq,
            gradient_steps=config.gradient_steps,
            tau=config.tau,
            use_sde=True,
            policy_kwargs={**network, "log_std_init": config.log_std},
        )
    model = PPO(
        **common,
        n_steps=config.n_steps,
        n_epochs=config.n_epochs,
        gae_lambda=config.gae_lambda,
        clip_range=config.clip_range,
        ent_coef=config.ent_coef,
        vf_coef=config.vf_coef,
        max_grad_norm=config.max_grad_norm,
        policy_kwargs={**network, "log_std_init": config.log_std},
    )
    with torch.no_grad():
        cast(torch.nn.Linear, model.policy.action_net).bias.copy_(torch.tensor(config.first_action))
    return model


def check_device(name: str) -> None:
    """Raise RacerError for a device that torch does not have here; stable-baselines3 would use the CPU instead."""
    kind, _, number = name.partition(":")
    found = {"cuda": torch.cuda.device_count(), "mps": int(torch.backends.mps.is_available())}.get(kind, 1)
    if int(number or 0) >= found:
        raise RacerError(f"device {name} is not available here: use --device cpu, or auto for the fastest one")


class ProgressInUnits(VecEnvWrapper):
    """Pays progress per distance instead of per lap, so that a unit of distance is worth the same on every circuit."""

    def __init__(self, venv: SB3VecEnv, tracks: Sequence[str]) -> None:
        super().__init__(venv)
        self._cars = venv
        self._scales = np.array([load_circuit(name).length for name in tracks]) / PAID_UNITS
        self._tracks: tuple[Track, ...] = ()
        self._car_scales = self._scales[:1]
        """Scale of each car, or a single one for all cars."""

    def reset(self) -> VecEnvObs:
        observations = self.venv.reset()
        self._update_scales()
        return observations

    def step_wait(self) -> VecEnvStepReturn:
        observations, rewards, dones, infos = self.venv.step_wait()
        extra = self._cars.last_step.components[:, PROGRESS] * (self._car_scales - 1.0)
        if dones.any():
            self._update_scales()
        return observations, (rewards + extra).astype(np.float32), dones, infos

    def _update_scales(self) -> None:
        """Set the scale of each car's current track; a bridge does not report it and allows one circuit only."""
        simulation = simulation_of(self._cars)
        if simulation is not None and simulation.tracks is not self._tracks:
            self._tracks = simulation.tracks
            self._scales = np.array([track.length for track in self._tracks]) / PAID_UNITS
        if len(self._scales) > 1:
            if simulation is None:
                raise RacerError("progress_in_units with several circuits does not work on a bridge: use one circuit")
            self._car_scales = self._scales[simulation.cars.track]


class LogStdLimitCallback(BaseCallback):
    """Limits the noise on PPO's actions by a schedule: the last tenths of a second need little noise."""

    def __init__(self, config: RunConfig) -> None:
        super().__init__()
        self._limit = config.log_std_limits

    def _on_rollout_start(self) -> None:
        remaining = self.model._current_progress_remaining
        with torch.no_grad():
            self.model.policy.log_std.clamp_(max=self._limit(remaining))  # type: ignore[operator]

    def _on_step(self) -> bool:
        return True


def save_checkpoint(model: Model, env: VecNormalize, path: Path) -> Path:
    """Write a model that stable-baselines3 can load where racer-viewer is not installed, with its statistics.

    `model.save` would pickle the schedule's class and the last observations. The file has the current learning rate
    instead; a resumed run has its schedule from its config.
    """
    settings: dict[str, Any] = {**vars(model), "learning_rate": model.lr_schedule(model._current_progress_remaining)}
    variables: dict[str, torch.Tensor] = {}
    if isinstance(model, PPO):
        assert callable(model.clip_range)
        settings["clip_range"] = model.clip_range(model._current_progress_remaining)
    else:
        assert isinstance(model.train_freq, TrainFreq)
        assert model.log_ent_coef is not None
        settings["train_freq"] = model.train_freq.frequency
        variables[LEARNED_ENTROPY] = model.log_ent_coef
    tensors, *optimisers = _to_arrays(model.get_parameters()).items()
    content = ModelContent(
        algorithm="PPO" if isinstance(model, PPO) else "SAC",
        settings=settings,
        policy_settings={
            key: PickledName(f"{value.__module__}.{value.__name__}") if isinstance(value, type) else value
            for key, value in model.policy_kwargs.items()
        },
        tensors=tensors[1],
        optimisers=dict(optimisers),
        variables=_to_arrays(variables),
        stats=stats_of(env),
    )
    return save_model(content, path)


def _to_arrays(value: Any) -> Any:
    """Return a copy of nested dictionaries and lists in which tensors are arrays."""
    match value:
        case torch.Tensor():
            return value.detach().cpu().numpy()
        case dict():
            return {key: _to_arrays(each) for key, each in value.items()}
        case list():
            return [_to_arrays(each) for each in value]
        case _:
            return value


def restore(checkpoint: Checkpoint, model: Model, env: VecNormalize) -> None:
    """Load weights, optimiser, statistics and step counter of a checkpoint into a new model of the same config."""
    try:
        archive = load_parameters(checkpoint.model, model)
        if isinstance(model, SAC) and model.log_ent_coef is not None:
            entropy = TensorFile(archive.read(VARIABLES)).read(LEARNED_ENTROPY)
            model.log_ent_coef.data.copy_(torch.from_numpy(entropy))
    except (AgentError, ValueError, RuntimeError, KeyError) as error:
        raise ResumeError(f"{checkpoint.model} does not fit its {CONFIG_FILE}: {_first_line(error)}") from None
    restore_stats(load_stats(checkpoint.stats), env)
    model.num_timesteps = checkpoint.steps
    if isinstance(model, SAC):  # its replay buffer is not saved: fill it with the policy before the next update
        model.learning_starts += checkpoint.steps
        model.use_sde_at_warmup = True


def load_parameters(path: Path, model: Model) -> Archive:
    """Load the weights and the state of the optimisers of a model file, and return it; other settings stay.

    Only tensors are read from the file, within the bounds of every model; `PPO.load` would execute pickled code.
    """
    archive = Archive(read_file(path))
    parameters: dict[str, Any] = {}
    for name, current in model.get_parameters().items():
        data = archive.read(f"{name}.pth")
        if "param_groups" in current:
            entries = TorchFile(data).adam(sum(len(group["params"]) for group in current["param_groups"]))
            state = {number: _to_tensors(entry) for number, entry in enumerate(entries)}
            parameters[name] = {"param_groups": current["param_groups"], "state": state}
        else:
            file = TensorFile(data)
            parameters[name] = _to_tensors({each: file.read(each) for each in file.names})
    model.set_parameters(parameters, exact_match=True, device=model.device)
    return archive


def _to_tensors(arrays: Mapping[str, NDArray[np.float32]]) -> dict[str, torch.Tensor]:
    return {name: torch.from_numpy(array) for name, array in arrays.items()}


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)


def begin_from(path: str, model: Model, env: VecNormalize) -> None:
    """Load weights and statistics of a model into a new one; the action noise stays that of the new config."""
    source = load_agent(path).info  # finds bundled models by name and checks the file
    if source.stats_path is None:
        raise RacerError(f"{source.path} has no statistics beside it, without which its weights cannot be used")
    noise = model.policy.log_std.detach().clone() if isinstance(model, PPO) else None
    try:
        load_parameters(source.path, model)
    except (AgentError, ValueError, RuntimeError, KeyError) as error:
        layers = ",".join(map(str, source.policy_layers or ()))
        raise RacerError(
            f"{source.path} does not fit: it is {source.algorithm} with hidden layers {layers} "
            f"({source.activation}); set --algo, net and activation to match ({_first_line(error)})"
        ) from None
    if noise is not None:
        with torch.no_grad():
            model.policy.log_std.copy_(noise)  # type: ignore[operator]
    restore_stats(load_stats(source.stats_path), env)


@contextmanager
def metrics_files(model: Model, folder: Path, log: RunLog, on_problem: Callable[[str], None]) -> Iterator[None]:
    """Write the model's metrics to the files of a run."""
    with closing(MetricsFiles(folder, model.num_timesteps, log, on_problem)) as files:
        model.set_logger(Logger(str(folder), [MetricsWriter(files)]))
        yield


class MetricsWriter(KVWriter):
    """Writes the metrics of stable-baselines3 to the files of a run, which closes them."""

    def __init__(self, files: MetricsFiles) -> None:
        self._files = files

    def write(self, key_values: dict[str, Any], key_excluded: dict[str, tuple[str, ...]], step: int = 0) -> None:
        self._files.write(key_values, step)

    def close(self) -> None:
        """Do nothing."""
