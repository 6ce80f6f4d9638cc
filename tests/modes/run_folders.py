"""Folders of runs that have ended, made without learning."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from racer_viewer.agents import models_folder
from racer_viewer.training.config import preset
from racer_viewer.training.run_folder import write_config
from racer_viewer.training.run_log import RunLog
from racer_viewer.training.run_log_reader import FINISHED, STOPPED


def make_run(data: Path, name: str, **values: Any) -> Path:
    """Make the folder of a run of 16384 steps, with the champion as its best model. values: settings of its config."""
    folder = data / "runs" / name
    config = replace(preset("ppo"), name=name, **values)
    write_config(config, folder)
    shutil.copy(models_folder() / "champion.zip", folder / f"{name}_best.zip")
    log = RunLog(folder)
    log.event("begin", "Start", 0)
    log.update({"reward/progress": 0.1}, 8192)
    log.update({"reward/progress": 0.2}, 16384)
    log.event("end", "End", 16384, outcome=FINISHED if config.timesteps <= 16384 else STOPPED)
    log.close()
    return folder


def make_logged_run(data: Path, name: str, lines: list[dict[str, Any]], **values: Any) -> Path:
    """Make the folder of a run with these log entries."""
    folder = make_run(data, name, **values)
    (folder / "live.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder
