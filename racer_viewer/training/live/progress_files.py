"""The figures of a run from before there were stories, in its progress.csv."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from racer_viewer.curves import Curves

_SUFFIX = re.compile(r"progress(?:_(\d+))?\.csv")


def read_progress(folder: Path) -> Curves:
    """Figures by steps; a run that was gone on with has a file for each time, which begins where it says."""
    files = [(int(match[1] or 0), path) for path in folder.glob("*.csv") if (match := _SUFFIX.fullmatch(path.name))]
    rows: dict[int, dict[str, float]] = {}
    seconds: dict[int, float] = {}
    before = 0.0
    for begin, path in sorted(files):
        rows = {steps: row for steps, row in rows.items() if steps <= begin}
        before = max((seconds[steps] for steps in rows), default=0.0)
        for row in _read_csv(path):
            steps = int(row.get("time/total_timesteps", -1))
            if steps < 0:
                continue
            rows[steps] = {**rows.get(steps, {}), **row}
            seconds[steps] = before + row.get("time/time_elapsed", 0.0)
    names = dict.fromkeys(name for row in rows.values() for name in row)
    order = sorted(rows)
    return Curves(
        name=folder.name,
        steps=np.array(order, np.float64),
        seconds=np.array([seconds[steps] for steps in order]),
        values={name: np.array([rows[steps].get(name, np.nan) for steps in order]) for name in names},
    )


def _read_csv(path: Path) -> list[dict[str, float]]:
    """Its rows; what is no number is left out."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            return [_numbers(row) for row in csv.DictReader(file)]
    except (OSError, ValueError, csv.Error):
        return []


def _numbers(row: Mapping[str | None, Any]) -> dict[str, float]:
    numbers = {}
    for name, text in row.items():
        try:
            numbers[str(name)] = float(text)
        except (TypeError, ValueError):
            continue
    return numbers
