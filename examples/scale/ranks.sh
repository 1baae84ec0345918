#!/bin/bash
# What torchrun or mpirun starts on every rank, and the merge behind it:
#
#   torchrun --no-python --nproc-per-node 4 examples/scale/ranks.sh RECORDING parts --c 0.05
#   mpirun -n 4 examples/scale/ranks.sh RECORDING parts --c 0.05
#   specdec merge parts
set -euo pipefail
recording=$1 parts=$2
shift 2
exec specdec analyze "$recording" --shard env --part "$parts/" --threads 1 --quiet "$@"
