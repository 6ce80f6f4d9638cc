"""The `VecNormalize` pickle of stable-baselines3, read without running it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from racer_viewer.agents import arrays
from racer_viewer.agents.errors import AgentError, shown
from racer_viewer.agents.pickles import Record, read_pickle
from racer_viewer.agents.stats import Statistics, stats_of

VEC_NORMALIZE = "stable_baselines3.common.vec_env.vec_normalize.VecNormalize"
RUNNING_MEAN_STD = "stable_baselines3.common.running_mean_std.RunningMeanStd"
SPACES = frozenset(
    f"{package}.spaces.{space}"
    for package in ("gymnasium", "gym")
    for space in ("box.Box", "dict.Dict", "discrete.Discrete", "multi_discrete.MultiDiscrete")
)
RANDOM = frozenset(
    f"numpy.random.{name}"
    for name in (
        "_pickle.__generator_ctor", "_pickle.__bit_generator_ctor", "_pickle.__randomstate_ctor",
        "_pcg64.PCG64", "_pcg64.PCG64DXSM", "_mt19937.MT19937", "_philox.Philox", "_sfc64.SFC64",
        "bit_generator.SeedSequence", "bit_generator.__pyx_unpickle_SeedSequence",
    )
)  # fmt: skip
SEEDING = frozenset(f"gym.utils.seeding.RandomNumberGenerator{method}" for method in ("", "._generator_ctor"))
ALLOWED = frozenset(
    (VEC_NORMALIZE, RUNNING_MEAN_STD, "collections.OrderedDict", *SPACES, *RANDOM, *SEEDING, *arrays.ALLOWED)
)
"""Everything that occurs in such files, from stable-baselines3 1.7 to 2.9, numpy 1 and 2, gym and gymnasium."""


def read_vec_normalize(data: bytes) -> Statistics:
    """The statistics in a saved `VecNormalize`."""
    content = read_pickle(data, ALLOWED)
    if not isinstance(content, Record) or content.name != VEC_NORMALIZE or not isinstance(content.state, dict):
        raise AgentError("is a pickle, but not of a VecNormalize")
    fields = content.state
    try:
        normalises = bool(fields["norm_obs"])
        return stats_of(
            SimpleNamespace(
                norm_obs=normalises,
                obs_rms=_running(fields["obs_rms"]) if normalises else None,
                ret_rms=_running(fields["ret_rms"]),
                norm_reward=bool(fields["norm_reward"]),
                **{name: arrays.to_floats(fields[name]) for name in ("clip_obs", "clip_reward", "epsilon", "gamma")},
            )
        )
    except KeyError as error:
        raise AgentError(f"is a VecNormalize without {shown(error.args[0])}") from error
    except (TypeError, ValueError, OverflowError, LookupError) as error:
        raise AgentError(f"is a VecNormalize that is damaged ({shown(str(error))})") from error


def _running(value: Any) -> Any:
    """The statistics of one input; of several (a dict) as they are, to be refused by name."""
    if isinstance(value, dict):
        return value
    if not isinstance(value, Record) or value.name != RUNNING_MEAN_STD or not isinstance(value.state, dict):
        raise TypeError("no running mean and variance")
    numbers = {name: arrays.to_floats(value.state[name]) for name in ("mean", "var", "count")}
    return SimpleNamespace(**numbers)
