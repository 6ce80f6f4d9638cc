"""PPO in numpy and numba, without torch: network and gradient, rollout, update, and the learner made of them."""
