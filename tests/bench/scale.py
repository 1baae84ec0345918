#!/usr/bin/env python3
"""What an analysis costs that several processes share: throughput and peak memory of one process, of two that read a share
each, and of ranks of specdec-mpi, on a recording that is generated and removed again.

usage: scale.py SPECDEC SPECDEC_MPI [--gigabytes 20] [--folder /tmp] [--recording FOLDER] [--ranks 1,2,64] [--repeats 3]

Each case is run in turn, as often as --repeats says, and the least time of each is printed: what else the machine does only adds.
Processor time is that of all processes of a case; the load average is that before the first.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import struct
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

TOKENS, VOCAB = 200, 32000
ENVIRONMENT = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
QUESTION = ["--c", "0.05", "--samples", "4", "--threads", "1", "--lenience", "none"]


@dataclass
class Cost:
    seconds: float
    processor_seconds: float
    peak_bytes: int


def run(commands: list[list[str]]) -> Cost:
    """The commands at once: the time until the last one ends, and the memory of the largest process."""
    begin = time.monotonic()
    running = [subprocess.Popen(command, stdout=subprocess.DEVNULL, env=ENVIRONMENT) for command in commands]
    processor, peak = 0.0, 0
    for process in running:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            raise SystemExit(f"{' '.join(process.args)} ended with {process.returncode}")
        processor += usage.ru_utime + usage.ru_stime
        peak = max(peak, usage.ru_maxrss * 1024)
    return Cost(time.monotonic() - begin, processor, peak)


def state_bytes(part: Path) -> int:
    """Bytes of the state that a part holds, as ranks send it: the number behind the header."""
    with part.open("rb") as file:
        file.readline()
        (header,) = struct.unpack("<Q", file.read(8))
        file.seek(header, os.SEEK_CUR)
        return struct.unpack("<Q", file.read(8))[0]


def measure(options: argparse.Namespace, recording: str, scratch: Path) -> None:
    size = sum(file.stat().st_size for file in Path(recording).iterdir())
    info = subprocess.run([options.specdec, "trace", "info", recording, "--format", "json"], capture_output=True, check=True)
    positions = json.loads(info.stdout)["positions"]
    print(f"{size / 1e9:.1f} GB, {positions} positions, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}")
    analyze = [options.specdec, "analyze", recording, *QUESTION]
    cases = {"1 process": [analyze],
             "2 processes, a share each": [[*analyze, "--shard", f"{i}/2", "--part", str(scratch / f"{i}.part")] for i in (1, 2)],
             "1 process, checkpoint": [[*analyze, "--checkpoint", str(scratch / "kept"), "--quiet"]]}
    for ranks in options.ranks:
        cases[f"{ranks} ranks"] = [["mpirun", "--oversubscribe", "-n", str(ranks), options.specdec_mpi, *analyze[1:], "--quiet"]]
    costs: dict[str, list[Cost]] = {name: [] for name in cases}
    for _ in range(options.repeats):
        for name, commands in cases.items():
            shutil.rmtree(scratch / "kept", ignore_errors=True)
            costs[name].append(run(commands))
    for name, found in costs.items():
        seconds = min(cost.seconds for cost in found)
        processor = min(cost.processor_seconds for cost in found)
        peak = max(cost.peak_bytes for cost in found)
        print(f"{name:27} {seconds:8.2f} s {size / seconds / 1e9:6.2f} GB/s {positions / seconds:10.0f} positions/s "
              f"{processor:8.2f} s of processors, {size / processor / 1e9:5.2f} GB each, peak {peak / 1e6:6.0f} MB")
    for part in (scratch / "1.part", scratch / "2.part"):
        print(f"part of a half: {part.stat().st_size / 1e6:.3f} MB; its state, as ranks send it: {state_bytes(part) / 1e6:.3f} MB")
    merge = run([[options.specdec, "merge", str(scratch / "1.part"), str(scratch / "2.part")]])
    print(f"merge of both and the answer: {merge.processor_seconds:.2f} s of a processor")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("specdec")
    parser.add_argument("specdec_mpi")
    parser.add_argument("--gigabytes", type=float, default=20)
    parser.add_argument("--folder", default=tempfile.gettempdir())
    parser.add_argument("--recording")
    parser.add_argument("--ranks", type=lambda text: [int(n) for n in text.split(",")], default=[1, 2, 64])
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        recording = options.recording or str(Path(folder) / "recording")
        if not options.recording:
            sequences = max(2, round(options.gigabytes * 1e9 / (TOKENS * VOCAB * 8)))
            subprocess.run([options.specdec, "trace", "generate", "--law", "logit-noise", "--vocab", str(VOCAB), "--sequences",
                            str(sequences), "--tokens", str(TOKENS), "--shard-bytes", "500000000", "--output", recording,
                            "--quiet"], check=True, stdout=subprocess.DEVNULL)
        scratch = Path(folder) / "scratch"
        scratch.mkdir()
        measure(options, recording, scratch)


if __name__ == "__main__":
    main()
