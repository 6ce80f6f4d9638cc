"""Network, rollout and update of the native learner: equal to torch and stable-baselines3 on the same numbers."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback

from racer_viewer.agents import stats_of
from racer_viewer.training.config import RunConfig, parse_run_config
from racer_viewer.training.native.network import (
    KL_DIVERGENCE,
    POLICY_LOSS,
    VALUE_LOSS,
    Minibatch,
    Parameters,
    initial_parameters,
)
from racer_viewer.training.native.rollout import Normalisation, RolloutCollector
from racer_viewer.training.native.update import DivergedError, Updater
from racer_viewer.training.sb3 import make_cars, make_env, make_model
from racer_viewer.training.vec_env import find_cars, simulation_of


def config(**values: object) -> RunConfig:
    base = {"num_cars": 6, "n_steps": 16, "batch_size": 32, "seed": 3, "net": [8, 8], "starts": "anywhere"}
    return parse_run_config({**base, **values})


def random_rows(rows: int, spread: float, seed: int) -> Minibatch:
    rng = np.random.default_rng(seed)

    def normal(*shape: int) -> NDArray[np.float32]:
        return rng.standard_normal(shape).astype(np.float32)

    log_probs = normal(rows) * np.float32(spread) - np.float32(1.5)
    return Minibatch(normal(rows, 14), normal(rows, 3), log_probs, normal(rows) * 3.0, normal(rows) * 2.0)


def torch_network(
    parameters: Parameters, activation: str, inputs: torch.Tensor
) -> tuple[dict, torch.Tensor, torch.Tensor]:
    """Evaluate the networks with torch in double precision; return its tensors, mean actions and values."""
    tensors = {
        name: torch.tensor(each, dtype=torch.float64, requires_grad=True) for name, each in parameters.tensors().items()
    }
    function, outputs = {"tanh": torch.tanh, "relu": torch.relu}[activation], []
    for net, head in (("policy_net", "action_net"), ("value_net", "value_net")):
        x = inputs
        for layer in range(len(parameters.sizes)):
            name = f"mlp_extractor.{net}.{2 * layer}"
            x = function(x @ tensors[f"{name}.weight"].T + tensors[f"{name}.bias"])
        outputs.append(x @ tensors[f"{head}.weight"].T + tensors[f"{head}.bias"])
    return tensors, outputs[0], outputs[1][:, 0]


@settings(max_examples=40, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=4),
    activation=st.sampled_from(["tanh", "relu"]),
    rows=st.integers(2, 600),
    clip=st.sampled_from([1e-3, 0.2, 10.0]),
    spread=st.sampled_from([0.01, 0.3, 2.0]),
    coefficients=st.tuples(st.sampled_from([0.0, 0.5, 1.7]), st.sampled_from([-0.1, 0.0, 0.01])),
    threads=st.integers(1, 3),
    seed=st.integers(0, 2**32 - 1),
)
def test_loss_and_gradient_equal_those_of_torch(
    sizes: list[int],
    activation: str,
    rows: int,
    clip: float,
    spread: float,
    coefficients: tuple[float, float],
    threads: int,
    seed: int,
) -> None:
    vf_coef, ent_coef = coefficients
    settings = config(net=sizes, activation=activation, clip_range=clip, vf_coef=vf_coef, ent_coef=ent_coef)
    parameters = initial_parameters(settings.net, settings.first_action, -0.4, np.random.default_rng(seed))
    parameters.flat[:] += 0.05 * np.random.default_rng(seed + 1).standard_normal(len(parameters.flat)).astype("f4")
    data, chosen = random_rows(rows, spread, seed), np.random.default_rng(seed).permutation(rows)
    updater = Updater(settings, parameters, threads)
    gradient, means = updater.gradient(data, chosen)
    updater.close()

    observations, actions, log_probs, advantages, returns = (torch.tensor(each, dtype=torch.float64) for each in data)
    tensors, mean, values = torch_network(parameters, activation, observations)
    policy = torch.distributions.Normal(mean, tensors["log_std"].exp())
    now = policy.log_prob(actions).sum(1)
    advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    ratio = (now - log_probs).exp()
    policy_loss = -torch.min(advantages * ratio, advantages * ratio.clamp(1 - clip, 1 + clip)).mean()
    value_loss = ((values - returns) ** 2).mean()
    loss = policy_loss + vf_coef * value_loss - ent_coef * policy.entropy().sum(1).mean()
    loss.backward()

    assert means[POLICY_LOSS] == pytest.approx(policy_loss.item(), rel=1e-5, abs=1e-5)
    assert means[VALUE_LOSS] == pytest.approx(value_loss.item(), rel=1e-5)
    kl = ((ratio - 1) - (now - log_probs)).mean().item()
    assert means[KL_DIVERGENCE] == pytest.approx(kl, rel=1e-4, abs=1e-6)
    theirs = {name: each.grad.numpy() for name, each in tensors.items()}
    largest = max(np.abs(each).max() for each in theirs.values())
    for name, ours in gradient.tensors().items():
        np.testing.assert_allclose(ours, theirs[name], rtol=1e-5, atol=1e-5 * largest, err_msg=name)


def same_model(settings: RunConfig) -> tuple[PPO, Parameters]:
    """Return a model of stable-baselines3, and its weights for the native learner."""
    model = make_model(settings, make_env(settings))
    assert isinstance(model, PPO)
    parameters = Parameters(settings.net)
    parameters.load({name: each.numpy() for name, each in model.policy.state_dict().items()})
    return model, parameters


def native_rollout(settings: RunConfig, parameters: Parameters) -> tuple[RolloutCollector, Normalisation]:
    cars = make_cars(settings)
    cars.seed(settings.seed)
    cars.reset()
    simulation = simulation_of(find_cars(cars))
    assert simulation is not None
    norm = Normalisation.create(settings)
    return RolloutCollector(settings, simulation, parameters, norm), norm


class BufferComparison(BaseCallback):
    """Lets stable-baselines3 take the actions of a native rollout, and compares its buffer with that rollout."""

    def __init__(self, settings: RunConfig, parameters: Parameters, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__()
        self._settings, self._monkeypatch = settings, monkeypatch
        self.rollout, self.norm = native_rollout(settings, parameters)
        self._updater, self._rng = Updater(settings, parameters), np.random.default_rng(0)
        self.compared = 0

    def _on_rollout_start(self) -> None:
        self.rollout.begin(self._rng)
        assert self.rollout.run(0, 5)
        assert self.rollout.run(5, self._settings.n_steps)
        self._updater.estimate(self.rollout.tables)
        ticks = iter(self.rollout.tables.actions.copy())

        def choose(observations: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
            actions = torch.tensor(next(ticks))
            values, log_probs, _ = self.model.policy.evaluate_actions(observations, actions)
            return actions, values, log_probs

        self._monkeypatch.setattr(self.model.policy, "forward", choose)

    def _on_step(self) -> bool:
        return True

    def _on_rollout_end(self) -> None:
        buffer, tables, updater = self.model.rollout_buffer, self.rollout.tables, self._updater
        assert tables.final_count[0] > 0
        for ours, theirs in (
            (tables.observations[:-1], buffer.observations),
            (tables.rewards, buffer.rewards),
            (tables.starts[:-1], buffer.episode_starts),
            (tables.log_probs, buffer.log_probs),
            (updater.values[:-1], buffer.values),
        ):
            np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=2e-5)
        self.compared += 1

    def compare_advantages(self) -> None:
        buffer = self.model.rollout_buffer
        for ours, theirs in ((self._updater.advantages, buffer.advantages), (self._updater.returns, buffer.returns)):
            np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=2e-5)


SHORT = {"rewards": {"episode": {"maxSteps": 5}}}


@pytest.mark.parametrize(
    "values",
    [
        SHORT,
        {**SHORT, "tracks": ["track-01", "track-06", "track-01"], "progress_in_units": True},
        {**SHORT, "starts": "line", "norm_reward": False, "activation": "relu", "net": [5]},
    ],
)
def test_rollouts_equal_the_buffer_of_stable_baselines3(
    values: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = config(**values)
    model, parameters = same_model(settings)
    comparison = BufferComparison(settings, parameters, monkeypatch)
    monkeypatch.setattr(model, "train", comparison.compare_advantages)
    model.learn(3 * settings.n_steps * settings.num_cars, comparison)  # episodes go on from one rollout to the next
    assert comparison.compared == 3
    stats, expected = comparison.norm.statistics(), stats_of(model.env)
    for ours, theirs in ((stats.observations, expected.observations), (stats.returns, expected.returns)):
        assert ours is not None
        assert theirs is not None
        assert ours.count == pytest.approx(theirs.count, rel=1e-12)
        np.testing.assert_allclose(ours.mean, theirs.mean, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(ours.var, theirs.var, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("values", [{}, {"activation": "relu", "net": [16], "ent_coef": 0.01, "batch_size": 40}])
def test_a_whole_update_gives_the_weights_of_stable_baselines3(threads: int, values: dict[str, object]) -> None:
    settings = config(n_steps=64, **values)
    model, parameters = same_model(settings)
    model.learn(settings.num_cars * settings.n_steps)  # Adam has a state, and the buffer is full
    parameters.load({name: each.numpy() for name, each in model.policy.state_dict().items()})
    rollout, _ = native_rollout(settings, parameters)
    updater, rng = Updater(settings, parameters, threads), np.random.default_rng(0)
    for name, state in zip(parameters.tensors(), model.policy.optimizer.state.values(), strict=True):
        names = {"first": "exp_avg", "second": "exp_avg_sq"}
        for ours, theirs in names.items():
            target = getattr(updater.adam, ours)
            target.load({**target.tensors(), name: state[theirs].numpy()})
        updater.adam.steps = int(state["step"])
    rollout.begin(rng)
    assert rollout.run(0, settings.n_steps)
    updater.estimate(rollout.tables)

    buffer, tables = model.rollout_buffer, rollout.tables
    buffer.reset()
    buffer.observations[:], buffer.actions[:], buffer.log_probs[:] = (
        tables.observations[:-1],
        tables.actions,
        tables.log_probs,
    )
    buffer.values[:], buffer.advantages[:], buffer.returns[:] = updater.values[:-1], updater.advantages, updater.returns
    buffer.full = True
    steps = settings.n_steps * settings.num_cars
    state = np.random.get_state()
    orders = [np.random.permutation(steps) for _ in range(settings.n_epochs)]  # of cars first, then ticks
    np.random.set_state(state)
    model.train()
    orders = [order % settings.n_steps * settings.num_cars + order // settings.n_steps for order in orders]
    metrics = updater.learn(tables, settings.final_learning_rate, orders)
    updater.close()

    theirs = {name: each.numpy() for name, each in model.policy.state_dict().items()}
    for name, ours in parameters.tensors().items():
        np.testing.assert_allclose(ours, theirs[name], rtol=1e-4, atol=1e-5, err_msg=name)
    logged = model.logger.name_to_value
    for name in (
        "value_loss",
        "policy_gradient_loss",
        "approx_kl",
        "clip_fraction",
        "explained_variance",
        "std",
        "loss",
    ):
        assert metrics[f"train/{name}"] == pytest.approx(logged[f"train/{name}"], rel=1e-3, abs=1e-4), name


def test_the_same_seed_gives_the_same_weights_to_the_last_bit_with_any_number_of_threads() -> None:
    settings = config(n_steps=128, num_cars=20, batch_size=2560)

    def learned(threads: int) -> NDArray[np.float32]:
        rng = np.random.default_rng(1)
        parameters = initial_parameters(settings.net, settings.first_action, -1.0, rng)
        rollout, _ = native_rollout(settings, parameters)
        updater = Updater(settings, parameters, threads)
        for _ in range(3):
            rollout.begin(rng)
            rollout.run(0, settings.n_steps)
            updater.update(rollout.tables, 1e-3, rng)
        updater.close()
        return parameters.flat

    first = learned(1)
    for threads in (1, 2, 2, 3, 5):
        np.testing.assert_array_equal(learned(threads), first)


def test_an_infinite_number_in_an_update_is_an_error() -> None:
    settings = config()
    parameters = initial_parameters(settings.net, settings.first_action, -1.0, np.random.default_rng(0))
    data = random_rows(20, 0.1, 0)
    data.returns[3] = np.inf
    with pytest.raises(DivergedError):
        Updater(settings, parameters).step(data, np.arange(20), 1e-3)


def test_initial_weights_are_orthogonal_with_the_gains_of_stable_baselines3() -> None:
    settings = config(net=[32, 16])
    model, _ = same_model(settings)
    ours = initial_parameters(settings.net, settings.first_action, settings.log_std, np.random.default_rng(0)).tensors()
    theirs = {name: each.numpy() for name, each in model.policy.state_dict().items()}
    assert list(ours) == list(theirs)
    for name, each in ours.items():
        assert each.shape == theirs[name].shape
        if name.endswith("weight"):
            lengths = [np.linalg.svd(weights, compute_uv=False) for weights in (each, theirs[name])]
            np.testing.assert_allclose(*lengths, rtol=1e-4)
        else:
            np.testing.assert_allclose(each, theirs[name])
