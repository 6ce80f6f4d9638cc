"""The documents are true: links lead somewhere, commands and snippets run, tables are those of the code."""

import inspect
import json
import re
import shlex
import tomllib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from racer_env.bridge.interface import RESET_KEYS, STEP_KEYS
from racer_env.engine import Start, load_circuit, parse_config
from racer_env.engine.rays import RAY_ANGLES
from racer_env.engine.starts import LIMITS
from racer_env.env import DISCRETE_ACTIONS, OBSERVATION_SPACE, RacerEnv
from racer_env.errors import CircuitError
from racer_env.vector import RacerVectorEnv
from racer_viewer.cli import main
from racer_viewer.replays import save_replay
from racer_viewer.training.config import PRESETS, preset
from tests.documents import (
    ROOT,
    TRIED_ELSEWHERE,
    Document,
    needs_a_window,
    run_all,
    run_snippet,
    run_until_somebody_drives,
    table_rows,
    with_steps,
)
from tests.replays.replay_drives import ring_run
from tests.training.noisy_drives import noisy_drive
from tools.docs import broken_links, documents, draw_circuits, report

PAGES = {
    name: Document(f"docs/{name}.md")
    for name in ("architecture", "environment", "circuits", "training", "troubleshooting")
}
IN_THE_README = set(Document("README.md").commands)
QUICK = ("tracks", "train --settings")
FEW_STEPS = 10_000


def to_run(page: Document) -> list[str]:
    return [command for command in page.commands if command not in TRIED_ELSEWHERE | IN_THE_README]


@pytest.fixture
def a_readers_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Working folder of a reader, with the circuit and the centreline of the circuits page and two replays."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RACER_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.setenv("SDL_AUDIODRIVER", "dummy")
    (tmp_path / "bean.json").write_text(PAGES["circuits"].snippets("json")[0], encoding="utf-8")
    (tmp_path / "bowl.csv").write_text(PAGES["circuits"].snippets("csv")[0], encoding="utf-8")
    save_replay(noisy_drive(0, laps=1), tmp_path / "drive.racer")
    save_replay(ring_run(60), tmp_path / "other.racer")
    return tmp_path


@pytest.mark.usefixtures("a_readers_folder")
@pytest.mark.parametrize(
    "command", sorted({each for page in PAGES.values() for each in to_run(page) if each.startswith(QUICK)})
)
def test_quick_commands_run(command: str) -> None:
    assert main(shlex.split(command)) == 0


@pytest.mark.slow
@pytest.mark.usefixtures("a_readers_folder")
@pytest.mark.parametrize("name", [name for name, page in PAGES.items() if to_run(page)])
def test_all_other_commands_run_in_their_order(name: str) -> None:
    others = [each for each in to_run(PAGES[name]) if not each.startswith(QUICK) and not needs_a_window(each)]
    run_all(with_steps(command, number * FEW_STEPS) for number, command in enumerate(others, start=1))


@pytest.mark.slow
@pytest.mark.usefixtures("a_readers_folder")
@pytest.mark.parametrize(
    "command", sorted({each for page in PAGES.values() for each in to_run(page) if needs_a_window(each)})
)
def test_windows_open_where_somebody_drives(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_until_somebody_drives(command, monkeypatch) == [command.split()[0]]


@pytest.mark.parametrize(
    ("name", "code"), [(name, code) for name, page in PAGES.items() for code in page.snippets("python")]
)
def test_python_snippets_run(name: str, code: str) -> None:
    run_snippet(code, f"docs/{name}.md")


@pytest.mark.parametrize(
    ("name", "text"), [(name, text) for name, page in PAGES.items() for text in page.snippets("json")]
)
def test_json_can_be_read_by_what_it_is_for(name: str, text: str, tmp_path: Path) -> None:
    if name == "circuits":
        (tmp_path / "circuit.json").write_text(text, encoding="utf-8")
        assert load_circuit(tmp_path / "circuit.json").length > 0
    else:
        assert parse_config(text) != parse_config(None)


@pytest.mark.parametrize("document", documents(ROOT), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_all_links_lead_somewhere(document: Path) -> None:
    assert list(broken_links(document, ROOT)) == []


def written(root: Path, name: str, text: str) -> Path:
    path = root / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_broken_links_are_found_where_they_stand(tmp_path: Path) -> None:
    written(tmp_path, "docs/there.md", "# There\n")
    text = """# A title
[right](docs/there.md) and [wrong](docs/gone.md)
![no picture](docs/gone.png) [![nor here](docs/gone.jpg)](docs/there.md)
[no heading](docs/there.md#elsewhere) and [none here](#nowhere)
<img src="docs/gone.svg"> and [outside](../beside.md)
[a reference][1], [nothing]()

[1]: docs/gone-too.md
"""
    found = [(link.line, link.target) for link, _ in broken_links(written(tmp_path, "README.md", text), tmp_path)]
    assert sorted(found) == [
        (2, "docs/gone.md"),
        (3, "docs/gone.jpg"),
        (3, "docs/gone.png"),
        (4, "#nowhere"),
        (4, "docs/there.md#elsewhere"),
        (5, "../beside.md"),
        (5, "docs/gone.svg"),
        (6, ""),
        (8, "docs/gone-too.md"),
    ]


def test_right_links_code_and_other_sites_are_left_alone(tmp_path: Path) -> None:
    text = """# What's new, and `what` is_not?
## Twice
## Twice
[up](#whats-new-and-what-is_not) [second](#twice-1) [by id](#here) <a id="here"></a>
[site](https://example.org/x#y) [mail](mailto:a@example.org) [folder](docs/) [a space](docs/a%20b.md "a title")
`[not a link](gone.md)` and ``[nor `this`](gone.md)``

```
[nor this](gone.md)
# No heading
```
"""
    written(tmp_path, "docs/a b.md", "")
    assert list(broken_links(written(tmp_path, "README.md", text), tmp_path)) == []


def test_a_report_names_file_and_line_of_every_broken_link(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(tmp_path, "README.md", "[fine](docs/page.md)\n")
    page = written(tmp_path, "docs/page.md", "\n\n[gone](gone.md)\n[up](../README.md#none)\n")
    assert report(tmp_path) == 1
    assert [line.split(": ")[0] for line in capsys.readouterr().err.splitlines()] == [
        "docs/page.md:3",
        "docs/page.md:4",
    ]
    page.write_text("[up](../README.md)\n", encoding="utf-8")
    assert report(tmp_path) == 0
    assert "2 documents" in capsys.readouterr().out


def test_the_sheet_of_circuits_shows_them_as_they_are(tmp_path: Path) -> None:
    draw_circuits(tmp_path / "circuits.svg")
    drawn, kept = ((folder / "circuits.svg").read_text(encoding="utf-8") for folder in (tmp_path, ROOT / "docs"))
    assert re.findall(r"<title>.*?</title>", drawn) == re.findall(r"<title>.*?</title>", kept)
    assert numbers(drawn) == pytest.approx(numbers(kept), abs=0.2), "python run.py docs --pictures draws them anew"


def numbers(svg: str) -> list[float]:
    return [float(number) for number in re.findall(r"-?\d+\.\d+", svg)]


def test_the_index_has_every_page() -> None:
    index = Document("docs/README.md").text
    pages = {path.name for path in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert pages <= set(re.findall(r"\]\(([\w-]+\.md)\)", index))


def test_the_architecture_names_every_package() -> None:
    text = PAGES["architecture"].text
    drawing = (ROOT / "docs" / "architecture.svg").read_text(encoding="utf-8")
    for package in ("racer_env", "racer_viewer"):
        parts = [path.parent.name for path in (ROOT / package).glob("*/__init__.py")]
        assert len(parts) > 3
        assert [part for part in parts if f"`{part}/`" not in text] == []
        assert [part for part in parts if not re.search(rf"\b{part}\b", drawing)] == []


def test_the_architecture_has_the_layers_that_are_checked() -> None:
    """Both packages, highest layer first."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = {
        contract["containers"][0]: [re.findall(r"\w+", layer) for layer in contract["layers"]]
        for contract in project["tool"]["importlinter"]["contracts"]
        if contract["type"] == "layers"
    }
    lines = re.findall(r"^- `(\w+)`: (.*?)\.$", PAGES["architecture"].text.split("## Imports")[1], re.M | re.S)
    documented = {package: [re.findall(r"`(\w+)`", layer) for layer in text.split("→")] for package, text in lines}
    assert documented == contracts


def test_the_architecture_names_files_that_exist() -> None:
    named = set(re.findall(r"`([\w/]+\.py)`", PAGES["architecture"].text))
    assert len(named) > 20
    roots = (ROOT, ROOT / "racer_env", ROOT / "racer_viewer")
    assert [name for name in sorted(named) if not any((root / name).is_file() for root in roots)] == []


def test_the_card_has_every_argument_with_its_default() -> None:
    for kind, heading in ((RacerEnv, "Arguments"), (RacerVectorEnv, "Vector environment")):
        said = {
            cells[0].strip("`"): cells[1].strip("`") for cells in table_rows(PAGES["environment"].text, heading)[1:]
        }
        parameters = inspect.signature(kind).parameters
        known = {name: repr(each.default) for name, each in parameters.items()}
        if kind is RacerVectorEnv:
            known = {
                name: default for name, default in known.items() if name not in inspect.signature(RacerEnv).parameters
            }
        assert said == known


def test_the_card_has_every_weight_with_its_default() -> None:
    config = parse_config(None).to_json()
    rows = table_rows(PAGES["environment"].text, "Rewards")[1:]
    said = {cells[1].strip("`"): float(cells[2]) for cells in rows}
    threshold = config["weights"].pop("stillnessSpeedThreshold")
    assert said == config["weights"]
    assert f"`stillnessSpeedThreshold`, {threshold} units/s" in rows[-1][3]
    end = PAGES["environment"].text.split("## Episode end")[1]
    for name, ticks in config["episode"].items():
        assert f"`{name}` ({ticks}, " in end


def test_the_card_has_every_observation_with_its_range() -> None:
    rows = table_rows(PAGES["environment"].text, "Observation space")[1:]
    assert [int(cells[0]) for cells in rows] == list(range(14))
    low, high = zip(*(map(float, cells[2].split(" to ")) for cells in rows), strict=True)
    assert low == tuple(OBSERVATION_SPACE.low)
    assert high == tuple(OBSERVATION_SPACE.high)
    angles = [0.0 if "ahead" in cells[1] else float(re.findall(r"(-?[\d.]+)°", cells[1])[0]) for cells in rows[:9]]
    assert np.radians(angles) == pytest.approx(RAY_ANGLES)


def test_rays_go_from_the_right_to_the_left_as_the_card_says() -> None:
    env = RacerEnv(start={"offset": 0.9})
    observation, _ = env.reset(seed=1)
    env.close()
    assert observation[0] > observation[8], "the car is left of the middle: the wall on its right is farther"


def test_the_card_has_the_nine_actions_in_their_places() -> None:
    rows = table_rows(PAGES["environment"].text, "Action space")[-3:]
    pedals = ((1.0, 0.0), (0.0, 0.0), (0.0, 1.0))
    for row, steer in zip(rows, (-1.0, 0.0, 1.0), strict=True):
        for cell, (throttle, brake) in zip(row[1:], pedals, strict=True):
            assert tuple(DISCRETE_ACTIONS[int(cell)]) == (steer, throttle, brake)


def test_the_card_has_every_info_key_and_every_start() -> None:
    text = PAGES["environment"].text
    keys = [key for cells in table_rows(text, "Info")[1:] for key in re.findall(r"`(\w+)`", cells[0])]
    assert sorted(keys) == sorted(STEP_KEYS)
    reset = re.findall(r"`(\w+)`", text.split("replies of existing bridges (")[1].split(")")[0])
    assert tuple(reset) == RESET_KEYS
    starts = {
        cells[0].strip("`"): tuple(map(float, cells[2].split(" to ")))
        for cells in table_rows(text, "Starting state")[1:]
    }
    assert starts == LIMITS
    assert set(starts) == set(Start.__dataclass_fields__)


def test_the_guide_has_every_preset_with_its_steps() -> None:
    rows = {cells[0]: cells for cells in table_rows(PAGES["training"].text, "Presets")[1:]}
    names = {"quick": "`quick` (default)"}
    for algorithm, presets in PRESETS.items():
        for name in presets:
            label = names.get(name, f"`{name}`") if algorithm == "ppo" else f"`{name}` with `--algo {algorithm}`"
            assert f"{preset(algorithm, name).timesteps:,}" in rows.pop(label)[2]
    assert rows == {}


@pytest.mark.parametrize(
    "points",
    [
        [[-200, -100, 20], [200, 100, 20], [280, 0, 16], [200, -100, 20], [-200, 100, 20], [-280, 0, 16]],
        [[0, 0, 20], [100, 0, 0.5], [100, 100, 20], [0, 100, 20]],
        [[0, 0, 20], [200, 0, 20], [200, 200, 20], [200, 201, 20], [0, 200, 20]],
        [[0, 0, 20], [100, 0, "wide"], [100, 100, 20], [0, 100, 20]],
    ],
    ids=["crossing walls", "too narrow", "twice the same", "a word for a number"],
)
def test_what_is_wrong_with_a_circuit_is_said_as_its_page_has_it(points: Sequence[object], tmp_path: Path) -> None:
    said = [cells[0].strip("` ") for cells in table_rows(PAGES["circuits"].text, "Rules")[1:]]
    (tmp_path / "circuit.json").write_text(json.dumps({"name": "Wrong", "control_points": points}))
    with pytest.raises(CircuitError) as error:
        load_circuit(tmp_path / "circuit.json")
    assert any(words in str(error.value) for words in said), str(error.value)


@pytest.mark.slow
def test_a_runs_folder_has_the_files_that_the_guide_names(tmp_path: Path) -> None:
    arguments = "train --headless --name NAME --timesteps 20000 --set checkpoint_every=8192 --data-dir"
    assert main([*arguments.split(), str(tmp_path)]) == 0
    rows = table_rows(PAGES["training"].text, "The folder of a run")[1:]
    named = [name for cells in rows for name in re.findall(r"`([^`]+)`", cells[0])]
    models = [name.removesuffix(".zip") for name in named if name.endswith(".zip")]
    patterns = [re.escape(name).replace("123456", r"\d+").replace("…", ".*") for name in named]
    patterns += [re.escape(f"{name}_vecnormalize.pkl").replace("123456", r"\d+") for name in models]
    files = [path.name for path in (tmp_path / "runs" / "NAME").iterdir()]
    assert [name for name in files if not any(re.fullmatch(each, name) for each in patterns)] == []
    assert {"config.json", "NAME.zip", "NAME_best.zip", "progress.csv", "live.jsonl", "policies.bin"} <= set(files)
