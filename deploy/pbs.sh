#!/bin/bash
#PBS -N cot2
#PBS -J 1-8
#PBS -l select=1:ncpus=1:mem=4gb
#PBS -l walltime=12:00:00
#PBS -r y
#PBS -j oe
# A chapter's missing runs as a PBS array of eight shards, from the folder where `cot2` is installed in .venv:
#
#   qsub deploy/pbs.sh
#   qsub -J 1-32 -v COT2_ARRAY=1-32,COT2_RUN="budget --profile paper" deploy/pbs.sh
#
# PBS tells a task its index and not the array's range, so COT2_ARRAY repeats it. The same lines queue again what a time
# limit ended; each shard goes on from its last checkpoint. Torque: `#PBS -t 1-8` for -J, and nodes=1:ppn=1 for select.
set -euo pipefail
cd "${PBS_O_WORKDIR:-.}"
export COT2_ARRAY="${COT2_ARRAY:-1-8}"
export COT2_STORE="${COT2_STORE:-$PWD/build/runs}"
export OMP_NUM_THREADS=1
if [ -d .venv/bin ]; then PATH="$PWD/.venv/bin:$PATH"; fi
read -ra run <<< "${COT2_RUN:-csft --profile paper --device cpu}"
exec cot2 run "${run[@]}" --shard auto
