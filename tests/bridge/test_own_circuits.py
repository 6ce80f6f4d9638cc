"""Circuits of the server's owner: clients may list and use them only if the owner allows it."""

from pathlib import Path

import numpy as np
import pytest

from racer_env import RacerEnv
from racer_env.engine import load_circuit
from racer_env.errors import BridgeError
from racer_viewer.circuits.draft import Draft, Point, set_text
from racer_viewer.circuits.library import CircuitLibrary
from tests.bridge.plain_client import plain_client
from tests.servers import running_server

ROOT = Path(__file__).parents[2]


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a data folder with a circuit, a draft and a damaged file."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    library = CircuitLibrary(tmp_path / "data")
    circuit = load_circuit("track-05").circuit
    assert circuit is not None
    library.save(set_text(Draft.from_circuit(circuit), name="My Coast"))
    library.save(Draft("Knot", points=(Point(0.0, 0.0, 20.0),)))
    (library.folder / "damaged.json").write_text("{")
    return tmp_path / "data"


def test_clients_list_and_drive_own_circuits_if_the_owner_allows_it(data: Path, tmp_path: Path) -> None:
    with running_server(tmp_path, "bridge", "--own-circuits", "--data-dir", str(data)) as server:
        with plain_client(server.url) as client:
            listed = {each["id"]: each["name"] for each in client.ask({"type": "describe"})["tracks"]}
        assert list(listed)[-2:] == ["track-06", "own:my-coast"]
        assert listed["own:my-coast"] == "My Coast"
        env = RacerEnv(server.url, track_id="own:my-coast")
        remote = [env.reset(seed=3)[0], *(env.step(np.array([0.0, 1.0, 0.0], np.float32))[0] for _ in range(20))]
        assert env.track.length == pytest.approx(load_circuit("track-05").length)
        with pytest.raises(BridgeError, match="did you mean own:my-coast"):
            env.reset(options={"circuit": "own:my-coats"})
        with pytest.raises(BridgeError, match="unknown track 'own:knot'"):
            env.reset(options={"circuit": "own:knot"})
        env.close()
    local = RacerEnv(track_id=str(data / "circuits" / "my-coast.json"))
    same = [local.reset(seed=3)[0], *(local.step(np.array([0.0, 1.0, 0.0], np.float32))[0] for _ in range(20))]
    assert np.array_equal(remote, same)
    local.close()


def test_a_server_keeps_own_circuits_to_itself_by_default(data: Path, tmp_path: Path) -> None:
    with running_server(tmp_path, "bridge", "--data-dir", str(data)) as server:
        with plain_client(server.url) as client:
            listed = [each["id"] for each in client.ask({"type": "describe"})["tracks"]]
        assert not any(track_id.startswith("own:") for track_id in listed)
        for name in ("own:my-coast", str(data / "circuits" / "my-coast.json")):
            with pytest.raises(BridgeError, match="unknown track"):
                RacerEnv(server.url, track_id=name).reset()
