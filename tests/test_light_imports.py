"""What is imported with what: who asks for one part waits for no other."""

import json
import subprocess
import sys

import pytest

import racer_env

HEAVY = {"numba", "picows", "websocket", "pygame", "torch", "stable_baselines3"}


def loaded_after(statement: str) -> set[str]:
    """The modules of a fresh process."""
    code = f"{statement}; import json, sys; print(json.dumps(list(sys.modules)))"
    run = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True, timeout=120)
    return set(json.loads(run.stdout))


def test_the_package_alone_loads_nothing_of_itself() -> None:
    loaded = loaded_after("import racer_env; assert set(racer_env.__all__) <= set(dir(racer_env))")
    assert {name for name in loaded if name.startswith("racer_env")} == {"racer_env"}
    assert HEAVY.isdisjoint(loaded)


@pytest.mark.parametrize(
    "wanted",
    [
        "import racer_env.stdio.host",
        "from racer_env.stdio import StdioClient, StdioEnv",
        "from racer_env import RacingGameClient",
    ],
)
def test_who_talks_to_another_process_needs_neither_an_engine_nor_a_server(wanted: str) -> None:
    loaded = loaded_after(wanted)
    assert HEAVY.isdisjoint(loaded)
    assert {"racer_env.engine", "racer_env.bridge.server", "racer_env.games.server"}.isdisjoint(loaded)


def test_all_that_the_package_names_is_there() -> None:
    assert [getattr(racer_env, name).__name__ for name in racer_env.__all__] == racer_env.__all__
    with pytest.raises(AttributeError, match="module 'racer_env' has no attribute 'Racer'"):
        racer_env.Racer  # noqa: B018
