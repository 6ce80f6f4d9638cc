"""Record `assets/menu_lap.npz`, the lap that the main menu shows while the engine is compiled.

python tools/menu_lap.py
"""

import math
from pathlib import Path

import numpy as np

from racer_env.engine import Simulation, load_circuit
from racer_viewer.agents import CHAMPION, load_agent
from racer_viewer.app.backdrop import LAP_CIRCUIT, LAP_COLUMNS

TARGET = Path(__file__).parent.parent / "assets" / "menu_lap.npz"
LAPS_BEFORE = 3
"""Laps before the recorded one, after which a deterministic agent repeats its lap almost exactly."""


def main() -> None:
    simulation, agent = Simulation(load_circuit(LAP_CIRCUIT)), load_agent(CHAMPION)
    rows, laps = [], 0
    while laps <= LAPS_BEFORE:
        simulation.step(agent.act(simulation.result.observations))
        laps = int(simulation.cars.lap[0])
        if laps == LAPS_BEFORE:
            rows.append(simulation.cars[0].copy())
    columns = {name: np.array([row[name] for row in rows], np.float32) for name in LAP_COLUMNS}
    np.savez_compressed(TARGET, **columns)
    x, y = columns["x"], columns["y"]
    gap = math.hypot(x[0] - x[-1], y[0] - y[-1])
    print(f"{len(rows)} ticks, {gap:.2f} units from the end to the start, {TARGET.stat().st_size / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
