#!/bin/bash
# A recording analysed by an array of Slurm, one share a task; then the merge, once all of them are done:
#
#   job=$(sbatch --parsable --array=1-64 examples/scale/slurm_array.sh RECORDING parts --c 0.05)
#   sbatch --dependency=afterok:$job --wrap "specdec merge parts --output answer.txt"
#
# A task that failed is run again by itself with --shard I/64: an array of another size has other shares.
#SBATCH --job-name=specdec-analyze
#SBATCH --cpus-per-task=2
#SBATCH --time=01:00:00
set -euo pipefail
recording=$1 parts=$2
shift 2
exec specdec analyze "$recording" --shard "$((SLURM_ARRAY_TASK_ID - SLURM_ARRAY_TASK_MIN + 1))/$SLURM_ARRAY_TASK_COUNT" --part "$parts/" --threads "${SLURM_CPUS_PER_TASK:-1}" --quiet "$@"
