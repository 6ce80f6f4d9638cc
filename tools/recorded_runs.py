"""Makes `assets/recorded_runs.npz`, which the self-test drives again, from the recorded runs that tests compare with.

python tools/recorded_runs.py
"""

from pathlib import Path

import numpy as np

from racer_viewer.cli.selftest import COLUMNS, check_sums

ROOT = Path(__file__).parent.parent
DRIVERS = ("pursuit/11", "wall/11", "weave/11")
"""Round the circuit, into the walls, and from side to side; all from the line, with the default config."""


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
