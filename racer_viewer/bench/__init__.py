"""Speed, measured on the user's machine: always as ratios against something named in the same run."""
