"""Training: configs, run folders, runs, learners and run monitors. Only `sb3`, `vec_env` and `ray` need torch."""
