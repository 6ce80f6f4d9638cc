"""Draws docs/rewards.svg: the lines that policies drive which were trained with the examples of docs/rewards.md.

Each example of the document is trained with the native engine, which takes some seconds, and its best policy drives.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from racer_env.engine import CAR, Config, Simulation, Track, load_circuit, parse_config
from racer_viewer.agents import load_agent
from racer_viewer.training.config import preset
from racer_viewer.training.run import Run

ROOT = Path(__file__).parents[1]
DOCUMENT, PICTURE = ROOT / "docs" / "rewards.md", ROOT / "docs" / "rewards.svg"
STEPS = 400_000
TRACK = "track-02"
PANEL, COLUMNS, CAPTION = (300, 210), 3, 34
"""Size of a drawing, drawings in a row, and height of a caption [px]."""
DRIVE_TICKS = 3600
SLOW, FAST = np.array([222, 84, 62]), np.array([52, 150, 84])
"""Colours of a standing car and of one at top speed."""


@dataclass(frozen=True)
class DrivenLine:
    """A flying lap: points (n, 2), speeds (n,), lap time [s] and part of the lap off the road."""

    name: str
    points: NDArray[np.float64]
    speeds: NDArray[np.float64]
    seconds: float
    off_track: float


def examples(text: str) -> dict[str, Config]:
    """Return the configs of the examples by their names."""
    section = text.split("\n## Examples\n")[1].split("\n## ")[0]
    found = re.findall(r"^### (.*?)\n.*?```json\n(.*?)```", section, re.DOTALL | re.MULTILINE)
    return {name: parse_config(content) for name, content in found}


def trained_line(name: str, rewards: Config, track: Track, steps: int, folder: Path) -> DrivenLine:
    """Train with a reward and drive its best policy."""
    base = preset("ppo")
    plain = rewards.to_json()
    own = parse_config({**plain, "episode": base.rewards.to_json()["episode"]})
    config = replace(base, tracks=(TRACK,), timesteps=steps, rewards=own, evaluate_every=0, checkpoint_every=0)
    model = Run(config, folder).learn().model
    assert model is not None
    agent, simulation, rows = load_agent(model), Simulation(track), np.zeros(DRIVE_TICKS, CAR)
    for tick in range(DRIVE_TICKS):
        simulation.step(agent.act(simulation.result.observations))
        rows[tick] = simulation.cars[0]
    ends = np.flatnonzero(rows["finished_lap_ticks"])
    first, last = (ends[0], ends[1]) if len(ends) > 1 else (0, DRIVE_TICKS - 1)
    lap = rows[first : last + 1]
    points = np.stack([lap["x"], lap["y"]], axis=1)[::8]
    seconds = float(rows["finished_lap_ticks"][last]) / 60.0 if len(ends) > 1 else float("nan")
    return DrivenLine(name, points, lap["speed"][::8], seconds, float((lap["surface"] != 0).mean()))


def draw(lines: list[DrivenLine], track: Track) -> str:
    """Return the picture."""
    width, height = PANEL
    rows = -(-len(lines) // COLUMNS)
    low, high = track.outer_road.min(axis=0), track.outer_road.max(axis=0)
    low, high = (
        np.minimum(low, track.inner_road.min(axis=0)) - 12.0,
        np.maximum(high, track.inner_road.max(axis=0)) + 12.0,
    )
    scale = min(width / (high[0] - low[0]), height / (high[1] - low[1]))
    size = COLUMNS * width, rows * (height + CAPTION)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size[0]} {size[1]}" font-family="sans-serif">',
        f'<rect width="{size[0]}" height="{size[1]}" fill="#f4f5f2"/>',
    ]
    for number, line in enumerate(lines):
        left, top = number % COLUMNS * width, number // COLUMNS * (height + CAPTION)

        def at(points: NDArray[np.float64], left: int = left, top: int = top) -> NDArray[np.float64]:
            moved = (points - low) * scale
            return np.stack([left + moved[:, 0], top + height - moved[:, 1]], axis=1)

        for edge, colour in ((track.outer_road, "#c9cdc8"), (track.inner_road, "#f4f5f2")):
            parts.append(f'<polygon points="{_points(at(edge[::2]))}" fill="{colour}"/>')
        places = at(line.points)
        for here, there, speed in zip(places, places[1:], line.speeds, strict=False):
            red, green, blue = (SLOW + (FAST - SLOW) * min(1.0, speed / 160.0)).astype(int)
            parts.append(
                f'<path d="M{here[0]:.0f} {here[1]:.0f}L{there[0]:.0f} {there[1]:.0f}" '
                f'stroke="#{red:02x}{green:02x}{blue:02x}" stroke-width="3" stroke-linecap="round"/>'
            )
        lap = "no lap" if np.isnan(line.seconds) else f"{line.seconds:.2f} s"
        words = f"{lap}, {line.off_track:.0%} off the road, mean speed {line.speeds.mean():.0f}"
        parts.append(
            f'<text x="{left + 12}" y="{top + height + 10}" font-size="13" font-weight="bold">{line.name}</text>'
        )
        parts.append(f'<text x="{left + 12}" y="{top + height + 26}" font-size="11" fill="#555">{words}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _points(points: NDArray[np.float64]) -> str:
    return " ".join(f"{x:.0f},{y:.0f}" for x, y in points)


def main() -> None:
    parser = argparse.ArgumentParser(description="Draw the lines of the examples of docs/rewards.md.")
    parser.add_argument("--steps", type=int, default=STEPS, help="steps of each training (default: %(default)s)")
    parser.add_argument("--output", type=Path, default=PICTURE)
    options = parser.parse_args()
    track = load_circuit(TRACK)
    with tempfile.TemporaryDirectory() as folder:
        lines = []
        for number, (name, rewards) in enumerate(examples(DOCUMENT.read_text(encoding="utf-8")).items()):
            lines.append(trained_line(name, rewards, track, options.steps, Path(folder) / str(number)))
            print(f"{name}: {lines[-1].seconds:.2f} s, {lines[-1].off_track:.0%} off, {lines[-1].speeds.mean():.0f}")
    options.output.write_text(draw(lines, track), encoding="utf-8")


if __name__ == "__main__":
    main()
