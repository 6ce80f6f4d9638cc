"""Ghosts to race against: the record of a circuit, and one for every medal, driven by the circuit's best agent."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from racer_env.engine import TICKS_PER_SECOND, Config, Medals, Simulation, Start, circuits, load_circuit, parse_config
from racer_env.errors import CircuitError, RacerError, in_one_line
from racer_viewer.agents import CHAMPION, Agent, load_agent, models_folder
from racer_viewer.agents.load import bundled_authors
from racer_viewer.modes.models import ModelLaps
from racer_viewer.modes.race import ENDLESS
from racer_viewer.replays import Replay, ReplayRecorder, trace_replay
from racer_viewer.replays.ghosts import Ghost, ghost_of
from racer_viewer.replays.records import Medal, medal_for, medal_ticks, next_medal, set_measured_medals
from racer_viewer.settings import GhostKind
from racer_viewer.translation import _, mark

if TYPE_CHECKING:
    from racer_env.engine import Circuit, Track
    from racer_viewer.modes.screen import AppContext

MEASURED_TICKS = 7800
"""Length of the drives of which the best clean laps decide the medal times [ticks]."""
MARGINS: dict[Medal, float] = {"gold": 1.04, "silver": 1.12, "bronze": 1.30}
"""Medal times as multiples of the best clean lap of an agent."""
GHOST_LABELS: dict[GhostKind, str] = {
    "record": mark("your record"),
    "bronze": mark("bronze medal"),
    "silver": mark("silver medal"),
    "gold": mark("gold medal"),
    "author": mark("author medal"),
}


def agent_drive(agent: Agent, track: Track, enough: int = 0) -> Replay:
    """Let an agent drive from the start line, until a lap takes at most `enough` ticks or MEASURED_TICKS are over."""
    assert track.circuit is not None
    config: Config = parse_config(ENDLESS)
    simulation = Simulation(track, 1, config, start=Start())
    recorder = ReplayRecorder(track.circuit, config, Start(), driver=agent.name)
    for _tick in range(MEASURED_TICKS):
        action = agent.act(simulation.result.observations)
        result = simulation.step(action)
        lap = int(result.finished_lap_ticks[0])
        recorder.add(action[0], float(result.rewards[0]), finished_lap_ticks=lap)
        if 0 < lap <= enough:
            break
    return recorder.replay()


def chosen_ghost(app: AppContext, circuit: str, medal: Medal | None = None) -> Ghost | None:
    """Return the ghost of a medal, or else the one that the settings ask for; None without one that can be read."""
    settings = app.settings
    if not settings.ghost and medal is None:
        return None
    try:
        known = load_circuit(circuit).circuit
    except CircuitError:
        return None  # the server may know the circuit
    if known is None:
        return None
    kind = medal or settings.ghost_kind
    if kind != "record":
        return medal_ghost(known, kind, circuit)
    try:
        best = app.records.best(known)
        return ghost_of(trace_replay(app.records.replay_of(best))) if best else None
    except (RacerError, OSError) as error:
        app.notify(_("No ghost: {reason}").format(reason=in_one_line(error)))
        return None


@dataclass(frozen=True)
class CircuitMedal:
    """Medal of the player on a circuit.

    best: fastest clean lap [ticks]; None before the first.
    medal: best medal won; None without one.
    missing: next better medal; None after the best.
    """

    circuit: Circuit
    best: int | None
    medal: Medal | None
    missing: Medal | None

    @property
    def missing_text(self) -> str:
        """Time that is missing to the next medal; empty after the best, or without a lap."""
        needed = medal_ticks(self.circuit, self.missing) if self.missing is not None else None
        if needed is None or self.best is None:
            return ""
        return _("{seconds:.2f} s to {medal}").format(
            seconds=(self.best - needed) / TICKS_PER_SECOND, medal=_(str(self.missing))
        )


def medal_overview(app: AppContext) -> tuple[CircuitMedal, ...]:
    """Return the player's medals on all bundled circuits. Raises RecordError."""
    found = []
    for circuit in circuits():
        record = app.records.best(circuit)
        best = record.best_lap if record else None
        medal = medal_for(circuit, best) if best is not None else None
        found.append(CircuitMedal(circuit, best, medal, next_medal(circuit, best)))
    return tuple(found)


def medal_ghost(circuit: Circuit, medal: Medal, source: str = "") -> Ghost | None:
    """Return a ghost that takes exactly the time of a medal; None on circuits without medals.

    source: id or path of the circuit, if it differs from its own id.
    """
    ticks = medal_ticks(circuit, medal)
    author = _author_ghost(source or circuit.id) if ticks is not None else None
    if ticks is None or author is None:
        return None
    label = _(GHOST_LABELS[medal])
    return Ghost(author.trace, label[0].upper() + label[1:], max(ticks, author.lap_ticks))


@lru_cache(maxsize=8)
def _author_ghost(source: str) -> Ghost | None:
    """Return the best clean lap of a bundled circuit's author, or of the champion on others."""
    path = bundled_authors().get(source) or models_folder() / f"{CHAMPION}.zip"
    track = load_circuit(source)
    assert track.circuit is not None
    enough = medal_ticks(track.circuit, "author") or medal_ticks(track.circuit, "gold") or 0
    return ghost_of(trace_replay(agent_drive(load_agent(path), track, enough), track))


def take_measured_laps(circuit: Circuit, laps: ModelLaps) -> bool:
    """Derive the medals of a circuit without any from laps of the champion; return False if they were not clean."""
    if not laps.clean or laps.flying is None:
        return False
    set_measured_medals(circuit, medals_for(round(laps.flying * TICKS_PER_SECOND)))
    return True


def medals_for(ticks: int) -> Medals:
    """Return the medal times of a circuit whose best clean lap by an agent takes so many ticks."""
    author = ticks / TICKS_PER_SECOND
    times = {medal: round(author * margin, 2) for medal, margin in MARGINS.items()}
    return Medals(author=round(author, 2), **times)
