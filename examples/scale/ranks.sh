#!/bin/bash
# What torchrun or mpirun starts on every rank, and the merge behind it:
#
#   torchrun --no-python --nproc-per-node 4 examples/scale/ranks.sh RECORDING parts --c 0.05
#   mpirun -n 4 examples/scale/ranks.sh RECORDING parts --c 0.05
#   specdec merge parts
set -euo pipefail
recording=$1 parts=$2
shift 2
rank=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-$RANK}} ranks=${OMPI_COMM_WORLD_SIZE:-${PMI_SIZE:-$WORLD_SIZE}}
exec specdec analyze "$recording" --shard "$((rank + 1))/$ranks" --part "$parts/" --threads 1 --quiet "$@"
