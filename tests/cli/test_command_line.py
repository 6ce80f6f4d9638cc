"""The command line in real processes."""

import dataclasses
import json
import math
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from racer_env.engine import load_circuit
from racer_viewer.circuits.draft import Draft, set_text
from racer_viewer.circuits.library import CircuitLibrary
from racer_viewer.cli import main
from racer_viewer.cli.main import VERBS, build_parser
from racer_viewer.cli.run_options import NO_OPTION, run_config, settings
from racer_viewer.training.config import RunConfig, preset

ROOT = Path(__file__).parents[2]


def call(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "racer_viewer", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=cwd, encoding="utf-8")


def test_help_lists_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    out = capsys.readouterr().out
    assert "tracks" in out
    assert "bench" in out


def test_tracks_lists_every_circuit_with_length_corner_and_medals(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tracks"]) == 0
    out = capsys.readouterr().out
    for id_and_figures in (("track-01", "1184", "6.74 s"), ("track-06", "5684", "35.34 s")):
        row = next(line for line in out.splitlines() if line.startswith(id_and_figures[0]))
        assert all(figure in row for figure in id_and_figures)


def test_tracks_draws_each_circuit_as_a_well_formed_picture(tmp_path: Path) -> None:
    result = call("tracks", "--svg", "pictures", "track-03", "random:5:hard", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    names = [Path(line).name for line in result.stdout.splitlines()]
    assert names == ["track-03.svg", "random-5-hard.svg", "overview.svg"]
    for name, circuits in zip(names, (1, 1, 2), strict=True):
        root = ET.fromstring((tmp_path / "pictures" / name).read_text(encoding="utf-8"))
        paths = [element.get("d", "") for element in root.iter("{http://www.w3.org/2000/svg}path")]
        assert sum(path.count("Z") for path in paths) == 4 * circuits, "two walls and two road edges each"


def test_an_imported_circuit_is_chosen_by_its_id_and_by_its_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    angles = [index / 40.0 for index in range(251)]
    rows = [f"{700 * math.cos(angle):.2f},{300 * math.sin(angle):.2f},5.5,4.5" for angle in angles]
    file, data = tmp_path / "old_bowl.csv", ("--data-dir", str(tmp_path / "data"))
    file.write_text("\n".join(["# x_m,y_m,w_tr_right_m,w_tr_left_m", *rows]))

    def output(*arguments: str) -> str:
        assert main([*arguments, *data]) == 0
        return capsys.readouterr().out

    assert output("tracks", "--import", str(file)).startswith("own:old-bowl: Old Bowl, 32")
    assert "own:bowl" in output("tracks", "--import", str(file), "--name", "Bowl")
    listed = output("tracks")
    assert listed.index("track-06") < listed.index("own:")
    assert "Old Bowl" in output("tracks", "own:old-bowl")
    driven = output("evaluate", "champion", "--track", "old bowl", "own:bowl")
    assert "Old Bowl (own:old-bowl)" in driven
    assert "Bowl (own:bowl)" in driven
    for text in ("own:old-bwol", "old-bwol"):
        assert main(["rewards", "--track", text, *data]) == 2
        refusal = capsys.readouterr().err
        assert refusal.count("\n") == 1
        assert "did you mean own:old-bowl?" in refusal
    assert main(["tracks", "own:x", "--data-dir", str(tmp_path / "elsewhere")]) == 2
    assert "there are no circuits of your own yet" in capsys.readouterr().err


def test_an_import_that_cannot_be_driven_is_a_draft(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "knot.csv").write_text("0,0\n300,300\n300,0\n0,300\n")
    data = "--data-dir", str(tmp_path / "data")
    assert main(["tracks", "--import", str(tmp_path / "knot.csv"), *data]) == 1
    assert "saved as a draft, because it cannot be driven yet: the walls cross near" in capsys.readouterr().out
    assert main(["tracks", *data]) == 0
    assert "own:knot: Knot: a draft" in capsys.readouterr().out
    assert main(["evaluate", "champion", "--track", "own:knot", *data]) == 2
    assert "walls cross" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--import", "a-file"), "circuits are imported from .csv, .txt, .npy, .svg, .json"),
        (("--import", "nowhere.csv"), "cannot read nowhere.csv"),
        (("--import", "nowhere.csv", "track-01"), "--import takes one file"),
        (("--name", "x"), "--name is for --import FILE"),
    ],
)
def test_a_wrong_import_is_one_line(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tracks", *arguments]) == 2
    refusal = capsys.readouterr().err
    assert message in refusal
    assert refusal.count("\n") == 1


def test_a_run_learns_on_an_own_circuit_by_its_name(tmp_path: Path) -> None:
    library = CircuitLibrary(tmp_path)
    entry = library.save(set_text(Draft.from_circuit(load_circuit("track-01").circuit), name="My Ring"))
    arguments = ["train", "--track", "own:my-ring", "track-02", "--data-dir", str(tmp_path)]
    assert run_config(build_parser(["train"]).parse_args(arguments)).tracks == (str(entry.path), "track-02")
    remote = run_config(build_parser(["train"]).parse_args([*arguments, "--bridge", "ws://localhost:1"]))
    assert remote.tracks == ("own:my-ring", "track-02"), "the server knows its own circuits"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("evalute", "champion"), "unknown command 'evalute'; did you mean evaluate?"),
        (("tracks", "track-1"), "did you mean track-01"),
        (("tracks", "speedway"), "did you mean track-02"),
        (("tracks", "track-99"), "known: track-01 (Meadow Ring), track-02"),
        (("evaluate", "champoin"), "there is no such file or bundled model; did you mean champion?"),
        (("evaluate", "specialist-track-09"), "known: champion, "),
        (("train", "--attach", "my-rnu", "--data-dir", "data"), "did you mean my-run?"),
        (("train", "--headless", "--resume", "my-rnu", "--data-dir", "data"), "did you mean my-run?"),
        (("tracks", "nowhere.json"), "does not exist"),
        (("tracks", "random:x"), "whole number"),
        (("tracks", "--svg", "a-file/here"), "a-file"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    (tmp_path / "a-file").write_text("in the way")
    (tmp_path / "data" / "runs" / "my-run").mkdir(parents=True)
    (tmp_path / "data" / "runs" / "my-run" / "config.json").write_text("{}")
    result = call(*arguments, cwd=tmp_path)
    assert result.returncode == 2
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert "Traceback" not in result.stderr


def test_a_circuit_name_cannot_inject_markup_into_a_picture(tmp_path: Path) -> None:
    points = [[-200, -200, 15], [0, -200, 15], [200, -200, 15], [200, 200, 15], [-200, 200, 15]]
    (tmp_path / "x.json").write_text(json.dumps({"name": "<script>[red]&", "control_points": points}))
    assert call("tracks", "--svg", ".", "x.json", cwd=tmp_path).returncode == 0
    assert "<script>" not in (tmp_path / "x.svg").read_text(encoding="utf-8")
    assert "<script>[red]&" in call("tracks", "x.json", cwd=tmp_path).stdout


@pytest.mark.skipif(sys.platform == "win32", reason="there is no /dev/full")
def test_output_that_cannot_be_written_is_one_line() -> None:
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "racer_viewer", "tracks"]
        result = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=120)
    assert result.returncode == 2
    assert len(result.stderr.splitlines()) == 1
    assert "No space left" in result.stderr
    assert "Errno" not in result.stderr


def test_a_reader_that_goes_away_ends_it_without_a_word() -> None:
    command = [sys.executable, "-m", "racer_viewer", "tracks"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.wait(timeout=120) in (0, 1)
        assert process.stderr.read() == ""


WITHOUT_TORCH = """
import sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "stable_baselines3"):
            raise ModuleNotFoundError(name, name=name)

sys.meta_path.insert(0, Hidden())
from racer_env.engine import load_circuit
from racer_viewer.circuits.draft import Draft, set_text
from racer_viewer.circuits.library import CircuitLibrary
from racer_viewer.cli import main
from racer_viewer.cli.main import build_parser
from racer_viewer.cli.run_options import NO_OPTION, run_config, settings
from racer_viewer.training.config import RunConfig, preset
raise SystemExit(main(sys.argv[1:]))
"""


def run_without_torch(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "RACER_DATA_DIR": str(folder)}
    call = [sys.executable, "-c", WITHOUT_TORCH, *command.split()]
    return subprocess.run(call, capture_output=True, text=True, timeout=120, cwd=folder, env=environment)


@pytest.mark.slow
def test_models_are_exported_without_torch(tmp_path: Path) -> None:
    for target in ("--zip copy.zip", "--folded folded.zip", "--onnx exported"):
        result = run_without_torch(f"export champion {target}", tmp_path)
        assert result.returncode == 0, result.stderr


@pytest.mark.slow
def test_without_torch_ppo_trains_and_one_line_says_what_sac_needs(tmp_path: Path) -> None:
    tiny = "train --headless --num-cars 8 --set n_steps=16 --set batch_size=64"
    result = run_without_torch(f"{tiny} --timesteps 100", tmp_path)
    assert result.returncode == 0, result.stderr
    assert "Finished after 128 steps" in result.stdout
    for needs_it in ("--algo sac", "--engine sb3", "--device cuda"):
        result = run_without_torch(f"{tiny} {needs_it}", tmp_path)
        assert result.returncode == 2
        (line,) = result.stderr.splitlines()
        assert "SAC, --engine sb3 and TensorBoard need packages that are not installed" in line
        assert 'pip install "racer-viewer[sb3]"' in line


FOREIGN = {
    "an empty package": {"racer_env/__init__.py": ""},
    "a package of the existing project": {
        "racer_env/__init__.py": "from .env import RacerEnv",
        "racer_env/env.py": "class RacerEnv: pass",
        "racer_env/bridge.py": "",
    },
    "a package that cannot be imported": {"racer_env/__init__.py": "raise AttributeError('registration')"},
    "a module": {"racer_env.py": "import surely_not_installed"},
    "an old version of ours": {
        "racer_env/__init__.py": "", "racer_env/errors.py": "class RacerError(Exception): pass",
        "racer_env/engine/__init__.py": "",
    },
}  # fmt: skip
"""Packages named racer_env that are not the one this program needs."""


@pytest.mark.parametrize("files", FOREIGN.values(), ids=FOREIGN.keys())
@pytest.mark.parametrize("command", ["tracks", "bridge --port 0", "train --settings"])
def test_another_package_named_racer_env_is_one_line_with_its_path(
    tmp_path: Path, files: dict[str, str], command: str
) -> None:
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(tmp_path), str(ROOT)))}
    call = [sys.executable, "-m", "racer_viewer", *command.split()]
    result = subprocess.run(call, capture_output=True, text=True, timeout=120, env=environment, cwd=tmp_path)
    assert result.returncode == 2
    [line] = result.stderr.splitlines()
    found = tmp_path / next(iter(files)).split("/")[0]
    assert line.startswith(f"racer-viewer: {found} is another package named racer_env")
    assert f"remove {tmp_path} from PYTHONPATH" in line
    assert result.stdout == ""


def test_the_menu_is_not_opened_with_another_package_named_racer_env(tmp_path: Path) -> None:
    (tmp_path / "racer_env.py").touch()
    environment = {**os.environ, "SDL_VIDEODRIVER": "dummy", "PYTHONPATH": str(ROOT)}
    call = [sys.executable, "-m", "racer_viewer", "--data-dir", str(tmp_path / "data")]
    result = subprocess.run(call, capture_output=True, text=True, timeout=120, env=environment, cwd=tmp_path)
    assert result.returncode == 2
    assert "is another package named racer_env" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_folder_named_racer_env_without_code_is_in_nobodys_way(tmp_path: Path) -> None:
    (tmp_path / "racer_env").mkdir()
    result = call("tracks", cwd=tmp_path)
    assert (result.returncode, result.stderr) == (0, "")


def test_the_verb_of_learner_processes_is_shown_nowhere() -> None:
    texts = [call("--help").stdout, call("no-such-verb").stderr, call("--data-dir", "x", "no-such-verb").stderr]
    assert all("evaluate" in text for text in texts)
    assert not any("learn" in text for text in texts)


REQUIRED = {
    "replay": ["lap.racer"], "evaluate": ["champion"], "export": ["champion", "--zip", "mine.zip"],
    "stdio": ["--env-id", "Racer-v0"], "bench": ["engine"], "desktop": ["--install"],
}  # fmt: skip
"""Arguments without which a verb cannot be parsed."""


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_takes_the_data_folder_before_and_after_its_name(verb: str) -> None:
    required, parser = REQUIRED.get(verb, []), build_parser()
    before, after = ["--data-dir", "before"], ["--data-dir", "after"]
    for arguments, expected in (
        ([*before, verb, *required], Path("before")),
        ([verb, *required, *after], Path("after")),
        ([verb, *after, *required], Path("after")),
        ([*before, verb, *required, *after], Path("after")),
        ([verb, *required], None),
    ):
        assert parser.parse_args(arguments).data_dir == expected, arguments


def test_a_verb_without_files_of_its_own_accepts_the_data_folder(tmp_path: Path) -> None:
    folder = ("--data-dir", str(tmp_path / "data"))
    results = [call(*arguments) for arguments in ((*folder, "tracks", "track-01"), ("tracks", "track-01", *folder))]
    assert [result.returncode for result in results] == [0, 0], results
    assert results[0].stdout == results[1].stdout
    assert not (tmp_path / "data").exists()


JSON_COMMANDS = (
    "evaluate champion --track track-01", "bench engine --quick", "bench bridge --steps 100 --warmup 5",
    "bench train --rounds 1", "bench train --rounds 1 --preview", "bench render --seconds 0.3",
    "bench start --rounds 1", "bench learn --seeds 1 --timesteps 500", "bench games --seconds 0.2", "selftest",
    "rewards --track track-01", "bench rewards --rounds 1",
)  # fmt: skip


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(command, marks=() if command.startswith("evaluate") else (pytest.mark.slow, pytest.mark.timing))
        for command in JSON_COMMANDS
    ],
)
def test_with_json_the_output_is_json_and_nothing_else(command: str, tmp_path: Path) -> None:
    if command.startswith("bench games"):
        pytest.importorskip("Box2D")
    environment = {**os.environ, "SDL_VIDEODRIVER": "dummy", "SDL_AUDIODRIVER": "dummy"}
    environment.pop("PYGAME_HIDE_SUPPORT_PROMPT", None)
    result = subprocess.run(
        [sys.executable, "-m", "racer_viewer", *command.split(), "--json", "--data-dir", str(tmp_path)],
        capture_output=True,
        encoding="utf-8",
        timeout=300,
        env=environment,
    )
    assert result.returncode in (0, 1), result.stderr  # 1: a target is missed, on a slow machine or in a short run

    def refuse(constant: str) -> Any:
        raise AssertionError(f"{constant} is not JSON")

    assert json.loads(result.stdout, parse_constant=refuse)


def test_every_verb_with_json_output_is_tested(capsys: pytest.CaptureFixture[str]) -> None:
    def shown_help(*command: str) -> str:
        with pytest.raises(SystemExit):
            main([*command, "--help"])
        return capsys.readouterr().out

    subjects = re.findall(r"^    (\w+)  +", shown_help("bench").partition("subjects:")[2], re.MULTILINE)
    assert len(subjects) >= 7
    commands = [*((verb,) for verb in VERBS if verb != "bench"), *(("bench", subject) for subject in subjects)]
    with_json = {" ".join(command) for command in commands if "--json" in shown_help(*command)}
    assert with_json == {re.match(r"(bench )?\w+", command)[0] for command in JSON_COMMANDS}  # type: ignore[index]


EXAMPLES = {
    "algo": ("sac", "sac"), "tracks": ("track-02 random:3", ("track-02", "random:3")), "timesteps": ("77", 77),
    "name": ("mine", "mine"), "seed": ("5", 5), "num_cars": ("3", 3), "begin_from": ("champion", "champion"),
    "device": ("cuda", "cuda"), "progress_in_units": ("", True), "starts": ("line", "line"),
    "net": ("32 16", (32, 16)), "activation": ("relu", "relu"), "first_action": ("0.5 0.25 -1", (0.5, 0.25, -1.0)),
    "norm_reward": ("", True),
    "engine": ("sb3", "sb3"),
}  # fmt: skip
"""Arguments of options that are not a single number, and the values they set."""
READS_FILES = {"teach": "tests/training/test_teaching.py gives it replays"}
"""Settings whose option reads files, with the test that has such files."""


@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(RunConfig)])
def test_every_setting_of_a_run_has_an_option_or_a_reason_for_none(name: str) -> None:
    (setting,) = [each for each in settings() if each.name == name]
    assert setting.help
    if name in NO_OPTION or name in READS_FILES:
        return
    given, value = EXAMPLES.get(name, ("0.5", 0.5) if setting.type is float else ("9", 9))
    options = build_parser().parse_args(["train", setting.flag, *given.split()])
    config = run_config(options)
    assert getattr(config, name) == value
    if name != "algo":
        assert dataclasses.replace(config, **{name: getattr(preset("ppo"), name)}) == preset("ppo")


def test_a_setting_can_be_switched_off() -> None:
    assert not run_config(build_parser().parse_args(["train", "--no-norm-reward"])).norm_reward


def test_settings_without_an_option_are_settings() -> None:
    assert set(NO_OPTION) <= {each.name for each in settings()}
