"""Learner on Ray RLlib: runners on one or many nodes collect rollouts, one process learns from them.

Only `settings` and `cluster` can be imported without Ray.
"""
