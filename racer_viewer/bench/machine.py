"""What a benchmark ran on."""

import os
import platform


def describe_machine() -> str:
    return f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
