"""`train`, `evaluate` and `export` on the command line, and `learn`, which a window calls."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from racer_viewer.commands.values import add_data_folder, add_film_options, positive


def add_training_commands(verbs: Any) -> None:
    _add_train(verbs)
    _add_learn(verbs)
    _add_tune(verbs)
    _add_evaluate(verbs)
    _add_export(verbs)


def _add_train(verbs: Any) -> None:
    train = verbs.add_parser(
        "train",
        help="learn to drive",
        description="Learn to drive, and watch it learn: a run with checkpoints, the best policy so far, and figures "
        "for TensorBoard.",
    )
    train.add_argument("--headless", action="store_true", help="without a window, at the terminal")
    train.add_argument("--attach", metavar="RUN", help="see a run that learns in the background: its name or folder")
    add_film_options(train, "45 s")
    train.add_argument("--tensorboard", action="store_true", help="open TensorBoard on the run as well")
    add_run_options(train)
    train.add_argument("--name", metavar="RUN", help="name of the run, and of its folder and models")
    train.add_argument(
        "--resume", type=Path, metavar="PATH", help="go on with a run: its name, folder or a model of it"
    )
    train.add_argument("--settings", action="store_true", help="list every setting with its default, and end")
    train.add_argument(
        "--bridge",
        metavar="URL",
        help="learn on the cars of a bridge, as ws://localhost:9876; runners of Ray on those of several: URL,URL",
    )
    _add_engine_options(train)
    add_data_folder(train, "runs")
    train.set_defaults(run=_run_train)


def _add_engine_options(train: argparse.ArgumentParser) -> None:
    train.add_argument(
        "--engine",
        choices=("sb3", "ray"),
        default="sb3",
        help="what learns: stable-baselines3 in one process, or Ray RLlib in many, at the terminal (default: sb3)",
    )
    train.add_argument(
        "--address", metavar="RAY", help="of a Ray cluster: auto or ray://HOST:10001 (default: a Ray on this machine)"
    )
    train.add_argument("--runners", type=positive(int), metavar="N", help="of Ray: processes that drive (default: 1)")
    train.add_argument(
        "--cars-per-runner", type=positive(int), metavar="M", help="of Ray (default: --num-cars shared among runners)"
    )


def _add_learn(verbs: Any) -> None:
    """What a window starts to learn in; without help text, since nobody else needs it."""
    learn = verbs.add_parser("learn")
    learn.add_argument("folder", type=Path, metavar="FOLDER")
    learn.set_defaults(run=_run_learn)


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """What is learned, and how: see `RunConfig`."""
    parser.add_argument("--algo", choices=("ppo", "sac"), default="ppo", help="the algorithm (default: %(default)s)")
    parser.add_argument(
        "--preset", default="quick", help="settings to begin with: quick, champion, specialist (default: %(default)s)"
    )
    parser.add_argument("--like", type=Path, metavar="FILE", help="instead of a preset: a config.json or best.json")
    parser.add_argument(
        "--track", nargs="+", metavar="CIRCUIT", help="circuits to learn on; of several, each episode draws one"
    )
    parser.add_argument("--timesteps", type=positive(int), metavar="N", help="steps to learn for, of all cars together")
    parser.add_argument("--seed", type=int, metavar="S", help="of everything random")
    parser.add_argument(
        "--from", dest="begin_from", metavar="MODEL", help="begin with what a model knows: a file, or a bundled name"
    )
    parser.add_argument("--num-cars", type=positive(int), metavar="N", help="cars that learn at the same time")
    parser.add_argument("--config", type=Path, metavar="FILE", help="an ai-config.json: reward weights, episode limits")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="any setting: see train --settings"
    )
    parser.add_argument("--device", help="where torch computes: cpu, cuda or auto (default: cpu)")


def _add_tune(verbs: Any) -> None:
    tune = verbs.add_parser(
        "tune",
        help="search for better settings of learning, on Ray",
        description="Learn with many settings side by side (Ray Tune); what laps slower than others ends early. Leaves "
        "a table, a picture and the best settings, to train with.",
    )
    tune.add_argument(
        "--trials", type=positive(int), default=16, metavar="N", help="settings to try (default: %(default)s)"
    )
    tune.add_argument("--address", metavar="RAY", help="auto is the Ray cluster that this machine is part of")
    tune.add_argument(
        "--runners",
        type=positive(int),
        metavar="N",
        help="each trial learns as train --engine ray does, with so many processes that drive (default: in one)",
    )
    add_run_options(tune)
    add_data_folder(tune, "what was found")
    tune.set_defaults(run=_run_tune)


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
        "--episodes", type=positive(int), default=1, metavar="N", help="on each circuit (default: %(default)s)"
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


def _run_train(options: argparse.Namespace) -> int:
    from racer_viewer.training.command import describe_settings, run

    if options.settings:
        print(describe_settings())
        return 0
    from racer_viewer.launch import check_film_options

    check_film_options(options)
    _check_engine_options(options)
    _check_attach(options)
    if options.record is not None:
        from racer_viewer.app.offscreen import film_run

        return film_run(options)
    if options.headless or options.bridge is not None or options.engine == "ray":
        return run(options)
    from racer_viewer.launch import train

    return train(options)


def _check_engine_options(options: argparse.Namespace) -> None:
    from racer_env.errors import RacerError

    of_ray = {"--address": options.address, "--runners": options.runners, "--cars-per-runner": options.cars_per_runner}
    given = [name for name, value in of_ray.items() if value is not None]
    if given and options.engine != "ray":
        raise RacerError(f"{given[0]} is for --engine ray")
    if options.engine == "ray" and (options.record is not None or options.attach is not None):
        raise RacerError("--engine ray learns at the terminal: leave --record and --attach out, or the engine")


def _check_attach(options: argparse.Namespace) -> None:
    """To attach is to see a run that is there: nothing else can be asked of it."""
    others = {"--headless": options.headless, "--resume": options.resume, "--name": options.name}
    given = [name for name, value in others.items() if value]
    if options.attach is not None and given:
        from racer_env.errors import RacerError

        raise RacerError(f"--attach shows a run in a window as it is: leave out {' and '.join(given)}")


def _run_learn(options: argparse.Namespace) -> int:
    from racer_viewer.training.learn_command import run

    run(options.folder)


def _run_tune(options: argparse.Namespace) -> int:
    from racer_viewer.training.ray.tune_command import run

    return run(options)


def _run_evaluate(options: argparse.Namespace) -> int:
    from racer_viewer.training.evaluate_command import run

    return run(options)


def _run_export(options: argparse.Namespace) -> int:
    if options.zip is not None:
        from racer_viewer.training.export import share

        print(f"{share(options.model, options.zip)}: drives the same")
        return 0
    from racer_viewer.training.export import export

    difference = export(options.model, options.onnx)
    print(f"{options.onnx / 'model.onnx'}: the same actions to {difference:.1g}")
    return 0
