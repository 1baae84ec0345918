#!/bin/bash
# A recording analysed by several processes of one machine, and the answer of all:
#
#   examples/scale/xargs.sh RECORDING SHARES PROCESSES [OPTION OF ANALYZE...]
#
# With GNU parallel the middle line is, over the machines that hosts.txt lists and a folder that all of them see,
#
#   seq "$shares" | parallel --sshloginfile hosts.txt specdec analyze "$recording" --shard {}/"$shares" --part "$parts"
set -euo pipefail
recording=$1 shares=$2 processes=$3
shift 3
parts=$(mktemp -d)
trap 'rm -r "$parts"' EXIT
seq "$shares" | xargs -P "$processes" -I{} \
  specdec analyze "$recording" --shard {}/"$shares" --part "$parts" --threads 1 --quiet "$@" > "$parts/log"
specdec merge "$parts"
