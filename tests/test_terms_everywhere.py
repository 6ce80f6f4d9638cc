"""Reward terms in environments, over the bridge, in metrics, and on servers that do not know them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv
from stable_baselines3.common.vec_env import DummyVecEnv

from racer_env import RacerEnv, RacerVectorEnv
from racer_env.bridge.client import BridgeClient, RemoteBatch
from racer_env.bridge.embedded import EmbeddedBatch, EmbeddedBridge
from racer_env.bridge.interface import COMPONENT_KEYS, STEP_KEYS, BatchStep, Scenario
from racer_env.engine import ANYWHERE, parse_config
from racer_env.engine.formulas import MAX_OPERATIONS
from racer_env.errors import BridgeError, ConfigError, ContractError
from racer_viewer.training.vec_env import SB3VecEnv
from tests.bridge.conftest import StartBridge, running_bridge
from tests.bridge.old_server import old_server
from tests.bridge.plain_client import PlainClient, plain_client
from tests.servers import RunningServer

TERMS = {"smooth": "-0.05 * abs(steer_change)", "bend": "0.001 * speed * abs(curvature_50)"}
CONTENT = {"weights": {"speedBonus": 0.01}, "episode": {"maxSteps": 60}, "terms": TERMS}
CONFIG = parse_config(CONTENT)
SCENARIO = Scenario(config=CONFIG, start=ANYWHERE)
KEYS = (*COMPONENT_KEYS, *TERMS)


@pytest.fixture(scope="module")
def bridge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with running_bridge(tmp_path_factory.mktemp("bridge")) as running:
        yield running


@pytest.fixture
def client(bridge: RunningServer) -> Iterator[PlainClient]:
    with plain_client(bridge.url) as client:
        yield client


def actions(count: int, seed: int = 0) -> Iterator[np.ndarray]:
    chance = np.random.default_rng(seed)
    for _ in range(100):
        yield chance.uniform((-1.0, 0.2, 0.0), (1.0, 1.0, 0.3), (count, 3)).astype(np.float32)


def test_the_info_of_a_step_has_the_terms_last_and_they_add_to_the_reward() -> None:
    env = RacerEnv(config=CONTENT, start=ANYWHERE)
    _, info = env.reset(seed=1)
    assert tuple(info)[-2:] == tuple(TERMS)
    assert [info[name] for name in TERMS] == [0.0, 0.0]
    for (action,) in actions(1):
        _, reward, *_, info = env.step(action)
        assert tuple(info) == (*STEP_KEYS, *TERMS)
        assert reward == pytest.approx(sum(info[key] for key in KEYS), abs=1e-12)
    assert env.component_keys == KEYS
    _, info = env.reset(options={"config": {}})
    assert not set(TERMS) & set(info)
    assert tuple(env.step(action)[4]) == STEP_KEYS


def test_a_vector_environment_has_the_columns_of_single_ones() -> None:
    def make() -> gymnasium.Env[Any, Any]:
        return RacerEnv(config=CONTENT, start=ANYWHERE)

    ours = RacerVectorEnv(3, config=CONTENT, start=ANYWHERE)
    theirs = SyncVectorEnv([make] * 3, autoreset_mode="SameStep")
    (_, own), (_, other) = ours.reset(seed=4), theirs.reset(seed=4)
    for action in actions(3):
        assert own.keys() == other.keys()
        for key in TERMS:
            np.testing.assert_array_equal(own[key], other[key])
            np.testing.assert_array_equal(own[f"_{key}"], other[f"_{key}"])
        if "final_info" in own:
            for key in TERMS:
                np.testing.assert_array_equal(own["final_info"][key], other["final_info"][key])
        _, rewards, _, _, own = ours.step(action)
        _, others, _, _, other = theirs.step(action)
        np.testing.assert_array_equal(rewards, others)


@pytest.mark.parametrize("telemetry", [False, True])
def test_a_car_over_the_bridge_is_paid_like_one_in_this_process(bridge: RunningServer, telemetry: bool) -> None:
    own, client = EmbeddedBridge(), BridgeClient(bridge.url, telemetry=telemetry)
    own.reset(SCENARIO, 3)
    client.reset(SCENARIO, 3)
    for (action,) in actions(1):
        expected, actual = own.step(action), client.step(action)
        assert actual.reward == expected.reward
        assert actual.info == expected.info
        if telemetry:
            assert client.car["components"].tolist() == own.car["components"].tolist()
            assert client.car["components"][6:8].any()
    plain = Scenario(start=ANYWHERE)
    client.reset(plain, 3)
    assert tuple(client.step(action).info) == STEP_KEYS
    client.close()


def test_a_batch_over_the_bridge_is_paid_like_one_in_this_process(bridge: RunningServer) -> None:
    own, remote = EmbeddedBatch(5), RemoteBatch(5, bridge.url)
    own.reset(SCENARIO, 3)
    remote.reset(SCENARIO, 3)
    ended = 0
    for action in actions(5):
        expected, actual = own.step(action), remote.step(action)
        assert actual.components.shape == (5, 8)
        np.testing.assert_array_equal(actual.components, expected.components)
        np.testing.assert_array_equal(actual.rewards, expected.rewards)
        ended += len(actual.ended)
    assert ended == 5
    assert remote.reset(Scenario(), 1).components.shape == (5, 6)
    remote.close()


def test_a_vector_environment_over_the_bridge_has_the_terms(bridge: RunningServer) -> None:
    env = RacerVectorEnv(4, bridge.url, config=CONTENT, start=ANYWHERE)
    env.reset(seed=0)
    for action in actions(4):
        _, rewards, *_, infos = env.step(action)
        if "final_info" not in infos:
            np.testing.assert_allclose(rewards, sum(infos[key] for key in KEYS), atol=1e-12)
    env.close()


def test_an_old_server_is_refused_before_it_would_ignore_the_terms() -> None:
    with old_server() as server:
        client = BridgeClient(server.url)
        with pytest.raises(BridgeError, match="does not support 'terms', which a reward with terms needs"):
            client.reset(Scenario(config=CONFIG))
        client.reset(Scenario())
        assert "terms" not in server.requests[-1]["config"]


def test_an_old_client_sees_no_difference(client: PlainClient) -> None:
    client.ask({"type": "reset", "config": {"weights": {"progress": 1.0}}})
    assert tuple(client.step([0.0, 1.0, 0.0])["info"]) == STEP_KEYS
    described = client.ask({"type": "describe"})
    assert described["rewardKeys"] == [*COMPONENT_KEYS]
    assert described["stepInfoKeys"] == [*STEP_KEYS]
    assert "terms" in described["capabilities"]


def test_a_plain_client_gets_the_terms_in_the_info(client: PlainClient) -> None:
    client.ask({"type": "reset", "config": CONTENT})
    info = client.step([1.0, 1.0, 0.0])["info"]
    assert tuple(info) == (*STEP_KEYS, *TERMS)
    assert info["smooth"] < 0.0


HOSTILE = [
    {"own": "__import__('os')"},
    {"own": "speed.real"},
    {"own": "(" * 10_000},
    {"own": "1+" * 20_000 + "1"},
    {"own": ["speed"]},
    {"own": {"speed": 1}},
    {"x" * 1000: "1"},
    {"": ""},
    {"\u202eown": "1"},
    {f"t{number}": "1" for number in range(500)},
    {"progress": "1"},
    [["own", "1"]],
    "speed",
    17,
]


@pytest.mark.parametrize("terms", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize("kind", ["reset", "batch_reset"])
def test_hostile_terms_are_refused_in_one_line_and_the_connection_stays_usable(
    client: PlainClient, kind: str, terms: Any
) -> None:
    client.reset()
    reply = client.ask({"type": kind, "config": {"terms": terms}})
    assert reply["type"] == "error"
    assert "terms" in reply["message"]
    assert reply["message"].isprintable()
    assert len(reply["message"]) < 400
    assert client.step([0.0, 1.0, 0.0])["info"]["stepCount"] == 1


def test_the_place_of_an_error_comes_back_over_the_bridge(client: PlainClient) -> None:
    message = client.ask({"type": "reset", "config": {"terms": {"own": "2 * sped"}}})["message"]
    assert message == "config.terms.own: column 5: unknown quantity 'sped'; did you mean speed?"


def test_the_most_expensive_terms_keep_a_server_answering(start_bridge: StartBridge) -> None:
    """The largest batch with the largest program of the slowest operation."""
    formula = " + ".join(["2.5 ** speed"] * 20)
    with start_bridge() as bridge:
        batch = RemoteBatch(1024, bridge.url)
        terms = {f"t{number}": formula for number in range(MAX_OPERATIONS // 39)}
        batch.reset(Scenario(config=parse_config({"terms": terms})), 0)
        with plain_client(bridge.url) as other:
            other.reset()
            for action in actions(1024):
                batch.step(action)
                assert other.step([0.0, 1.0, 0.0])["type"] == "step_result"
        batch.close()


@pytest.fixture
def start_bridge(tmp_path: Path) -> StartBridge:
    return lambda *arguments: running_bridge(tmp_path, *arguments)


def distorted(step: BatchStep) -> BatchStep:
    step.components[1, 7] = np.nan
    return step


def test_terms_that_are_not_finite_numbers_are_refused_by_the_client() -> None:
    from racer_env.bridge.batch_format import BatchContract, decode_result, encode_result

    batch, contract = EmbeddedBatch(3), BatchContract()
    first = bytearray(encode_result(batch.reset(SCENARIO, 0)))
    contract.reset(decode_result(first, 3, 8), None)  # type: ignore[arg-type]
    step = bytearray(encode_result(batch.step(np.ones((3, 3)))))
    with pytest.raises(ContractError, match="bytes do not fit"):
        decode_result(bytes(step), 3)
    with pytest.raises(ContractError, match="components"):
        contract.step(distorted(decode_result(step, 3, 8)))  # type: ignore[arg-type]


def test_stable_baselines_gets_the_terms_in_every_info() -> None:
    ours, theirs = SB3VecEnv(RacerVectorEnv(3, config=CONTENT)), DummyVecEnv([lambda: RacerEnv(config=CONTENT)] * 3)
    for env in (ours, theirs):
        env.seed(1)
        env.reset()
    for action in actions(3):
        (_, rewards, _, own), (_, others, _, other) = ours.step(action), theirs.step(action)
        np.testing.assert_array_equal(rewards, others)
        for one, two in zip(own, other, strict=True):
            assert set(two) <= set(one)
            assert {key: one[key] for key in KEYS} == {key: two[key] for key in KEYS}
    assert ours.reset_infos[0]["smooth"] == 0.0


def test_a_config_file_with_terms_is_loaded(tmp_path: Path) -> None:
    path = tmp_path / "ai-config.json"
    path.write_text(json.dumps(CONTENT))
    env = RacerEnv(config_path=str(path))
    env.reset(seed=0)
    assert "bend" in env.step(np.zeros(3, np.float32))[4]
    path.write_text(json.dumps({"terms": {"own": "2 * sped"}}))
    with pytest.raises(ConfigError, match=r"ai-config.json: config.terms.own: column 5: unknown quantity 'sped'"):
        RacerEnv(config_path=str(path))
