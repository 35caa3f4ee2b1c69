"""Starts the tasks of a program as actors of Ray, which place them and end with them.

    pip install ray
    python ray_launch.py --tasks 4 -- tfrt run --cluster auto program.mlir

Each actor has a bundle of a placement group and starts the command as a child, with the variables of torchrun's form;
the first one's machine is where the tasks meet. Ray hands over addresses and status, and none of the tasks' values.
"""

import argparse
import ctypes
import os
import secrets
import signal
import socket
import subprocess
import sys

import ray
from ray.util.placement_group import placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy


def end_with_parent():
    """Lets the system end the child when the actor is gone, however that ended."""
    PR_SET_PDEATHSIG = 1
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


@ray.remote
class Task:
    def address(self):
        """Returns this machine's address and a port that is free now."""
        host = ray.util.get_node_ip_address()
        with socket.socket() as free:
            free.bind((host, 0))
            return host, free.getsockname()[1]

    def run(self, command, variables):
        """Runs the command to its end and returns its status, output and messages."""
        done = subprocess.run(
            command,
            env={**os.environ, **variables},
            preexec_fn=end_with_parent,
            capture_output=True,
            text=True,
        )
        return done.returncode, done.stdout, done.stderr


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", type=int, default=2, help="how many tasks")
    parser.add_argument("--cpus", type=float, default=1, help="processors of each")
    parser.add_argument("--strategy", default="PACK", help="PACK, SPREAD, STRICT_PACK or STRICT_SPREAD")
    parser.add_argument("command", nargs="+", help="what each task runs, behind --")
    options = parser.parse_args()
    ray.init(include_dashboard=False, log_to_driver=False)
    bundles = [{"CPU": options.cpus}] * options.tasks
    group = placement_group(bundles, strategy=options.strategy)
    ray.get(group.ready(), timeout=60)

    def start(rank):
        place = PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=rank)
        return Task.options(num_cpus=options.cpus, scheduling_strategy=place).remote()

    tasks = [start(rank) for rank in range(options.tasks)]
    host, port = ray.get(tasks[0].address.remote())
    shared = {
        "WORLD_SIZE": str(options.tasks),
        "MASTER_ADDR": host,
        "MASTER_PORT": str(port),
        "TFRT_CLUSTER_SECRET": secrets.token_hex(32),
    }
    running = [
        task.run.remote(options.command, {**shared, "RANK": str(rank)})
        for rank, task in enumerate(tasks)
    ]
    status = 0
    for rank, (code, out, err) in enumerate(ray.get(running)):
        status = status or code
        for line in out.splitlines():
            print(f"{rank}: {line}")
        for line in err.splitlines():
            print(f"{rank}: {line}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
