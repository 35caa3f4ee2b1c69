"""The median time of an all-reduce of floats by gloo between two processes, in microseconds: allreduce_gloo.py LEN N."""

import os
import socket
import statistics
import subprocess
import sys
import time


def member(rank: int, port: int, len_: int, n: int) -> None:
    import torch
    import torch.distributed as distributed

    torch.set_num_threads(1)
    distributed.init_process_group(
        "gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2
    )
    data = torch.ones(len_)
    warm = n // 10 + 1
    times = []
    for index in range(n + warm):
        begin = time.perf_counter()
        distributed.all_reduce(data)
        if index >= warm:
            times.append((time.perf_counter() - begin) * 1e6)
    if rank == 0:
        print(f"{statistics.median(times):.1f}", flush=True)
    distributed.barrier()


def main() -> None:
    if len(sys.argv) == 5:
        member(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = dict(os.environ, GLOO_SOCKET_IFNAME="lo")
    ranks = [
        subprocess.Popen(
            [sys.executable, __file__, str(rank), str(port), *sys.argv[1:]], env=environment
        )
        for rank in range(2)
    ]
    sys.exit(max(rank.wait() for rank in ranks))


main()
