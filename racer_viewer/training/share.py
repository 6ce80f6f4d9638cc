"""`racer-viewer export --zip`: a model to give away.

What a training saves also holds the optimiser's memory, the last observations and the paths of the machine that it ran
on. What is written here drives the same, loads in stable-baselines3 as before, and is a third as large. Nothing in the
file is executed on the way.
"""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from racer_env.errors import RacerError
from racer_viewer.agents import find_stats, load_agent, load_stats, save_stats
from racer_viewer.agents.load import DESCRIPTION
from racer_viewer.agents.spaces import OBSERVATION_SIZE
from racer_viewer.folders import written_whole

LEFT_OUT = (
    "_last_obs", "_last_original_obs", "_last_episode_starts", "ep_info_buffer", "ep_success_buffer",
    "lr_schedule", "start_time",
)  # fmt: skip
"""Fields that are of the run and not of what it learned."""
LEARNING_RATE = 3e-4
"""For those who train on: a run's schedule is code, and stays behind."""
SYSTEM_INFO = "system_info.txt"
CHECKED_OBSERVATIONS = 100


def share(model: Path, target: Path) -> Path:
    """Write the model without what nobody else needs, and its statistics beside it."""
    agent = load_agent(model)
    target = target.with_suffix(".zip")
    if target.exists() and target.samefile(agent.info.path):
        raise RacerError(f"{target} is the model itself: choose another name")
    stats = find_stats(agent.info.path)
    with written_whole(target) as temporary:
        _copy(agent.info.path, temporary)
    if stats is not None:
        save_stats(target.with_name(f"{target.stem}_vecnormalize.npz"), load_stats(stats))
    observations = np.random.default_rng(0).uniform(0.0, 1.0, (CHECKED_OBSERVATIONS, OBSERVATION_SIZE))
    if not np.array_equal(agent.act(observations), load_agent(target).act(observations)):
        raise RacerError("the copy drives differently: please report this")
    return target


def _copy(source: Path, target: Path) -> None:
    try:
        with zipfile.ZipFile(source) as model, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as copy:
            for name in model.namelist():
                content = model.read(name)
                if name == DESCRIPTION:
                    content = _description(json.loads(content))
                elif name.endswith("optimizer.pth"):
                    content = _forgetful(content)
                if name != SYSTEM_INFO:
                    copy.writestr(name, content)
    except zipfile.BadZipFile:
        raise RacerError(f"{source} is no model of stable-baselines3: only those can be copied") from None


def _description(fields: dict[str, Any]) -> bytes:
    kept = {name: value for name, value in fields.items() if name not in LEFT_OUT}
    return json.dumps({**kept, "learning_rate": LEARNING_RATE}, indent=1).encode()


def _forgetful(optimiser: bytes) -> bytes:
    """An optimiser's file with its settings, and without what it remembers of every weight."""
    import torch

    content = torch.load(io.BytesIO(optimiser), weights_only=True)
    copy = io.BytesIO()
    torch.save({**content, "state": {}}, copy)
    return copy.getvalue()
