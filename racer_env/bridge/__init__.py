"""The bridges: how an environment reaches its cars, in this process or on a server.

Nothing is imported with the package: its contract is for those too who have neither an engine nor a server.
"""
