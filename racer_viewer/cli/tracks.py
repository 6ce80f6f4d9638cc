"""`racer-viewer tracks`: circuits as a table, or as drawings; and the import of circuits from other files."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from racer_viewer.cli.options import CIRCUITS_HELP, Subparsers, resolved
from racer_viewer.paths import data_folder
from racer_viewer.plain_text import make_console

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from racer_env.engine import Circuit, Track

MARGIN = 30.0
"""Margin around a drawing [units]."""
OVERVIEW_COLUMNS = 3
GRASS = "#1f2b24"


def add_parser(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "tracks",
        help="list circuits, draw them, or import one",
        description="List circuits with their length, tightest corner and medal times (best lap of a run); those of "
        "your own have ids as own:ID. Draw circuits as SVG, or import one from another program's file.",
    )
    parser.add_argument(
        "circuits",
        nargs="*",
        metavar="CIRCUIT",
        help=f"{CIRCUITS_HELP} (default: all bundled ones and your own)",
    )
    parser.add_argument("--svg", metavar="DIR", type=Path, help="draw each circuit as an SVG file in this folder")
    parser.add_argument(
        "--import",
        dest="file",
        metavar="FILE",
        type=Path,
        help="import a circuit into your own ones: a centreline as .csv (x_m, y_m, w_tr_right_m, w_tr_left_m, or only "
        "x, y), borders or a centreline as .npy, a path in an .svg, or a circuit .json; exits with 1 if it can only be "
        "saved as a draft",
    )
    parser.add_argument("--name", help="name of the imported circuit (default: that of the file)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """List or draw the circuits, or import one."""
    from racer_env.errors import RacerError

    if options.file is not None:
        if options.circuits or options.svg is not None:
            raise RacerError("--import takes one file, and neither circuits nor --svg")
        return import_track(options.file, options.name, data_folder(options.data_dir))
    if options.name is not None:
        raise RacerError("--name is for --import FILE")
    data = data_folder(options.data_dir)
    names = [resolved(name, options) for name in options.circuits] or _all_circuits(data)
    if options.svg is not None:
        draw_tracks(names, options.svg)
        return 0
    list_tracks(names, data)
    if not options.circuits:
        _list_others(data)
    return 0


def import_track(file: Path, name: str | None, data: Path) -> int:
    """Import a circuit from a file into the library; return 1 if it cannot be driven and is a draft."""
    from racer_viewer.circuits.draft import set_text
    from racer_viewer.circuits.imports import import_circuit
    from racer_viewer.circuits.library import CircuitLibrary
    from racer_viewer.circuits.preview import preview

    draft = import_circuit(file)
    entry = CircuitLibrary(data).save(set_text(draft, name=name or draft.name))
    built = preview(draft)
    if not entry.drivable:
        reason = built.problems[0].reason if built.problems else "it has no road"
        print(f"{entry.key}: {entry.name} was saved as a draft, because it cannot be driven yet: {reason}")
        return 1
    facts = built.facts
    assert facts is not None, "what can be driven has a road"
    print(
        f"{entry.key}: {entry.name}, {facts.length:.0f} units, tightest corner {facts.tightest_radius:.0f}, road "
        f"{facts.narrowest:.0f} to {facts.widest:.0f} wide, {len(draft.points)} control points"
    )
    return 0


def list_tracks(names: Sequence[str], data: Path) -> None:
    """Print a table with one row per circuit."""
    from rich.markup import escape as escape_markup
    from rich.table import Table

    from racer_viewer.circuits.library import key_of
    from racer_viewer.replays.records import MEDAL_NAMES

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("id", overflow="fold", min_width=8)
    table.add_column("circuit", min_width=10)
    for heading in ("length", "tightest", *MEDAL_NAMES):
        table.add_column(heading, justify="right", no_wrap=True)
    for name, track in zip(names, _load(names), strict=True):
        circuit = _definition(track)
        seconds = [getattr(circuit.medals, medal, None) for medal in MEDAL_NAMES]
        times = ["" if each is None else f"{each:.2f} s" for each in seconds]
        title = f"{escape_markup(circuit.name)}\n[dim]{escape_markup(circuit.description)}[/dim]"
        table.add_row(
            escape_markup(key_of(name, data) or circuit.id),
            title,
            f"{track.length:.0f}",
            f"{tightest_radius(track):.0f}",
            *times,
        )
    make_console(markup=True).print(table)


def draw_tracks(names: Sequence[str], folder: Path) -> None:
    """Write one SVG file per circuit and one with all of them, and print their paths."""
    tracks = _load(names)
    pictures = {_definition(track).id.replace(":", "-"): svg(track) for track in tracks}
    if len(tracks) > 1:
        pictures["overview"] = overview(list(pictures.values()))
    folder.mkdir(parents=True, exist_ok=True)
    for name, picture in pictures.items():
        path = folder / f"{name}.svg"
        path.write_text(picture, encoding="utf-8")
        print(path)


def tightest_radius(track: Track) -> float:
    """Return the radius of the tightest corner of the centreline [units]."""
    from racer_viewer.circuits.preview import facts_of

    return facts_of(track).tightest_radius


def svg(track: Track) -> str:
    """Return a drawing of a track from above: walls, runoff, road, gates, start line and direction."""
    import numpy as np

    circuit = _definition(track)
    left, bottom = track.outer.min(axis=0) - MARGIN
    width, height = track.outer.max(axis=0) + MARGIN - (left, bottom)
    unit = max(width, height) / 1000.0
    gates = "".join(
        f'<path d="M{g[0]:.1f} {g[1]:.1f}L{g[2]:.1f} {g[3]:.1f}" stroke="#ffffff" stroke-opacity="0.16"/>'
        for g in track.gates[1:]
    )
    x, y, heading = track.start
    cos, sin = np.cos(heading), np.sin(heading)
    half_width = track.control_points[0, 2]
    line = (
        f"M{x - sin * half_width:.1f} {y + cos * half_width:.1f}L{x + sin * half_width:.1f} {y - cos * half_width:.1f}"
    )
    arrow = [(x + a * cos - b * sin, y + a * sin + b * cos) for a, b in ((10, 7), (10, -7), (24, 0))]
    points = " ".join(f"{px:.1f},{py:.1f}" for px, py in arrow)
    caption = f"{circuit.name} · {track.length:.0f} units · tightest corner {tightest_radius(track):.0f}"
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.1f} {height + 46 * unit:.1f}">
<title>{escape(circuit.name, quote=False)}</title>
<rect width="100%" height="100%" fill="{GRASS}"/>
<g transform="translate({-left:.1f} {height + bottom:.1f}) scale(1 -1)" fill-rule="evenodd" stroke-linejoin="round">
<path d="{_closed(track.outer)}{_closed(track.inner)}" fill="#4a6350" stroke="#e8e4d8" stroke-width="{2.4 * unit:.2f}"/>
<path d="{_closed(track.outer_road)}{_closed(track.inner_road)}" fill="#3b3e45" stroke="#f4f1e8"
 stroke-width="{1.2 * unit:.2f}"/>
<g fill="none" stroke-width="{1.0 * unit:.2f}">{gates}</g>
<path d="{line}" stroke="#ffffff" stroke-width="4"/>
<polygon points="{points}" fill="#ffb000"/>
</g>
<text x="{14 * unit:.1f}" y="{height + 26 * unit:.1f}" font-family="sans-serif" font-size="{22 * unit:.1f}"
 fill="#e8e4d8">{escape(caption, quote=False)}</text>
</svg>
"""


def overview(pictures: Sequence[str]) -> str:
    """Return all drawings on one sheet."""
    width, height = 480, 400
    rows = -(-len(pictures) // OVERVIEW_COLUMNS)
    placed = "".join(
        picture.replace("<svg ", f'<svg x="{i % OVERVIEW_COLUMNS * width}" y="{i // OVERVIEW_COLUMNS * height}"'
                                 f' width="{width}" height="{height}" ', 1)
        for i, picture in enumerate(pictures)
    )  # fmt: skip
    size = f"{width * min(len(pictures), OVERVIEW_COLUMNS)} {height * rows}"
    sheet = f'<rect width="100%" height="100%" fill="{GRASS}"/>{placed}'
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}">{sheet}</svg>\n'


def _all_circuits(data: Path) -> list[str]:
    """Return the bundled circuits and the drivable ones of the library, as `load_circuit` takes them."""
    from racer_env.engine import circuits
    from racer_viewer.circuits.library import CircuitLibrary

    own = CircuitLibrary(data).entries()
    return [circuit.id for circuit in circuits()] + [str(entry.path) for entry in own if entry.drivable]


def _list_others(data: Path) -> None:
    """Print a line for each own circuit that cannot be driven."""
    from racer_viewer.circuits.library import CircuitLibrary

    for entry in CircuitLibrary(data).entries():
        if not entry.drivable:
            print(f"{entry.key}: {entry.name}: {entry.problem or 'a draft, which cannot be driven yet'}")


def _load(names: Sequence[str]) -> list[Track]:
    from racer_env.engine import load_circuit

    return [load_circuit(name) for name in names]


def _definition(track: Track) -> Circuit:
    assert track.circuit is not None, "every loaded track has its circuit"
    return track.circuit


def _closed(points: NDArray[np.float64]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points[:-1]) + "Z"
