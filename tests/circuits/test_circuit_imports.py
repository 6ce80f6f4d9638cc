"""Imports of circuits: files of other programs as they are, as they may be, and as they must not be."""

import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from racer_env.engine import Track, load_circuit
from racer_env.errors import CircuitError
from racer_viewer.circuits.draft import Draft
from racer_viewer.circuits.imports import (
    closed_line,
    drivable_road,
    import_circuit,
    name_of,
    read_csv,
    read_npy,
    read_svg,
)
from racer_viewer.circuits.library import CircuitLibrary
from racer_viewer.circuits.preview import preview
from racer_viewer.circuits.svg_lines import svg_lines

NAMES = ["track-03", "track-06", "random:7:hard", "random:2:length=1500:twist=0.9:width=30"]


def centreline(track: Track, step: float = 5.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return points, left normals and half-widths along a track."""
    at = np.arange(0.0, track.length, step)
    tangents = track.centreline.tangents(at)
    normals = np.column_stack([-tangents[:, 1], tangents[:, 0]])
    return track.centreline.points(at), normals, track.centreline.half_widths_at(at)


def racetrack_csv(track: Track) -> bytes:
    """Return a centreline as racetrack databases write it, with the line 3 units left of the middle."""
    points, normals, half_widths = centreline(track)
    rows = np.column_stack([points + 3.0 * normals, half_widths + 3.0, half_widths - 3.0])
    file = io.BytesIO()
    np.savetxt(file, rows, delimiter=",", fmt="%.4f", header="x_m,y_m,w_tr_right_m,w_tr_left_m")
    return file.getvalue()


def deepracer_npy(track: Track) -> bytes:
    """Return centre, inner and outer border in units of a table top, with the first point again at the end."""
    points, normals, half_widths = centreline(track)
    side = normals * half_widths[:, None]
    rows = np.column_stack([points, points + side, points - side]) / 80.0
    file = io.BytesIO()
    np.save(file, np.vstack([rows, rows[:1]]).astype(np.float32))
    return file.getvalue()


def svg(track: Track) -> bytes:
    """Return a drawing with y downwards, of relative lines, in a group that is moved and scaled."""
    points = centreline(track)[0] * (1.0, -1.0)
    steps = np.diff(points, axis=0)
    path = f"m{points[0, 0]:.2f},{points[0, 1]:.2f}" + "".join(f" {x:.3f} {y:.3f}" for x, y in steps) + "z"
    group = f'<g transform="translate(40,7) scale(2)"><path d="M0 0 5 0 5 5z"/><path d="{path}"/></g>'
    return (
        '<?xml version="1.0"?><!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/SVG.dtd">'
        f'<svg xmlns="http://www.w3.org/2000/svg"><rect width="9" height="9"/>{group}</svg>'
    ).encode()


def plain_csv(track: Track) -> bytes:
    return b"x;y\n" + b"\n".join(f"{x:.3f};{y:.3f}".encode() for x, y in centreline(track)[0])


FORMATS: dict[str, Callable[[Track], bytes]] = {
    ".csv": racetrack_csv, ".npy": deepracer_npy, ".svg": svg, ".txt": plain_csv,
}  # fmt: skip


def distance_of_shapes(track: Track, draft: Draft) -> float:
    """Return the largest distance between two circuits of the same size and middle, as a share of the lap."""
    lines = []
    for line in (track.centreline, draft.centreline):
        points = line.points(np.linspace(0.0, line.length, 600, endpoint=False))
        lines.append((points - (points.min(axis=0) + points.max(axis=0)) / 2.0) / line.length)
    first, second = lines
    gaps = np.hypot(*(first[:, None] - second[None, :]).transpose(2, 0, 1))
    return float(max(gaps.min(axis=0).max(), gaps.min(axis=1).max()))


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("name", NAMES)
def test_a_circuit_comes_back_from_each_format_with_its_shape(name: str, suffix: str, tmp_path: Path) -> None:
    track, file = load_circuit(name), tmp_path / f"old_ring{suffix}"
    file.write_bytes(FORMATS[suffix](track))
    draft = import_circuit(file)
    assert preview(draft).drivable
    assert draft.name == "Old Ring"
    assert distance_of_shapes(track, draft) < 0.02
    assert len(draft.points) < draft.centreline.length / 20.0, "few control points"
    if suffix == ".csv":  # its unit is that of circuits, and the widths are known
        assert draft.centreline.length == pytest.approx(track.length, rel=0.02)
        at = np.linspace(0.0, 1.0, 50)
        imported, driven = draft.centreline, track.centreline
        widths = imported.half_widths_at(at * imported.length), driven.half_widths_at(at * driven.length)
        assert np.abs(widths[0] - widths[1]).max() < 3.0


@given(st.integers(0, 10**6), st.floats(0.0, 6.0), st.floats(-3.0, 3.0), st.booleans())
@settings(max_examples=10, deadline=None)
def test_circuits_of_any_size_turned_and_mirrored_can_be_driven(
    seed: int, turn: float, size: float, mirrored: bool
) -> None:
    points, _, half_widths = centreline(load_circuit(f"random:{seed}"), step=8.0)
    cos, sin = np.cos(turn), np.sin(turn)
    placed = points @ np.array([[cos, sin], [-sin, cos]]) * (-1.0 if mirrored else 1.0, 1.0) * 10.0**size
    widths = half_widths * 10.0**size
    table = "".join(f"{x!r} {y!r} {w!r} {w!r}\n" for (x, y), w in zip(placed.tolist(), widths.tolist(), strict=True))
    draft = drivable_road(closed_line(read_csv(table.encode())))
    assert preview(draft).drivable
    assert 900.0 < draft.centreline.length < 9100.0


def test_a_narrow_road_with_near_straights_gets_room() -> None:
    """The legs of a real hairpin are 25 m apart, and its road is 10 m wide."""
    legs = [(x, 0.0) for x in range(0, 801, 10)], [(x, 25.0) for x in range(800, 399, -10)]
    back = [(400.0 - 10.0 * i, 25.0 + 6.0 * i) for i in range(1, 30)], [(100.0 - 10.0 * i, 199.0) for i in range(20)]
    down = [(-100.0 + 5.0 * i, 190.0 - 10.0 * i) for i in range(19)]
    rows = "".join(f"{x},{y},5.0,5.0\n" for part in (*legs, *back, down) for x, y in part)
    draft = drivable_road(closed_line(read_csv(rows.encode())))
    built = preview(draft)
    assert built.drivable
    assert built.facts is not None
    assert built.facts.narrowest > 20.0
    assert 2000.0 < built.facts.length < 9000.0


def test_a_figure_of_eight_is_kept_as_a_draft_that_says_why(tmp_path: Path) -> None:
    angles = np.linspace(0.0, 2.0 * np.pi, 200, endpoint=False)
    np.savetxt(tmp_path / "eight.txt", np.column_stack([400.0 * np.sin(angles), 300.0 * np.sin(2.0 * angles)]))
    draft = import_circuit(tmp_path / "eight.txt")
    assert any(problem.kind == "cross" for problem in preview(draft).problems)
    entry = CircuitLibrary(tmp_path).save(draft)
    assert entry.is_draft


def test_columns_are_found_by_their_names() -> None:
    rows = b"# s_m; x_m; y_m; psi_rad; kappa\n" + b"".join(b"%d; %d; %d; 0.1; 0.2\n" % (i, i, i * i) for i in range(9))
    assert read_csv(rows).points.tolist() == [[i, i * i] for i in range(9)]
    swapped = read_csv(b"y,x,name\n# a comment\n1,2,7\n3,4,7 # and one more\n")
    assert swapped.points.tolist() == [[2.0, 1.0], [4.0, 3.0]]
    quoted = read_csv('\ufeff"x_m","y_m","w_tr_right_m","w_tr_left_m"\n0,0,2,4\n10,0,2,4\n20,0,2,4'.encode())
    assert quoted.half_widths is not None
    assert quoted.half_widths.tolist() == [3.0, 3.0, 3.0]
    assert quoted.points[1].tolist() == [10.0, 1.0], "the middle is left of the line if there is more road there"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("M0 0L10 0 10 10Z", [(0, 0), (10, 0), (10, 10)]),
        ("m5,5h10v10h-10z", [(5, 5), (15, 5), (15, 15), (5, 15)]),
        ("M0-1.5.5 1e1-3-4", [(0, -1.5), (0.5, 10), (-3, -4)]),
        ("M0 0L1 0L2 0zL5 5L6 6", [(0, 0), (1, 0), (2, 0)]),
        ("M0 0L4 4L1 2!L9 9", [(0, 0), (4, 4), (1, 2)]),
    ],
)
def test_paths_are_read_as_browsers_do(path: str, expected: list[tuple[float, float]]) -> None:
    lines = svg_lines(f'<svg><path d="{path}"/></svg>'.encode())
    assert np.allclose(lines[0], np.array(expected, np.float64) * (1.0, -1.0))


@pytest.mark.parametrize(
    "path",
    [
        "M100 0A100 100 0 0 1 -100 0A100 100 0 0 1 100 0Z",
        "M100 0a100 100 0 01-200 0 100 100 0 01 200 0",
        "M100 0A50 50 30 1 1-100 0 50 50 0 0 1 100,0",
        "M100 0C100 55.23 55.23 100 0 100S-100 55.23-100 0-55.23-100 0-100 100-55.23 100 0z",
        "M100 0Q100 41.42 70.71 70.71T0 100 -70.71 70.71-100 0-70.71-70.71 0-100 70.71-70.71 100 0",
    ],
)
def test_curves_of_all_kinds_draw_a_circle(path: str) -> None:
    points = read_svg(f'<svg xmlns="http://www.w3.org/2000/svg"><g><path d="{path}"/></g></svg>'.encode()).points
    assert np.abs(np.hypot(*points.T) - 100.0).max() < 2.5
    assert len(points) > 30


def test_transforms_move_lines_and_hidden_ones_are_skipped() -> None:
    drawing = (
        '<svg><defs><path d="M0 0 900 0 900 900z"/></defs><g transform="matrix(0 1 -1 0 5 6)">'
        '<polygon transform="translate(10) rotate(90 1 2) scale(2 3)" points="1,1 2,1 2,2"/></g></svg>'
    )
    (line,) = svg_lines(drawing.encode())
    assert np.allclose(line, [(2.0, -16.0), (0.0, -16.0), (0.0, -13.0)])


def array(rows: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, rows, allow_pickle=True)
    return file.getvalue()


ENTITIES = b'<!DOCTYPE svg [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]><svg><path d="&b;"/></svg>'
OUTSIDE = b'<!DOCTYPE svg [<!ENTITY a SYSTEM "file:///etc/passwd">]><svg><path d="&a;"/></svg>'


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"", "expected rows of x, y or x_m, y_m, w_tr_right_m, w_tr_left_m; it has no rows of numbers"),
        ("a.csv", b"0,0\n1,1\n", "at least 4"),
        ("a.csv", b"0,0\n1,1\n2,oops\n", "line 3 has '2,oops'"),
        ("a.csv", b"0,0\n1,1,1\n", "line 2 has 3 numbers"),
        ("a.csv", b"0,0,0\n1,1,1\n", "3 columns and does not name x and y"),
        ("a.csv", b"0,0\n1,1\n2,nan\n1,2\n", "not between"),
        ("a.csv", b"0,0\n9,0\n9,9\n0,inf\n", "not between"),
        ("a.csv", b"0,0,1,1\n9,0,1,1\n9,9,-1,-1\n0,9,1,1\n", "no width at point 2"),
        ("a.csv", b"".join(b"%d,0\n" % i for i in range(100)), "not closed"),
        ("a.csv", b"0,0\n" * 30_000, "more than 20000 rows"),
        ("a.csv", b"\n" * 100_000, "more than 50000 lines"),
        ("a.csv", b" " * (4 * 2**20 + 1), "larger than 4 MiB"),
        ("a.npy", b"not an array", "expected an array (n, 6) of centre, inner and outer border"),
        ("a.npy", array(np.zeros((5, 3))), "an array (5, 3)"),
        ("a.npy", array(np.zeros(12)), "another form"),
        ("a.npy", array(np.array([[{}] * 6])), "of objects"),
        ("a.npy", array(np.zeros((4, 6)))[:-1], "ends too early"),
        ("a.npy", array(np.zeros((4, 6))).replace(b"(4, 6)", b"(9999999999, 6)"), "9999999999"),
        ("a.svg", b"<svg></svg>", "expected a drawing with the circuit as its longest path"),
        ("a.svg", b"<svg", "it is not SVG"),
        ("a.svg", b"<html/>", "its first element is not <svg>"),
        ("a.svg", b'<?xml version="1.0" encoding="nonsense"?><svg/>', "it is not SVG"),
        ("a.svg", ENTITIES, "entities"),
        ("a.svg", OUTSIDE, "entities"),
        ("a.svg", b"<svg>" * 300, "nested deeper"),
        ("a.svg", b'<svg><path d="M0 0' + b"z" * 100_000 + b'"/></svg>', "more than 60000"),
        ("a.doc", b"", "are imported from .csv, .txt, .npy, .svg, .json"),
        ("a.json", b"{}", "missing required field"),
    ],
)
def test_a_wrong_file_is_refused_in_a_line_that_says_what_was_expected(
    name: str, content: bytes, message: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(CircuitError) as refused:
        import_circuit(tmp_path / name)
    assert message in str(refused.value)
    assert name in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    for name in ("missing.csv", "folder.csv"):
        with pytest.raises(CircuitError, match="cannot read"):
            import_circuit(tmp_path / name)


@pytest.mark.parametrize("kind", ["f4", "f8", "i2", "i8", "u1"])
def test_arrays_of_all_plain_numbers_are_read_in_both_orders(kind: str) -> None:
    rows = np.arange(24).reshape(12, 2).astype(kind)
    for order in (rows, np.asfortranarray(rows)):
        assert read_npy(array(order)).points.tolist() == rows.tolist()


def test_borders_give_the_road_between_them() -> None:
    rows = np.array([[0, 0, 0, 2, 0, -4], [9, 0, 9, 2, 9, -4], [9, 9, 9, 11, 9, 5]], np.float64)
    line = read_npy(array(rows))
    assert line.points.tolist() == [[0.0, -1.0], [9.0, -1.0], [9.0, 8.0]]
    assert line.half_widths is not None
    assert line.half_widths.tolist() == [3.0, 3.0, 3.0]


def test_names_of_files_become_names_of_circuits() -> None:
    names = {"brands_hatch.csv": "Brands Hatch", "IMS-2019.csv": "IMS 2019", "Spa.npy": "Spa", "\u202ea\n.csv": "A"}
    assert {file: name_of(Path(file)) for file in names} == names
