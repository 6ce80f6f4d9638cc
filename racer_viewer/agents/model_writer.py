"""Model files and statistics for stable-baselines3, written without importing it, torch or gymnasium.

The files contain plain values, tensors, and the names of classes of those packages: they open wherever
stable-baselines3 is installed. Nothing else is copied from another model, so that nothing unknown is passed on.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from racer_viewer.agents.pickle_writer import named_tensors, pickled_dtype, write_pickle, write_tensors, write_zip
from racer_viewer.agents.pickles import PickledName, PickledObject
from racer_viewer.agents.policies import ACTION_HIGH, ACTION_LOW, OBSERVATION_HIGH, OBSERVATION_LOW
from racer_viewer.agents.stats import RunningStats, Statistics
from racer_viewer.agents.stats_files import RUNNING_MEAN_STD, STATS_MEMBER, VEC_NORMALIZE, stats_npz
from racer_viewer.paths import atomic_write

ACTOR_CRITIC = "stable_baselines3.common.policies.ActorCriticPolicy"
POLICY_CLASSES = {
    "PPO": ACTOR_CRITIC,
    "A2C": ACTOR_CRITIC,
    "TRPO": ACTOR_CRITIC,
    "SAC": "stable_baselines3.sac.policies.SACPolicy",
    "TQC": "sb3_contrib.tqc.policies.TQCPolicy",
}
"""Class of the MlpPolicy of each algorithm."""
Limits = tuple[NDArray[np.float32], NDArray[np.float32]]
"""Minimum and maximum of each value of a Box."""
VARIABLES, LEARNED_ENTROPY = "pytorch_variables.pth", "log_ent_coef"
"""Member with the variables of SAC, and the one of them that is learned: the logarithm of the weight of the entropy."""
BOX = "gymnasium.spaces.box.Box"
SETTINGS = frozenset(
    (
        "num_timesteps", "_total_timesteps", "_num_timesteps_at_start", "seed", "learning_rate", "gamma", "use_sde",
        "sde_sample_freq", "_current_progress_remaining", "_n_updates", "_episode_num", "n_envs", "n_steps",
        "gae_lambda", "ent_coef", "vf_coef", "max_grad_norm", "batch_size", "n_epochs", "clip_range",
        "normalize_advantage", "target_kl", "buffer_size", "learning_starts", "train_freq", "gradient_steps", "tau",
        "target_entropy", "target_update_interval", "top_quantiles_to_drop_per_net", "use_sde_at_warmup",
        "rms_prop_eps", "cg_max_steps", "cg_damping", "line_search_shrinking_factor", "line_search_max_iter",
        "n_critic_updates", "sub_sampling_factor",
    )
)  # fmt: skip
"""Settings of an algorithm that a file may contain, all plain numbers."""
AUTOMATIC = re.compile(r"auto(_\d+(\.\d+)?)?")
"""Text that SAC takes instead of a number for its entropy."""
ADAM: dict[str, Any] = {
    "betas": (0.9, 0.999), "eps": 1e-5, "weight_decay": 0, "amsgrad": False, "maximize": False, "foreach": None,
    "capturable": False, "differentiable": False, "fused": None,
}  # fmt: skip
"""Settings of the optimiser that stable-baselines3 uses by default."""


@dataclass(frozen=True, eq=False)
class ModelContent:
    """Content of a model file.

    settings: attributes of the algorithm, plain values by their names in stable-baselines3; see `SETTINGS`.
    policy_settings: its `policy_kwargs`; a class is a `PickledName`.
    tensors: parameters of the policy, by name. variables: further tensors of SAC.
    optimisers: `state_dict` of each optimiser, with arrays for tensors.
    stats: normalisation statistics, a member that stable-baselines3 ignores.
    """

    algorithm: str
    settings: Mapping[str, Any]
    policy_settings: Mapping[str, Any]
    tensors: Mapping[str, NDArray[np.float32]]
    optimisers: Mapping[str, Any]
    variables: Mapping[str, NDArray[np.float32]] = field(default_factory=dict)
    action_limits: Limits = (ACTION_LOW, ACTION_HIGH)
    stats: Statistics | None = None

    def to_bytes(self) -> bytes:
        """Return the zip file."""
        members = {"data": self._description(), "policy.pth": write_tensors(named_tensors(self.tensors))}
        members |= {f"{name}.pth": write_tensors(state) for name, state in self.optimisers.items()}
        members[VARIABLES] = write_tensors(dict(self.variables))
        if self.stats is not None:
            members[STATS_MEMBER] = stats_npz(self.stats)
        return write_zip(members)

    def _description(self) -> bytes:
        class_name = POLICY_CLASSES[self.algorithm]
        module, _, name = class_name.rpartition(".")
        fields = {
            "policy_class": {
                **_entry("abc.ABCMeta", PickledName(class_name)),
                "__module__": module,
                "__init__": f"<function {name}.__init__ at 0x0>",
            },
            "policy_kwargs": _entry("dict", dict(self.policy_settings), self.policy_settings),
            "observation_space": _box_entry(OBSERVATION_LOW, OBSERVATION_HIGH),
            "action_space": _box_entry(*self.action_limits),
            "verbose": 0,
            "n_envs": 1,
            **plain_settings(self.settings),
        }
        return json.dumps(fields, indent=1).encode()


def save_model(model: ModelContent, path: Path) -> Path:
    """Write NAME_vecnormalize.pkl for other programs, then NAME.zip, which contains the statistics too."""
    if model.stats is not None:
        with atomic_write(path.with_name(f"{path.stem}_vecnormalize.pkl")) as temporary:
            temporary.write_bytes(write_vec_normalize(model.stats))
    with atomic_write(path) as temporary:
        temporary.write_bytes(model.to_bytes())
    return path


def plain_settings(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of an algorithm among some fields; other names and other kinds of values are left out."""
    return {name: value for name, value in fields.items() if name in SETTINGS and _is_plain(name, value)}


def new_optimiser(parameters: int, learning_rate: float) -> dict[str, Any]:
    """Return the state of an Adam optimiser that has made no step yet. parameters: number of its tensors."""
    return {"state": {}, "param_groups": [{"lr": learning_rate, **ADAM, "params": list(range(parameters))}]}


def write_vec_normalize(stats: Statistics) -> bytes:
    """Return a pickle that `VecNormalize.load` of stable-baselines3 opens."""
    fields: dict[str, Any] = {
        "num_envs": 1,
        "observation_space": _box(OBSERVATION_LOW, OBSERVATION_HIGH),
        "action_space": _box(ACTION_LOW, ACTION_HIGH),
        "reset_infos": [{}],
        "_seeds": [None],
        "_options": [{}],
        "render_mode": None,
        "metadata": {"render_modes": []},
        "norm_obs": stats.observations is not None,
        "norm_obs_keys": None,
        "ret_rms": _running_mean_std(stats.returns or RunningStats(np.zeros(()), np.ones(()), 1e-4)),
        "clip_obs": float(stats.clip_obs),
        "clip_reward": float(stats.clip_reward),
        "gamma": float(stats.gamma),
        "epsilon": float(stats.epsilon),
        "training": True,
        "norm_reward": bool(stats.norm_reward),
        "old_reward": np.zeros(0),
        "old_obs": np.zeros(0),
    }
    if stats.observations is not None:
        fields["obs_rms"] = _running_mean_std(stats.observations)
    return write_pickle(PickledObject(VEC_NORMALIZE, (), state=fields, is_new=True))


def _is_plain(name: str, value: Any) -> bool:
    if isinstance(value, str):
        return name in ("ent_coef", "target_entropy") and AUTOMATIC.fullmatch(value) is not None
    if isinstance(value, int):
        return abs(value) < 2**63
    return value is None or (isinstance(value, float) and math.isfinite(value))


def _entry(type_name: str, value: Any, shown: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return a pickled value as the description has it: its type, the pickle, and its attributes in plain JSON."""
    plain = {
        key: f"<class '{each.text}'>" if isinstance(each, PickledName) else each for key, each in (shown or {}).items()
    }
    return {":type:": f"<class '{type_name}'>", ":serialized:": base64.b64encode(write_pickle(value)).decode(), **plain}


def _box_entry(low: NDArray[np.float32], high: NDArray[np.float32]) -> dict[str, Any]:
    shown = {"dtype": "float32", "_shape": list(low.shape), "low": str(low), "high": str(high)}
    return _entry(BOX, _box(low, high), shown)


def _box(low: NDArray[np.float32], high: NDArray[np.float32]) -> PickledObject:
    state = {
        "dtype": pickled_dtype(low.dtype),
        "_shape": low.shape,
        "low": low,
        "bounded_below": np.isfinite(low),
        "high": high,
        "bounded_above": np.isfinite(high),
        "low_repr": str(low),
        "high_repr": str(high),
        "_np_random": None,
    }
    return PickledObject(BOX, (), state=state, is_new=True)


def _running_mean_std(running: RunningStats) -> PickledObject:
    state = {"mean": running.mean, "var": running.var, "count": float(running.count)}
    return PickledObject(RUNNING_MEAN_STD, (), state=state, is_new=True)
