"""`bench` and `selftest` on the command line: what can be measured, and whether all works."""

from __future__ import annotations

import argparse
from typing import Any

from racer_viewer.commands.training import add_run_options
from racer_viewer.commands.values import positive


def add_measuring_commands(verbs: Any) -> None:
    _add_bench(verbs)
    selftest = verbs.add_parser(
        "selftest",
        help="try whether everything works here",
        description="Try the engine, an agent, a picture, a film, a bridge and a short training; exit code 1 if one "
        "of them fails.",
    )
    selftest.add_argument("--json", action="store_true", help="print the outcome as JSON")
    selftest.set_defaults(run=_run_selftest)


def _add_bench(verbs: Any) -> None:
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
        "--steps", type=positive(int), default=10_000, metavar="N", help="steps of each kind (default: %(default)s)"
    )
    over_bridge.add_argument(
        "--warmup", type=positive(int), default=200, metavar="N", help="steps before those (default: %(default)s)"
    )
    over_bridge.add_argument(
        "--target",
        type=positive(float),
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
        "--rounds", type=positive(int), default=9, metavar="N", help="rollouts of each (default: %(default)s)"
    )
    learning.add_argument("--json", action="store_true", help="print the figures as JSON")
    learning.add_argument(
        "--preview",
        action="store_true",
        help="measure instead what the live picture costs, beside the same run without",
    )
    learning.add_argument(
        "--engine", choices=("sb3", "ray"), default="sb3", help="ray: compare it with Ray on 1 and 2 runners"
    )
    learning.set_defaults(run=_run_bench_train)

    drawing = subjects.add_parser(
        "render",
        help="how long a picture takes",
        description="Draw races of 1, 8, 64 and 256 cars on the smallest and the largest circuit, at 60 pictures a "
        "second: how long they take, layer by layer, and how many are late. Exit code 1 if 8 cars take too long.",
    )
    drawing.add_argument(
        "--seconds", type=positive(float), default=60.0, metavar="S", help="of 8 cars; others a sixth (default: 60)"
    )
    drawing.add_argument("--json", action="store_true", help="print the figures as JSON")
    drawing.set_defaults(run=_run_bench_render)

    start = subjects.add_parser(
        "start",
        help="how long until the menu is on screen",
        description="From the start of the process to the first picture, against a bare window in the same run.",
    )
    start.add_argument("--rounds", type=positive(int), default=9, metavar="N", help="(default: %(default)s)")
    start.add_argument("--json", action="store_true", help="print the figures as JSON")
    start.set_defaults(run=_run_bench_start)

    from_nothing = subjects.add_parser(
        "learn",
        help="how long it takes to learn a circuit",
        description="Learn from nothing with several seeds: seconds and steps to the first clean lap, and to a pace. "
        "The exit code is 1 if a seed reaches it not.",
    )
    from_nothing.add_argument(
        "--seeds", type=positive(int), default=5, metavar="N", help="how many (default: %(default)s)"
    )
    from_nothing.add_argument(
        "--pace", type=positive(float), metavar="S", help="flying lap in seconds (default: the existing agents')"
    )
    from_nothing.add_argument("--json", action="store_true", help="print the figures as JSON")
    add_run_options(from_nothing)
    from_nothing.set_defaults(run=_run_bench_learn)

    games = subjects.add_parser(
        "games",
        help="how fast games over TCP answer",
        description="State requests per second and their latency, with and without frames, for 1 and 6 games, and "
        "how steadily these tick; against raw TCP in the same run.",
    )
    games.add_argument(
        "--seconds", type=positive(float), default=5.0, metavar="S", help="of each kind (default: %(default)g)"
    )
    games.add_argument("--json", action="store_true", help="print the figures as JSON")
    games.set_defaults(run=_run_bench_games)


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
    if options.preview and options.engine == "ray":
        from racer_env.errors import RacerError

        raise RacerError("--preview and --engine ray are two measurements: ask for one of them")
    if options.preview:
        from racer_viewer.bench.preview import run as measure_preview

        return measure_preview(options.rounds, options.json)
    if options.engine == "ray":
        from racer_viewer.training.ray.cluster import check_ray

        check_ray()
        from racer_viewer.bench.ray import run as measure_ray

        return measure_ray(options.rounds, options.json)
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


def _run_bench_games(options: argparse.Namespace) -> int:
    from racer_viewer.bench.games import run

    return run(options.seconds, options.json)


def _run_selftest(options: argparse.Namespace) -> int:
    from racer_viewer.selftest.run import run

    return run(options.json)
