"""`racer-viewer bench render`: how long a picture takes, layer by layer, and how many are late.

Races are drawn 60 times a second with everything on, in real time, in a window if there is a display. The cars are the
champion's, all from different places; they are stepped before each picture, which is counted apart.
"""

import gc
import json
import os
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import asdict, dataclass, field

import numpy as np
import pygame
from rich.console import Console
from rich.table import Table

from racer_env.engine import DT, Simulation, Start, Track, circuits, load_circuit
from racer_viewer.agents import CHAMPION, Agent, load_agent
from racer_viewer.bench.harness import describe_machine
from racer_viewer.render.overlays import OVERLAYS, Overlays
from racer_viewer.render.scene import Scene, SceneOptions
from racer_viewer.snapshot import CarStyle, PolicyInsight, Snapshot
from racer_viewer.timing import Timing
from racer_viewer.ui.display import has_display, start_video
from racer_viewer.ui.theme import ORDINARY, Theme, fitting_scale
from racer_viewer.warmup import prepare_engine

SIZE = (1280, 720)
CARS = (1, 8, 64, 256)
JUDGED = 8
MOST_P99, MOST_LATE = 8.0, 0.01
"""Goals for so many cars: drawing [ms], and part of the pictures that come late."""
LATE = 0.004
"""A picture is late if it is shown so long after its time [s]: a quarter of a tick, which cannot be seen yet."""
WARM_UP_FRAMES = 60
SPREAD = Start(arc=(0.0, 1.0), offset=(-0.5, 0.5), speed=(40.0, 120.0))
EVERYTHING = SceneOptions(rays=True, gates=True, names=True)


@dataclass(frozen=True)
class Case:
    """One circuit with so many cars; times in milliseconds."""

    circuit: str
    cars: int
    frames: int
    p50: float
    p99: float
    cpu_p99: float
    """Of our own work: on a shared machine the rest of p99 is others' work."""
    late: float
    """Part of the pictures."""
    stepping_p50: float
    layers: dict[str, tuple[float, float]]
    """p50 and p99 of each."""

    @property
    def reached(self) -> bool:
        return self.p99 <= MOST_P99 and self.late <= MOST_LATE


@dataclass(frozen=True)
class Figures:
    machine: str
    display: str
    cases: list[Case] = field(default_factory=list)


def run(seconds: float, as_json: bool) -> int:
    """Measure and print; the exit code is 1 if the judged cases miss their goals."""
    prepare_engine()
    figures = measure(seconds)
    if as_json:
        print(json.dumps(asdict(figures), indent=2))
    else:
        _print(figures)
    return 0 if all(case.reached for case in figures.cases if case.cars == JUDGED) else 1


def measure(seconds: float, numbers: tuple[int, ...] = CARS) -> Figures:
    """Eight cars for so long, the others for a sixth of it, each on the shortest and on the longest circuit."""
    if not has_display():
        os.environ["SDL_VIDEODRIVER"] = "dummy"
    start_video()
    window = pygame.Window("Racer", SIZE)
    agent = load_agent(CHAMPION)
    tracks = sorted((load_circuit(circuit.id) for circuit in circuits()), key=lambda track: track.length)
    figures = Figures(describe_machine(), pygame.display.get_driver())
    try:
        for track in (tracks[0], tracks[-1]):
            for cars in numbers:
                frames = round((seconds if cars == JUDGED else seconds / 6.0) / DT)
                figures.cases.append(_measure(window, _Swarm(track, cars, agent), frames))
    finally:
        window.destroy()
    return figures


class _Swarm:
    """Cars all over a circuit."""

    def __init__(self, track: Track, cars: int, agent: Agent) -> None:
        self.track, self.cars, self._agent = track, cars, agent
        self._simulation = Simulation(track, cars, auto_reset=True, start=SPREAD)
        colours = ORDINARY.cars
        self._looks = tuple(
            CarStyle(f"car {number}", colours[number % len(colours)] if number else ORDINARY.player)
            for number in range(cars)
        )

    def step(self) -> Snapshot:
        """One tick, and all that panels can show."""
        simulation, agent = self._simulation, self._agent
        observations = simulation.result.observations
        simulation.step(agent.act(observations))
        seen = observations[0]
        values = agent.values(seen)
        car = simulation.cars[0]
        return Snapshot(
            track=self.track,
            cars=np.array(simulation.cars),
            styles=self._looks,
            observation=seen.copy(),
            totals=np.array(car.components),
            insight=PolicyInsight(
                None if values is None else float(values), agent.spread(seen), agent.sensitivity(seen)
            ),
            timing=Timing(int(car.lap), int(car.lap_ticks), int(car.last_lap_ticks) or None, None, None),
            gaps=tuple(0.1 * number for number in range(min(8, self.cars))) if self.cars > 1 else (),
        )


class _Clock:
    """Times the parts of a picture one after the other."""

    def __init__(self) -> None:
        self.parts: dict[str, list[float]] = defaultdict(list)
        self._last = 0.0

    def begin(self) -> None:
        self._last = time.perf_counter()

    def note(self, name: str) -> None:
        now = time.perf_counter()
        self.parts[name].append((now - self._last) * 1000.0)
        self._last = now


def _measure(window: pygame.Window, swarm: _Swarm, frames: int) -> Case:
    theme = Theme(fitting_scale(SIZE))
    scene, overlays, clock = Scene(theme), Overlays(theme), _Clock()
    scene.on_layer = clock.note
    scene.prepare(swarm.track)
    before = after = swarm.step()
    drawing: list[float] = []
    working: list[float] = []
    stepping: list[float] = []
    late = 0
    gc.collect()
    gc.freeze()
    due = time.perf_counter()
    for number in range(frames + WARM_UP_FRAMES):
        if number == WARM_UP_FRAMES:
            clock.parts.clear()
            drawing.clear()
            working.clear()
            stepping.clear()
            late = 0
        begin = time.perf_counter()
        before, after = after, swarm.step()
        scene.tick(after)
        overlays.tick(after)
        stepped, worked = time.perf_counter(), time.thread_time()
        clock.begin()
        surface = window.get_surface()
        scene.draw(surface, before, after, 1.0, EVERYTHING)
        overlays.draw(surface, after, OVERLAYS, "km/h")
        clock.note("panels")
        window.flip()
        clock.note("to the screen")
        shown = time.perf_counter()
        stepping.append((stepped - begin) * 1000.0)
        drawing.append((shown - stepped) * 1000.0)
        working.append((time.thread_time() - worked) * 1000.0)
        late += shown > due + DT + LATE
        due = _wait(due, scene.draw_ahead)
    gc.unfreeze()
    return Case(
        circuit=swarm.track.circuit.id if swarm.track.circuit else "",
        cars=swarm.cars,
        frames=frames,
        p50=_percentile(drawing, 50),
        p99=_percentile(drawing, 99),
        cpu_p99=_percentile(working, 99),
        late=late / frames,
        stepping_p50=_percentile(stepping, 50),
        layers={name: (_percentile(times, 50), _percentile(times, 99)) for name, times in clock.parts.items()},
    )


def _wait(due: float, use_time: Callable[[], bool]) -> float:
    """Until the next picture is due, with something useful first; a picture that is late does not make others late."""
    due = max(due + DT, time.perf_counter() - DT)
    while due - time.perf_counter() > DT / 3.0 and use_time():
        pass
    left = due - time.perf_counter()
    if left > 0.0:
        time.sleep(left)
    return due


def _percentile(values: list[float], percent: float) -> float:
    return round(float(np.percentile(values, percent)), 3)


def _print(figures: Figures) -> None:
    console = Console()
    title = f"{figures.machine}, {figures.display}, {SIZE[0]}×{SIZE[1]}, everything on"
    table = Table(box=None, pad_edge=False, header_style="bold", title=title, title_justify="left")
    names = list(dict.fromkeys(name for case in figures.cases for name in case.layers))
    for name in ("circuit", "cars", "p50 ms", "p99 ms", "p99 cpu", "late", "stepping", *names):
        table.add_column(name, justify="left" if name == "circuit" else "right")
    for case in figures.cases:
        layers = [f"{case.layers[name][0]:.1f} / {case.layers[name][1]:.1f}" for name in names]
        figures_of = (case.p50, case.p99, case.cpu_p99)
        plain = [case.circuit, str(case.cars), *(f"{figure:.1f}" for figure in figures_of), f"{case.late:.1%}"]
        table.add_row(*plain, f"{case.stepping_p50:.1f}", *layers)
    console.print(table)
    for case in figures.cases:
        if case.cars == JUDGED:
            verdict = "reached" if case.reached else "missed"
            own = f"p99 {case.p99:.1f} ms, {case.cpu_p99:.1f} of our own work (at most {MOST_P99:g})"
            late = f"late {case.late:.1%} (at most {MOST_LATE:.0%})"
            console.print(f"{case.circuit}: {own}, {late}: {verdict}", highlight=False)
