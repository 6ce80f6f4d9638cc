"""`racer-viewer bench render`: drawing time of a frame, layer by layer, and the number of late frames.

Races are drawn 60 times a second with everything on, in real time, in a window if there is a display. The champion
drives all cars, from different places; stepping them before each frame is timed separately. On a shared machine compare
the processor time: the rest of a frame's time is other programs.
"""

import gc
import itertools
import math
import os
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pygame

from racer_env.engine import DT, Simulation, Start, Track, circuits, load_circuit
from racer_viewer.agents import CHAMPION, Agent, load_agent
from racer_viewer.bench.harness import Summary, describe_machine, print_report, verdict
from racer_viewer.render.camera import Mode
from racer_viewer.render.overlays import OVERLAYS, Overlays
from racer_viewer.render.overlays.race_hud import RaceHud
from racer_viewer.render.scene import Scene, SceneOptions
from racer_viewer.snapshot import CarStyle, PolicyInsight, Snapshot
from racer_viewer.timing import Timing
from racer_viewer.ui.display import WindowPicture, has_display, start_video, use_renderer
from racer_viewer.ui.theme import ORDINARY, Theme, fitting_scale
from racer_viewer.warmup import prepare_engine

SIZE = (1280, 720)
CARS = (1, 8, 64, 256)
GOAL_CARS = 8
"""Number of cars that the goals are for."""
MAX_P99, MAX_P99_LARGE, MAX_LATE = 8.0, 16.0, 0.01
"""Goals: 99th percentile of the drawing time up to SIZE and in larger windows [ms], and the part of late frames."""
LATE = 0.004
"""Delay from which a frame is late [s]; a quarter of a tick is not visible yet."""
WARM_UP_FRAMES = 60
SPREAD = Start(arc=(0.0, 1.0), offset=(-0.5, 0.5), speed=(40.0, 120.0))
EVERYTHING = SceneOptions(rays=True, gates=True, names=True)


@dataclass(frozen=True)
class RenderCase:
    """Results of one circuit with a number of cars [ms].

    Attributes:
        camera: mode of the camera
        cpu_p50, cpu_p99: time that this process worked; on a shared machine the rest is other programs
        late: part of the frames
        layers: p50 and p99 of each layer
        goal: maximum p99
    """

    circuit: str
    camera: str
    cars: int
    frames: int
    p50: float
    p99: float
    cpu_p50: float
    cpu_p99: float
    late: float
    stepping_p50: float
    layers: dict[str, tuple[float, float]]
    goal: float = MAX_P99

    @property
    def reached(self) -> bool:
        return self.p99 <= self.goal and self.late <= MAX_LATE


@dataclass(frozen=True)
class RenderReport:
    """Results of all cases."""

    machine: str
    display: str
    size: tuple[int, int]
    picture: tuple[int, int]
    """Size of the picture, which is smaller than a very large window [px]."""
    renderer: str
    cases: list[RenderCase] = field(default_factory=list)


@dataclass(frozen=True)
class RenderReports:
    """Reports of all window sizes."""

    reports: list[RenderReport]


def run(
    seconds: float,
    as_json: bool,
    sizes: Sequence[tuple[int, int]] = (SIZE,),
    renderer: str = "auto",
    resolution: str = "auto",
    cameras: Sequence[str] = ("follow",),
) -> int:
    """Measure and print; return 1 if a case with GOAL_CARS cars misses the goals."""
    prepare_engine()
    reports = [measure(seconds, size=size, renderer=renderer, resolution=resolution, cameras=cameras) for size in sizes]
    print_report(reports[0] if len(reports) == 1 else RenderReports(reports), _summary(reports), as_json)
    cases = [case for report in reports for case in report.cases if case.cars == GOAL_CARS]
    return 0 if all(case.reached for case in cases) else 1


def measure(
    seconds: float,
    numbers: tuple[int, ...] = CARS,
    size: tuple[int, int] = SIZE,
    renderer: str = "auto",
    resolution: str = "auto",
    cameras: Sequence[str] = ("follow",),
) -> RenderReport:
    """Draw the shortest and the longest circuit: GOAL_CARS cars for `seconds`, the others for a sixth of it."""
    if not has_display():
        os.environ["SDL_VIDEODRIVER"] = "dummy"
    start_video()
    renderer = use_renderer(renderer)
    window = pygame.Window("Racer", size)
    picture = WindowPicture(window, renderer, resolution)
    agent = load_agent(CHAMPION)
    tracks = sorted((load_circuit(circuit.id) for circuit in circuits()), key=lambda track: track.length)
    report = RenderReport(
        describe_machine(), pygame.display.get_driver(), size, picture.surface.get_size(), picture.renderer
    )
    try:
        for track, camera, cars in itertools.product((tracks[0], tracks[-1]), cameras, numbers):
            frames = round((seconds if cars == GOAL_CARS else seconds / 6.0) / DT)
            report.cases.append(_measure(picture, _Cars(track, cars, agent), frames, Mode(camera)))
    finally:
        window.destroy()
    return report


class _Cars:
    """Cars all over a circuit, driven by one agent."""

    def __init__(self, track: Track, cars: int, agent: Agent) -> None:
        self.track, self.cars, self._agent = track, cars, agent
        self._simulation = Simulation(track, cars, auto_reset=True, start=SPREAD)
        self._ticks = 0
        colours = ORDINARY.cars
        self._looks = tuple(
            CarStyle(f"car {number}", colours[number % len(colours)] if number else ORDINARY.player)
            for number in range(cars)
        )

    def step(self) -> Snapshot:
        """Drive one tick; return a snapshot with everything that panels can show."""
        simulation, agent = self._simulation, self._agent
        observations = simulation.result.observations
        simulation.step(agent.act(observations))
        seen = observations[0]
        values = agent.values(seen)
        car = simulation.cars[0]
        racing = range(min(8, self.cars)) if self.cars > 1 else range(0)
        self._ticks += 1
        delta = 60.0 * math.sin(self._ticks / 60.0)
        return Snapshot(
            track=self.track,
            cars=np.array(simulation.cars),
            styles=self._looks,
            observation=seen.copy(),
            totals=np.array(car.components),
            reward_components=simulation.config.components,
            insight=PolicyInsight(
                None if values is None else float(values), agent.spread(seen), agent.sensitivity(seen)
            ),
            timing=Timing(
                int(car.lap),
                int(car.lap_ticks),
                int(car.last_lap_ticks) or None,
                None,
                None,
                fault="off the road in sector 1",
                ghost_delta=delta,
            ),
            gaps=tuple(0.1 * number for number in racing),
            places=tuple(number + 1 for number in racing),
            wrong_way=self._ticks % 240 > 120,
        )


class _Clock:
    """Times the parts of a frame one after the other."""

    def __init__(self) -> None:
        self.parts: dict[str, list[float]] = defaultdict(list)
        self._last = 0.0

    def begin(self) -> None:
        self._last = time.perf_counter()

    def note(self, name: str) -> None:
        now = time.perf_counter()
        self.parts[name].append((now - self._last) * 1000.0)
        self._last = now


def _measure(picture: WindowPicture, cars_on_track: _Cars, frames: int, camera: Mode) -> RenderCase:
    size = picture.surface.get_size()
    theme = Theme(fitting_scale(size))
    scene, overlays, hud, clock = Scene(theme), Overlays(theme), RaceHud(laps=3), _Clock()
    scene.on_layer, scene.resolution, scene.camera.mode = clock.note, picture.resolution, camera
    scene.prepare(cars_on_track.track, size[1])
    before = after = cars_on_track.step()
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
        before, after = after, cars_on_track.step()
        scene.tick(after)
        overlays.tick(after)
        stepped, worked = time.perf_counter(), time.thread_time()
        clock.begin()
        surface = picture.surface
        scene.draw(surface, before, after, 1.0, EVERYTHING)
        overlays.draw(surface, after, OVERLAYS, "km/h")
        clock.note("panels")
        hud.draw(surface, theme, after)
        clock.note("signs")
        picture.show()
        clock.note("to the screen")
        shown = time.perf_counter()
        stepping.append((stepped - begin) * 1000.0)
        drawing.append((shown - stepped) * 1000.0)
        working.append((time.thread_time() - worked) * 1000.0)
        late += shown > due + DT + LATE
        due = _wait(due, scene.draw_ahead)
    gc.unfreeze()
    return RenderCase(
        circuit=cars_on_track.track.circuit.id if cars_on_track.track.circuit else "",
        camera=camera.value,
        cars=cars_on_track.cars,
        frames=frames,
        p50=_percentile(drawing, 50),
        p99=_percentile(drawing, 99),
        cpu_p50=_percentile(working, 50),
        cpu_p99=_percentile(working, 99),
        late=late / frames,
        stepping_p50=_percentile(stepping, 50),
        layers={name: (_percentile(times, 50), _percentile(times, 99)) for name, times in clock.parts.items()},
        goal=MAX_P99 if size[1] <= SIZE[1] else MAX_P99_LARGE,
    )


def _wait(due: float, draw_ahead: Callable[[], bool]) -> float:
    """Wait for the next frame, drawing ahead meanwhile; return its due time. A late frame does not delay others."""
    due = max(due + DT, time.perf_counter() - DT)
    while due - time.perf_counter() > DT / 3.0 and draw_ahead():
        pass
    left = due - time.perf_counter()
    if left > 0.0:
        time.sleep(left)
    return due


def _percentile(values: list[float], percent: float) -> float:
    return round(float(np.percentile(values, percent)), 3)


def _summary(reports: Sequence[RenderReport]) -> Summary:
    rows, lines = [], []
    for report in reports:
        size = f"{report.size[0]}×{report.size[1]}"
        for case in report.cases:
            times = [f"{value:.1f}" for value in (case.p50, case.p99, case.cpu_p50, case.cpu_p99, case.stepping_p50)]
            where = [size, f"{report.picture[0]}×{report.picture[1]}", report.renderer, case.circuit, case.camera]
            rows.append([*where, str(case.cars), *times, f"{case.late:.1%}"])
            if case.cars == GOAL_CARS:
                drawing = f"p99 {case.p99:.1f} ms, {case.cpu_p99:.1f} of its own work (at most {case.goal:g})"
                late = f"late {case.late:.1%} (at most {MAX_LATE:.0%})"
                lines.append(f"{size}, {case.circuit}, {case.camera}: {drawing}, {late}: {verdict(case.reached)}")
                layers = (f"{name} {p50:.1f} / {p99:.1f}" for name, (p50, p99) in case.layers.items())
                lines.append(f"  p50 / p99 by layer: {', '.join(layers)}")
    title = f"{reports[0].machine}, {reports[0].display}, everything on"
    columns = (
        "window", "picture", "renderer", "circuit", "camera", "cars",
        "p50 ms", "p99 ms", "p50 cpu", "p99 cpu", "stepping", "late",
    )  # fmt: skip
    return Summary(title, columns, rows, lines)
