"""A helper with the plain protocol that breaks it as its argument says. It needs no package.

The argument is a JSON object: `on`, the command whose reply is broken, and the way to break it (see `misbehave`);
`says`, text for stderr at the start; `first`, a line for stdout at the start; `described`, changes to the description.
"""

import json
import os
import signal
import sys
import threading

REPLIES = {
    "describe": {"n_actions": 2, "obs_shape": [3], "obs_dtype": "float32"},
    "reset": {"obs": [0.0, 0.5, 1.0]},
    "step": {"obs": [0.0, -0.5, 1.0], "reward": 1.0, "terminated": False, "truncated": False},
    "close": {},
}


def send(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def hang() -> None:
    """Wait until the process is killed."""
    threading.Event().wait()


def misbehave(plan: dict, reply: dict) -> None:
    how = plan.get("how")
    if how == "hang":
        if plan.get("ignores"):
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        print("hanging", file=sys.stderr, flush=True)
        hang()
    if how == "die":
        print("first words", "last words", sep="\n", file=sys.stderr)
        sys.exit(3)
    if how == "flood":
        while True:
            os.write(1, b"x" * 65536)
    if how == "lines":
        os.write(1, b'{"ok":true}\n' * 300)  # in one write, which a pipe takes as a whole
        hang()
    if how == "twice":
        send(json.dumps(reply))
    if how == "stderr":
        sys.stderr.write("a word\n" * 200_000 + "x" * 2_000_000 + "\nthe last word\n")
    if how in ("child", "stray"):
        import subprocess

        child = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", "import threading; threading.Event().wait()"],
            start_new_session=how == "stray",
        )
        if how == "stray":
            print("left behind:", child.pid, file=sys.stderr, flush=True)
            sys.exit(3)
        reply["info"] = {"child": child.pid}
    reply.update(plan.get("change", {}))
    for name in plan.get("remove", ()):
        del reply[name]
    if "raw" in plan:
        os.write(1, bytes.fromhex(plan["raw"]))
    else:
        send(json.dumps(reply))  # writes NaN, which is not valid JSON


def main() -> None:
    plan = json.loads(sys.argv[1])
    if "says" in plan:
        print(plan["says"], file=sys.stderr, flush=True)
    if "first" in plan:
        send(plan["first"])
    for line in sys.stdin:
        command = json.loads(line)["cmd"]
        reply = {"ok": True, **REPLIES[command]}
        if command == "describe":
            reply.update(plan.get("described", {}))
        if command == plan.get("on"):
            misbehave(plan, reply)
        else:
            send(json.dumps(reply))
        if command == "close":
            return


if __name__ == "__main__":
    main()
