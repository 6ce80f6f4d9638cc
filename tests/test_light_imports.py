"""Light imports: a part of the package does not import the others."""

import json
import subprocess
import sys

import pytest

import racer_env

HEAVY = {"numba", "picows", "websocket", "pygame", "torch", "stable_baselines3"}


def loaded_after(statement: str) -> set[str]:
    """Return the modules that a fresh process has loaded."""
    code = f"{statement}; import json, sys; print(json.dumps(list(sys.modules)))"
    run = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True, timeout=120)
    return set(json.loads(run.stdout))


def test_the_package_alone_loads_none_of_its_modules() -> None:
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
def test_clients_of_other_processes_import_neither_the_engine_nor_a_server(wanted: str) -> None:
    loaded = loaded_after(wanted)
    assert HEAVY.isdisjoint(loaded)
    assert {"racer_env.engine", "racer_env.bridge.server", "racer_env.games.server"}.isdisjoint(loaded)


def test_all_names_of_the_package_can_be_imported() -> None:
    assert [getattr(racer_env, name).__name__ for name in racer_env.__all__] == racer_env.__all__
    with pytest.raises(AttributeError, match="module 'racer_env' has no attribute 'Racer'"):
        racer_env.Racer  # noqa: B018
