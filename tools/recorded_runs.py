"""Build `assets/recorded_runs.npz`, which the self-test drives again, from the recorded runs of the tests.

python tools/recorded_runs.py
"""

from pathlib import Path

import numpy as np

from racer_viewer.cli.selftest import COLUMNS, check_sums

ROOT = Path(__file__).parent.parent
DRIVERS = ("pursuit/11", "wall/11", "weave/11")
"""Recorded runs to include: laps, wall hits and weaving; all with a standing start and the default config."""


def main() -> None:
    with np.load(ROOT / "tests" / "data" / "engine_traces.npz") as traces:
        names = [str(name) for name in traces["columns"]]
        columns = [names.index(name) for name in COLUMNS]
        kept = {}
        for track in ("track-01", "track-02", "track-03"):
            for driver in DRIVERS:
                rows = traces[f"{track}/{driver}"][1:]
                kept[f"{track}/{driver}/actions"] = rows[:, :3]
                kept[f"{track}/{driver}/sums"] = check_sums(rows[:, columns])
    np.savez_compressed(ROOT / "assets" / "recorded_runs.npz", **kept)


if __name__ == "__main__":
    main()
