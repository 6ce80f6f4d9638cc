"""Folders as runs leave them, without any learning."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from racer_viewer.agents import models_folder
from racer_viewer.training.config import preset
from racer_viewer.training.run_folder import write_config


def make_run(data: Path, name: str, **values: Any) -> Path:
    """One from before there were stories, with the champion as what it has learned; values: of its config."""
    folder = data / "runs" / name
    write_config(replace(preset("ppo"), name=name, **values), folder)
    for ending in (".zip", "_vecnormalize.npz"):
        shutil.copy(models_folder() / f"champion{ending}", folder / f"{name}_best{ending}")
    (folder / "progress.csv").write_text("time/total_timesteps,reward/progress\n8192,0.1\n16384,0.2\n")
    return folder


def make_story(data: Path, name: str, lines: list[dict[str, Any]], **values: Any) -> Path:
    """One with a story of these lines."""
    folder = make_run(data, name, **values)
    (folder / "live.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder
