"""Bridges: the interface between an environment and its cars, in this process or on a server.

The package imports nothing, so that `validation` and `net` can be used without the engine.
"""
