"""The racing environment. `racer_env.engine` simulates; it needs neither a window nor a learner."""
