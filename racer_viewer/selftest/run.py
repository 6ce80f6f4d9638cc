"""Running the checks and telling how they went."""

from __future__ import annotations

import json
import os
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from racer_viewer import __version__
from racer_viewer.bench.harness import describe_machine
from racer_viewer.runtime import is_packaged
from racer_viewer.selftest.checks import CHECKS, LeftOutError

Outcome = Literal["ok", "left out", "FAILED"]


@dataclass(frozen=True)
class Result:
    """Of one check; `told` is what was seen, or what was wrong."""

    name: str
    outcome: Outcome
    told: str
    seconds: float


def run(as_json: bool) -> int:
    """Try everything; the exit code is 1 if something failed."""
    os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
    os.environ.setdefault("SDL_AUDIODRIVER", "dummy")
    results = []
    for name in CHECKS:
        results.append(_try(name))
        if not as_json:
            print(_line(results[-1]), flush=True)
    whole = all(result.outcome != "FAILED" for result in results)
    if as_json:
        facts = {"version": __version__, "machine": describe_machine(), "packaged": is_packaged()}
        print(json.dumps({**facts, "ok": whole, "checks": [asdict(result) for result in results]}, indent=2))
    return 0 if whole else 1


def _try(name: str) -> Result:
    begin = time.perf_counter()
    outcome: Outcome
    with tempfile.TemporaryDirectory(prefix="racer-selftest-", ignore_cleanup_errors=True) as folder:
        try:
            outcome, told = "ok", CHECKS[name](Path(folder))
        except LeftOutError as reason:
            outcome, told = "left out", str(reason)
        except Exception as error:  # whatever is broken here is what the user wants to know
            outcome, told = "FAILED", f"{type(error).__name__}: {error}"
    return Result(name, outcome, told, round(time.perf_counter() - begin, 3))


def _line(result: Result) -> str:
    return f"{result.name:<10} {result.outcome:<9} {result.seconds:5.1f} s  {result.told}"
