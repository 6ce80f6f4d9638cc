"""What the tests of learning share."""

import torch

torch.set_num_threads(1)
"""More of them than free cores would make every test here many times slower."""
