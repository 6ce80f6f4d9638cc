"""Files that are not a racing agent: the error says what they are and what is supported."""

import io
import json
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3 import DDPG, DQN, PPO, SAC, TD3
from stable_baselines3.common.torch_layers import FlattenExtractor
from torch import nn

from racer_env.errors import RacerError
from racer_viewer.agents import AgentError, load_agent
from racer_viewer.agents.sb3_model import SUPPORTED
from tests.agents.models import ACTION_SPACE, Drift, some_observations, trained
from tests.agents.zips import description, pack, rewritten, tensors, unpack

SMALL = {"net_arch": [4]}


class Spaces(gymnasium.Env[Any, Any]):
    """An environment of which only the spaces matter."""

    def __init__(self, observations: Any = 14, actions: Any = ACTION_SPACE) -> None:
        is_size = isinstance(observations, int)
        self.observation_space = spaces.Box(-1, 1, (observations,), np.float32) if is_size else observations
        self.action_space = spaces.Box(-1, 1, (actions,), np.float32) if isinstance(actions, int) else actions


class Doubled(FlattenExtractor):
    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        return 2.0 * super().forward(observations)


class OwnPolicy(PPO.policy_aliases["MlpPolicy"]):  # type: ignore[name-defined, misc]
    """Does as it likes."""


IMAGE = spaces.Box(0, 255, (36, 36, 3), np.uint8)
SEVERAL = spaces.Dict({"rays": spaces.Box(0, 1, (9,)), "car": spaces.Box(-1, 1, (5,))})
OFF_POLICY = {"buffer_size": 10}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: PPO("MlpPolicy", Spaces(15), policy_kwargs=dict(SMALL)),
            "takes 15 observations; a racing agent takes 14",
        ),
        (lambda: SAC("MlpPolicy", Spaces(56), policy_kwargs=dict(SMALL), **OFF_POLICY), "takes 56 observations"),
        (lambda: PPO("MlpPolicy", Spaces(14, 2), policy_kwargs=dict(SMALL)), "gives 2 actions; a racing agent gives 3"),
        (lambda: SAC("MlpPolicy", Spaces(14, 4), policy_kwargs=dict(SMALL), **OFF_POLICY), "gives 4 actions"),
        (
            lambda: PPO("MlpPolicy", Spaces(14, spaces.Discrete(9)), policy_kwargs=dict(SMALL)),
            rf"its actions are .*Discrete.*, not a Box; {SUPPORTED}",
        ),
        (
            lambda: DQN("MlpPolicy", Spaces(14, spaces.Discrete(9)), policy_kwargs=dict(SMALL), **OFF_POLICY),
            rf"is a DQN model with a policy of 'stable_baselines3\.dqn\.policies\.DQNPolicy'; {SUPPORTED}",
        ),
        (
            lambda: TD3("MlpPolicy", Spaces(), policy_kwargs=dict(SMALL), **OFF_POLICY),
            f"a TD3 or DDPG model .*; {SUPPORTED}",
        ),
        (
            lambda: DDPG("MlpPolicy", Spaces(), policy_kwargs=dict(SMALL), **OFF_POLICY),
            f"a TD3 or DDPG model .*{SUPPORTED}",
        ),
        (
            lambda: PPO("CnnPolicy", Spaces(IMAGE), policy_kwargs={"features_extractor_kwargs": {"features_dim": 4}}),
            f"a CnnPolicy, which looks at pictures .*ActorCriticCnnPolicy.*{SUPPORTED}",
        ),
        (
            lambda: PPO("MultiInputPolicy", Spaces(SEVERAL), policy_kwargs=dict(SMALL)),
            f"a MultiInputPolicy, which takes several inputs .*{SUPPORTED}",
        ),
        (
            lambda: SAC("MultiInputPolicy", Spaces(SEVERAL), policy_kwargs=dict(SMALL), **OFF_POLICY),
            f"a MultiInputPolicy, which takes several inputs .*{SUPPORTED}",
        ),
        (
            lambda: PPO("MlpPolicy", Spaces(), policy_kwargs={"activation_fn": nn.Softplus, **SMALL}),
            "its activation is .*Softplus.*; supported are Tanh, ReLU, LeakyReLU, ELU, SiLU",
        ),
        (
            lambda: PPO("MlpPolicy", Spaces(), policy_kwargs={"activation_fn": lambda: nn.LeakyReLU(0.3), **SMALL}),
            "its activation is .*lambda.*; supported are",
        ),
        (
            lambda: PPO("MlpPolicy", Spaces(), policy_kwargs={"features_extractor_class": Doubled, **SMALL}),
            f"has a features extractor of its own .*Doubled.*; {SUPPORTED}",
        ),
        (
            lambda: PPO(OwnPolicy, Spaces(), policy_kwargs=dict(SMALL)),
            f"a policy of '.*test_refusals'; {SUPPORTED}",
        ),
    ],
)
def test_models_of_another_kind_are_refused_by_name(make: Any, message: str, tmp_path: Path) -> None:
    make().save(tmp_path / "other.zip")
    with pytest.raises(AgentError, match=rf"other\.zip: .*{message}"):
        load_agent(tmp_path / "other.zip")


@pytest.fixture
def model(folder: Path) -> Path:
    return trained("ppo-relu", folder).path


def test_a_recurrent_policy_is_refused_by_name(model: Path, tmp_path: Path) -> None:
    def change(fields: dict[str, Any]) -> None:
        fields["policy_class"] = {
            "__module__": "sb3_contrib.common.recurrent.policies",
            "__init__": "<function RecurrentActorCriticPolicy.__init__ at 0x7f0000000000>",
        }

    recurrent = rewritten(model, tmp_path / "recurrent.zip", data=description(change))
    with pytest.raises(AgentError, match=r"a recurrent policy, which has a memory .*RecurrentActorCriticPolicy"):
        load_agent(recurrent)


def test_the_error_is_one_of_the_project() -> None:
    assert issubclass(AgentError, RacerError)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not a zip file"),
        (b"hello" * 1000, "is not a zip file"),
        (pack({"readme.txt": b"hello"}), f"is a zip file, but not a model of stable-baselines3; {SUPPORTED}"),
        (pack({"data": b"{}", "policy.pth": b""}), "is a model with a policy of"),
        (pack({"data": b"[]", "policy.pth": b""}), "does not describe a model"),
        (pack({"data": b"\xff", "policy.pth": b""}), "is not JSON"),
        (pack({"data": b"[" * 100_000, "policy.pth": b""}), "is not JSON"),
    ],
)
def test_files_that_are_no_model_are_refused(content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "file.zip").write_bytes(content)
    with pytest.raises(AgentError, match=rf"file\.zip: .*{message}"):
        load_agent(tmp_path / "file.zip")


def test_a_truncated_model_is_refused(model: Path, tmp_path: Path) -> None:
    data = model.read_bytes()
    for length in (10, len(data) // 2, len(data) - 5):
        (tmp_path / "short.zip").write_bytes(data[:length])
        with pytest.raises(AgentError, match=r"short\.zip: is a damaged or truncated zip file"):
            load_agent(tmp_path / "short.zip")


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(AgentError, match=r"nothing\.zip: there is no such file"):
        load_agent(tmp_path / "nothing.zip")
    with pytest.raises(AgentError, match="is a folder"):
        load_agent(tmp_path)
    with pytest.raises(AgentError, match=r"nothing\.pkl: there is no such file"):
        load_agent(tmp_path / "nothing.zip", stats=tmp_path / "nothing.pkl")
    for impossible in ("", "x" * 5000, "a\0b"):
        with pytest.raises(AgentError, match=r"no such file|is a folder"):
            load_agent(impossible)


def test_the_ending_zip_can_be_left_out(model: Path) -> None:
    assert load_agent(str(model.with_suffix(""))).info.path == model


def legacy(data: bytes) -> bytes:
    buffer = io.BytesIO()
    torch.save(torch.load(io.BytesIO(data)), buffer, _use_new_zipfile_serialization=False)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (legacy, "is in the format of torch before 1.6; load and save the model with a newer torch"),
        (lambda data: b"x" + data[1:], "policy.pth: is not a zip file|damaged"),
        (lambda data: pack({"a": data}), "is not a torch file"),
        (tensors(byteorder=b"middle"), "byte order"),
        (tensors(storage_3=lambda data: data[:-4]), "larger than its storage"),
        (tensors(storage_3=lambda data: data[:-1]), "is damaged"),
        (tensors(storage_3=lambda data: np.full(len(data) // 4, np.nan, np.float32).tobytes()), "not finite"),
        (tensors(pickle=b"\x80\x02}."), "has no tensor"),
        (tensors(pickle=b"\x80\x02K\x01."), "not of named tensors"),
        (tensors(pickle=b"\x80\x02}X\x01\x00\x00\x00aK\x01s."), "'a' is not a tensor"),
    ],
)
def test_tensors_that_cannot_be_read_are_refused(change: Any, message: str, model: Path, tmp_path: Path) -> None:
    with pytest.raises(AgentError, match=rf"a\.zip: policy\.pth: .*{message}"):
        load_agent(rewritten(model, tmp_path / "a.zip", policy_pth=change))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"new.weight": torch.zeros(2, 2)}, "parts beyond an MlpPolicy: 'new.weight'"),
        ({"mlp_extractor.policy_net.0.bias": None}, "has no tensor 'mlp_extractor.policy_net.0.bias'"),
        ({"mlp_extractor.policy_net.1.weight": torch.ones(32)}, "more than fully connected layers"),
        ({"mlp_extractor.policy_net.2.weight": torch.zeros(16, 31)}, "do not fit together"),
        ({"mlp_extractor.policy_net.2.weight": torch.zeros(16)}, "not a fully connected layer"),
        ({"value_net.weight": torch.zeros(2, 8), "value_net.bias": torch.zeros(2)}, "value function does not fit"),
        ({"log_std": torch.zeros(5, 3)}, "noise of .* does not fit"),
        ({"log_std": torch.zeros(3, dtype=torch.int64)}, "LongStorage"),
        ({"log_std": torch.zeros(3).expand(3)}, None),
        ({"log_std": torch.zeros(1).expand(3)}, "larger than its storage"),
    ],
)
def test_tensors_that_do_not_make_a_policy_are_refused(
    changes: dict[str, Any], message: str | None, model: Path, tmp_path: Path
) -> None:
    def change(data: bytes) -> bytes:
        state = dict(torch.load(io.BytesIO(data))) | changes
        buffer = io.BytesIO()
        torch.save({name: tensor for name, tensor in state.items() if tensor is not None}, buffer)
        return buffer.getvalue()

    path = rewritten(model, tmp_path / "a.zip", policy_pth=change)
    if message is None:
        load_agent(path)
        return
    with pytest.raises(AgentError, match=message):
        load_agent(path)


def same_weights(data: bytes, **options: Any) -> bytes:
    """The same state dict in other clothes: what other versions of torch, or other machines, write."""
    state = torch.load(io.BytesIO(data))
    buffer = io.BytesIO()
    torch.save({name: options["wrap"](tensor) for name, tensor in state.items()}, buffer)
    return buffer.getvalue()


def big_endian(data: bytes) -> bytes:
    members = unpack(data)
    for name, content in members.items():
        if "/data/" in name:
            members[name] = np.frombuffer(content, "<f4").astype(">f4").tobytes()
    return pack(members | {"archive/byteorder": b"big"})


def without_extras(data: bytes) -> bytes:
    """Rewrite a file as torch 1.6 did: tensors, a pickle and a version, in a folder of another name."""
    members = {name: content for name, content in unpack(data).items() if "/data" in name or name.endswith("version")}
    return pack({name.replace("archive/", "policy/"): content for name, content in members.items()})


@pytest.mark.parametrize(
    "change",
    [
        big_endian,
        without_extras,
        lambda data: same_weights(data, wrap=nn.Parameter),
        lambda data: same_weights(data, wrap=lambda tensor: tensor.double()),
        lambda data: same_weights(data, wrap=lambda tensor: tensor.T.contiguous().T if tensor.ndim == 2 else tensor),
        lambda data: same_weights(data, wrap=lambda tensor: torch.cat((tensor, tensor))[len(tensor) :]),
    ],
    ids=["big endian", "torch 1.6", "parameters", "doubles", "transposed", "a part of a storage"],
)
def test_the_same_weights_in_other_clothes_drive_the_same(change: Any, model: Path, tmp_path: Path) -> None:
    observations = some_observations(100)
    stats = model.with_name(f"{model.stem}_vecnormalize.pkl")
    changed = load_agent(rewritten(model, tmp_path / "a.zip", policy_pth=change), stats=stats)
    np.testing.assert_array_equal(changed.act(observations), load_agent(model).act(observations))


def test_a_zip_that_was_packed_again_drives_the_same(model: Path, tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(pack(unpack(model.read_bytes()), packing=8))
    agent = load_agent(tmp_path / "a.zip", stats=model.with_name(f"{model.stem}_vecnormalize.pkl"))
    observations = some_observations(100)
    np.testing.assert_array_equal(agent.act(observations), load_agent(model).act(observations))
    (tmp_path / "b.zip").write_bytes(pack(unpack(model.read_bytes()), packing=14))
    with pytest.raises(AgentError, match="packed in an unusual way"):
        load_agent(tmp_path / "b.zip")


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("low", "[-1. 0.]", "action limits"),
        ("low", "[a b c]", "not numbers"),
        ("low", "[2. 2. 2.]", "action limits"),
        ("high", "[nan nan nan]", "action limits"),
        (":type:", "<class 'gymnasium.spaces.multi_discrete.MultiDiscrete'>", "not a Box"),
    ],
)
def test_action_limits_that_make_no_sense_are_refused(
    field: str, value: str, message: str, model: Path, tmp_path: Path
) -> None:
    def change(fields: dict[str, Any]) -> None:
        fields["action_space"][field] = value

    with pytest.raises(AgentError, match=message):
        load_agent(rewritten(model, tmp_path / "a.zip", data=description(change)))


def test_actions_without_limits_cannot_be_squashed(folder: Path, tmp_path: Path) -> None:
    def change(fields: dict[str, Any]) -> None:
        fields["action_space"]["high"] = "[inf inf inf]"

    sac, ppo = trained("sac-tanh", folder), trained("ppo", folder)
    with pytest.raises(AgentError, match="no limits"):
        load_agent(rewritten(sac.path, tmp_path / "a.zip", data=description(change)))
    load_agent(rewritten(ppo.path, tmp_path / "a.zip", data=description(change)))


def test_actions_keep_to_the_limits_of_their_own_model(tmp_path: Path) -> None:
    class Narrow(Drift):
        action_space = spaces.Box(np.array([-0.5, 0.1, 0.0], np.float32), np.array([0.5, 0.9, 0.2], np.float32))

    observations = 100.0 * some_observations(500)
    for algorithm in (PPO, SAC):
        model = algorithm("MlpPolicy", Narrow(), policy_kwargs=dict(SMALL), seed=0, device="cpu")
        with torch.no_grad():
            for parameter in model.policy.parameters():
                parameter += 0.3 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1))
        model.save(tmp_path / "a.zip")
        expected = model.predict(observations, deterministic=True)[0]
        actions = load_agent(tmp_path / "a.zip").act(observations)
        np.testing.assert_allclose(actions, expected, rtol=0, atol=1e-5)
        assert (actions >= Narrow.action_space.low - 1e-6).all()
        assert (actions <= Narrow.action_space.high + 1e-6).all()


def test_a_file_without_an_action_space_gets_the_limits_of_the_car(model: Path, tmp_path: Path) -> None:
    def change(fields: dict[str, Any]) -> None:
        del fields["action_space"], fields["num_timesteps"]

    stats = model.with_name(f"{model.stem}_vecnormalize.pkl")
    agent = load_agent(rewritten(model, tmp_path / "a.zip", data=description(change)), stats=stats)
    assert agent.info.timesteps is None
    observations = some_observations(100)
    np.testing.assert_array_equal(agent.act(observations), load_agent(model).act(observations))


def test_values_in_values_in_values_are_refused(model: Path, tmp_path: Path) -> None:
    deep = b"[" * 800 + b"]" * 800
    for name in ("activation_fn", "features_extractor_class", "clip_mean"):
        path = rewritten(
            model,
            tmp_path / "a.zip",
            data=lambda data, name=name: data.replace(b'"activation_fn":', b'"%s": %s, "a":' % (name.encode(), deep)),
        )
        with pytest.raises(AgentError, match=r"its activation|features extractor|clip_mean"):
            load_agent(path)


def test_a_json_file_is_no_model(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps({"algo": "ppo"}))
    with pytest.raises(AgentError, match="is not a zip file"):
        load_agent(tmp_path / "a.json")
