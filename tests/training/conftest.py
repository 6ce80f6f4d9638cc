"""Set-up of the training tests."""

import torch

torch.set_num_threads(1)
# More threads than free cores make every test here many times slower.
