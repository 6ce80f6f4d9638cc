"""The files of a training run beside its checkpoints, and the kinds of lines in its log."""

STORY_FILE = "live.jsonl"
"""One JSON object a line, appended; its key `what` says which of the constants below it is."""
POLICIES_FILE = "policies.bin"
SWARM_FILE = "swarm.bin"
LEARNER_FILE = "learner.json"
"""There while somebody learns, who holds a lock on it."""
LOG_FILE = "learner.log"

UPDATE, LAPS, EVENT, NETWORK, POLICY = "update", "laps", "event", "network", "policy"
"""What a line tells:

update: `steps`, `seconds`, and `values`, the figures of one update of the policy by name.
laps: `laps`, rows of steps and time [s]; `sectors`, rows of steps and the times of the thirds [s], null if not whole.
    Each row ends with the number of its circuit among those of the run, where that is known.
event: `steps`, `seconds`, `kind` and `text`; a begin has the names of its `circuits`, an end has an `outcome`, new
    weights are the whole ai-config `rewards`.
network: how the records of the policies that follow are laid out: see `policies.Layout`.
policy: `steps`, and the `offset` of its record in the file of policies.
"""

SPEED = "time/steps_per_second"
"""Name of the figure that says how fast it went since the update before."""

FINISHED, STOPPED = "finished", "stopped"
"""Outcomes of a run that ended in good order."""
