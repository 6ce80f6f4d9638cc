"""Requirements of `run.py --with peers`."""

from tests.training.on_ray.test_ray_lock import pins


def test_with_peers_everything_else_is_the_same() -> None:
    usual, with_peers = pins("requirements.lock"), pins("requirements-peers.lock")
    assert {name for name in usual if with_peers.get(name) != usual[name]} == set()
    assert {"minari", "rl-zoo3", "sb3-contrib"} <= with_peers.keys() - usual.keys()


def test_its_versions_are_exact() -> None:
    for requirement in pins("requirements-peers.lock").values():
        (version,) = requirement.specifier
        assert version.operator == "=="
        assert requirement.url is None
