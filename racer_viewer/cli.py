"""The command line: `racer-viewer VERB …`. Each verb's work is in a module of its own, imported when it is called."""

import argparse
import math
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from racer_viewer import __version__
from racer_viewer.driving_commands import add_data_folder, add_driving_commands, add_film_options

USAGE_ERROR = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. What the user got wrong is one line and exit code 2."""
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        code: int = options.run(options)
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:  # the reader of our output has gone, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        print(f"racer-viewer: {error}", file=sys.stderr)
        return USAGE_ERROR
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        from racer_env.errors import RacerError  # here, because it is slow to import and the window should be quick

        if not isinstance(error, RacerError):
            raise
        print(f"racer-viewer: {error}", file=sys.stderr)
        return USAGE_ERROR
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="racer-viewer",
        description="A top-down racer to drive, watch and train. Without a command it opens its window.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"racer-viewer {__version__}")
    parser.add_argument(
        "--data-dir",
        type=Path,
        metavar="DIR",
        help="folder for settings, records, replays (default: RACER_DATA_DIR, or yours)",
    )
    parser.set_defaults(run=_run_window)
    verbs = parser.add_subparsers(title="commands", metavar="COMMAND")

    tracks = verbs.add_parser(
        "tracks",
        help="list circuits, or draw them",
        description="List circuits with their length, tightest corner and medal times (best lap of a run).",
    )
    tracks.add_argument(
        "circuits",
        nargs="*",
        metavar="CIRCUIT",
        help="an id, random:SEED, random:SEED:easy|medium|hard, or a circuit file (default: all bundled ones)",
    )
    tracks.add_argument("--svg", metavar="DIR", type=Path, help="draw each of them into this folder")
    tracks.set_defaults(run=_run_tracks)

    add_driving_commands(verbs, _positive)
    _add_train(verbs)
    _add_learn(verbs)
    _add_evaluate(verbs)
    _add_export(verbs)

    bridge = verbs.add_parser(
        "bridge",
        help="serve the environment over WebSocket",
        description="Serve the racer over WebSocket: one environment, or a batch of cars, for every connection.",
    )
    bridge.add_argument("--host", default="127.0.0.1", help="address to listen on (default: this machine only)")
    bridge.add_argument("--port", type=_port, default=9876, help="port to listen on, 0 for any (default: %(default)s)")
    bridge.add_argument(
        "--token",
        help="secret that clients must send; needed for other hosts than this machine (default: RACER_BRIDGE_TOKEN)",
    )
    bridge.add_argument(
        "--max-clients",
        type=_positive(int),
        default=256,
        metavar="N",
        help="connections at once (default: %(default)s)",
    )
    bridge.add_argument(
        "--max-cars", type=_positive(int), default=1024, metavar="N", help="cars of one batch (default: %(default)s)"
    )
    bridge.add_argument(
        "--idle-timeout",
        type=_positive(float),
        default=3600.0,
        metavar="SECONDS",
        help="close a connection that is silent for so long (default: %(default)g)",
    )
    bridge.add_argument("--uvloop", action="store_true", help="use uvloop, a faster event loop, if it is installed")
    bridge.add_argument("--verbose", action="store_true", help="log every message")
    bridge.set_defaults(run=_run_bridge)

    bench = verbs.add_parser("bench", help="measure speed on this machine", description="Measure speed here.")
    subjects = bench.add_subparsers(title="what to measure", metavar="WHAT", required=True)
    engine = subjects.add_parser(
        "engine",
        help="steps per second of the simulation",
        description="Full steps per second (observation, rewards, auto-reset), against CartPole-v1 in the same run.",
    )
    engine.add_argument("--json", action="store_true", help="print the figures as JSON")
    engine.add_argument("--quick", action="store_true", help="a few seconds instead of about a minute, and noisier")
    engine.set_defaults(run=_run_bench_engine)

    over_bridge = subjects.add_parser(
        "bridge",
        help="what a step costs through each kind of bridge",
        description="Steps per second in this process, over WebSocket and in a batch, against raw TCP in the same run.",
    )
    over_bridge.add_argument(
        "--steps", type=_positive(int), default=10_000, metavar="N", help="steps of each kind (default: %(default)s)"
    )
    over_bridge.add_argument(
        "--warmup", type=_positive(int), default=200, metavar="N", help="steps before those (default: %(default)s)"
    )
    over_bridge.add_argument(
        "--target",
        type=_positive(float),
        metavar="S",
        help="JSON steps per second over WebSocket; below that the exit code is 1",
    )
    where = over_bridge.add_mutually_exclusive_group()
    where.add_argument("--url", help="a running bridge to measure (default: start one for this)")
    where.add_argument("--uvloop", action="store_true", help="start the bridge with uvloop")
    over_bridge.add_argument("--token", help="of the bridge at --url (default: RACER_BRIDGE_TOKEN)")
    over_bridge.add_argument("--json", action="store_true", help="print the figures as JSON")
    over_bridge.set_defaults(run=_run_bench_bridge)

    learning = subjects.add_parser(
        "train",
        help="how fast PPO learns",
        description="Steps per second of PPO on many cars, against an environment that costs nothing and against one "
        "car over WebSocket, in the same run.",
    )
    learning.add_argument(
        "--rounds", type=_positive(int), default=9, metavar="N", help="rollouts of each (default: %(default)s)"
    )
    learning.add_argument("--json", action="store_true", help="print the figures as JSON")
    learning.add_argument(
        "--preview",
        action="store_true",
        help="measure instead what the live picture costs, beside the same run without",
    )
    learning.set_defaults(run=_run_bench_train)

    drawing = subjects.add_parser(
        "render",
        help="how long a picture takes",
        description="Draw races of 1, 8, 64 and 256 cars on the smallest and the largest circuit, at 60 pictures a "
        "second: how long they take, layer by layer, and how many are late. Exit code 1 if 8 cars take too long.",
    )
    drawing.add_argument(
        "--seconds", type=_positive(float), default=60.0, metavar="S", help="of 8 cars; others a sixth (default: 60)"
    )
    drawing.add_argument("--json", action="store_true", help="print the figures as JSON")
    drawing.set_defaults(run=_run_bench_render)

    start = subjects.add_parser(
        "start",
        help="how long until the menu is on screen",
        description="From the start of the process to the first picture, against a bare window in the same run.",
    )
    start.add_argument("--rounds", type=_positive(int), default=9, metavar="N", help="(default: %(default)s)")
    start.add_argument("--json", action="store_true", help="print the figures as JSON")
    start.set_defaults(run=_run_bench_start)

    from_nothing = subjects.add_parser(
        "learn",
        help="how long it takes to learn a circuit",
        description="Learn from nothing with several seeds: seconds and steps to the first clean lap, and to a pace. "
        "The exit code is 1 if a seed reaches it not.",
    )
    from_nothing.add_argument(
        "--seeds", type=_positive(int), default=5, metavar="N", help="how many (default: %(default)s)"
    )
    from_nothing.add_argument(
        "--pace", type=_positive(float), metavar="S", help="flying lap in seconds (default: the existing agents')"
    )
    from_nothing.add_argument("--json", action="store_true", help="print the figures as JSON")
    _add_run_options(from_nothing)
    from_nothing.set_defaults(run=_run_bench_learn)
    return parser


def _add_train(verbs: Any) -> None:
    train = verbs.add_parser(
        "train",
        help="learn to drive",
        description="Learn to drive, and watch it learn: a run with checkpoints, the best policy so far, and figures "
        "for TensorBoard.",
    )
    train.add_argument("--headless", action="store_true", help="without a window, at the terminal")
    train.add_argument("--attach", metavar="RUN", help="see a run that learns in the background: its name or folder")
    add_film_options(train, _positive, "45 s")
    train.add_argument("--tensorboard", action="store_true", help="open TensorBoard on the run as well")
    _add_run_options(train)
    train.add_argument("--name", metavar="RUN", help="name of the run, and of its folder and models")
    train.add_argument(
        "--resume", type=Path, metavar="PATH", help="go on with a run: its name, folder or a model of it"
    )
    train.add_argument("--settings", action="store_true", help="list every setting with its default, and end")
    train.add_argument("--bridge", metavar="URL", help="learn on the cars of a bridge, as ws://localhost:9876")
    add_data_folder(train, "runs")
    train.set_defaults(run=_run_train)


def _add_learn(verbs: Any) -> None:
    """What a window starts to learn in; without help text, since nobody else needs it."""
    learn = verbs.add_parser("learn")
    learn.add_argument("folder", type=Path, metavar="FOLDER")
    learn.set_defaults(run=_run_learn)


def _add_run_options(parser: argparse.ArgumentParser) -> None:
    """What is learned, and how: see `RunConfig`."""
    parser.add_argument("--algo", choices=("ppo", "sac"), default="ppo", help="the algorithm (default: %(default)s)")
    parser.add_argument(
        "--preset", default="quick", help="settings to begin with: quick, champion, specialist (default: %(default)s)"
    )
    parser.add_argument(
        "--track", nargs="+", metavar="CIRCUIT", help="circuits to learn on; of several, each episode draws one"
    )
    parser.add_argument(
        "--timesteps", type=_positive(int), metavar="N", help="steps to learn for, of all cars together"
    )
    parser.add_argument("--seed", type=int, metavar="S", help="of everything random")
    parser.add_argument(
        "--from", dest="begin_from", metavar="MODEL", help="begin with what a model knows: a file, or a bundled name"
    )
    parser.add_argument("--num-cars", type=_positive(int), metavar="N", help="cars that learn at the same time")
    parser.add_argument("--config", type=Path, metavar="FILE", help="an ai-config.json: reward weights, episode limits")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="any setting: see train --settings"
    )
    parser.add_argument("--device", help="where torch computes: cpu, cuda or auto (default: cpu)")


def _add_evaluate(verbs: Any) -> None:
    evaluate = verbs.add_parser(
        "evaluate",
        help="measure how well agents drive",
        description="Drive saved agents: laps, cleanliness, reward. The first episode is from the standing start, the "
        "others start elsewhere on the circuit.",
    )
    evaluate.add_argument("models", nargs="+", metavar="MODEL", help="a saved PPO or SAC model (.zip), or an .onnx")
    evaluate.add_argument(
        "--track", nargs="+", metavar="CIRCUIT", help="where to drive (default: all bundled circuits)"
    )
    evaluate.add_argument(
        "--episodes", type=_positive(int), default=1, metavar="N", help="on each circuit (default: %(default)s)"
    )
    evaluate.add_argument("--seed", type=int, default=0, metavar="S", help="of the starts (default: %(default)s)")
    evaluate.add_argument("--json", action="store_true", help="print the figures as JSON")
    evaluate.set_defaults(run=_run_evaluate)


def _add_export(verbs: Any) -> None:
    export = verbs.add_parser(
        "export",
        help="write an agent as ONNX, or as a model to give away",
        description="Write an agent for other programs or other people, and check that it still drives the same.",
    )
    export.add_argument("model", type=Path, metavar="MODEL", help="a saved PPO or SAC model (.zip)")
    target = export.add_mutually_exclusive_group(required=True)
    target.add_argument(
        "--onnx",
        type=Path,
        metavar="DIR",
        help="folder for model.onnx (input obs [1, 14], normalised; output actions [1, 3]) and vecnorm_stats.json",
    )
    target.add_argument(
        "--zip",
        type=Path,
        metavar="FILE",
        help="a model for stable-baselines3 without the optimiser's memory and the paths of this machine",
    )
    export.set_defaults(run=_run_export)


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"a port is a number from 0 to 65535, not {text!r}")
    return int(text)


def _positive(kind: Callable[[str], float]) -> Callable[[str], float]:
    def convert(text: str) -> float:
        try:
            value = kind(text)
        except ValueError:
            value = 0
        if not 0 < value < math.inf:
            raise argparse.ArgumentTypeError(f"a number above 0 is needed, not {text!r}")
        return value

    return convert


def _run_window(options: argparse.Namespace) -> int:
    from racer_viewer.launch import run

    return run(options)


def _run_tracks(options: argparse.Namespace) -> int:
    from racer_viewer.tracks import draw_tracks, list_tracks

    if options.svg is None:
        list_tracks(options.circuits)
    else:
        draw_tracks(options.circuits, options.svg)
    return 0


def _run_train(options: argparse.Namespace) -> int:
    from racer_viewer.training.command import describe_settings, run

    if options.settings:
        print(describe_settings())
        return 0
    from racer_viewer.launch import check_film_options

    check_film_options(options)
    if options.record is not None:
        from racer_viewer.filming import film_run

        return film_run(options)
    if options.headless or options.bridge is not None:
        return run(options)
    from racer_viewer.launch import train

    return train(options)


def _run_learn(options: argparse.Namespace) -> int:
    from racer_viewer.training.live.learn_command import run

    run(options.folder)


def _run_evaluate(options: argparse.Namespace) -> int:
    from racer_viewer.training.evaluate_command import run

    return run(options)


def _run_export(options: argparse.Namespace) -> int:
    if options.zip is not None:
        from racer_viewer.training.share import share

        print(f"{share(options.model, options.zip)}: drives the same")
        return 0
    from racer_viewer.training.export import export

    difference = export(options.model, options.onnx)
    print(f"{options.onnx / 'model.onnx'}: the same actions to {difference:.1g}")
    return 0


def _run_bridge(options: argparse.Namespace) -> int:
    from racer_viewer.bridge import run

    return run(options)


def _run_bench_engine(options: argparse.Namespace) -> int:
    from racer_viewer.bench.engine import run

    run(quick=options.quick, as_json=options.json)
    return 0


def _run_bench_bridge(options: argparse.Namespace) -> int:
    from racer_viewer.bench.bridge import run

    return run(
        options.steps, options.warmup, options.target, options.url, options.token, options.uvloop, as_json=options.json
    )


def _run_bench_train(options: argparse.Namespace) -> int:
    if options.preview:
        from racer_viewer.bench.preview import run as measure_preview

        return measure_preview(options.rounds, options.json)
    from racer_viewer.bench.train import run

    return run(options.rounds, options.json)


def _run_bench_learn(options: argparse.Namespace) -> int:
    from racer_viewer.bench.learn import run
    from racer_viewer.training.command import config_of

    return run(config_of(options), options.seeds, options.pace, options.json)


def _run_bench_render(options: argparse.Namespace) -> int:
    from racer_viewer.bench.render import run

    return run(options.seconds, options.json)


def _run_bench_start(options: argparse.Namespace) -> int:
    from racer_viewer.bench.start import run

    return run(options.rounds, options.json)
