#!/bin/sh
# Runs all that tfrt checks and measures on a GPU, and packs what was found: results.tar.gz, to be sent back. In it are
# results/gpu-check.json, a record for each check and measurement, and results/table.md.
#
# It needs NVIDIA's driver; peers are measured where python3 has PyTorch, and kernels are watched where
# compute-sanitizer is. It changes no setting of the GPU. It ends with 3 where there is no GPU, with 1 if a check fails.
# `run.sh --sim` runs the same on the simulated driver, to see that all of it runs: measurements at small
# sizes, functions of all values.

cd "$(dirname "$0")" || exit 1
sim=
if [ "$1" = --sim ]; then sim=--sim; fi
rm -rf results results.tar.gz
mkdir results || exit 1
n_failed=0

# part NAME SECONDS COMMAND..: its output goes to results/NAME.txt, its status to results/status.txt.
part() {
    name=$1 seconds=$2
    shift 2
    if command -v timeout > /dev/null; then set -- timeout "$seconds" "$@"; fi
    "$@" > "results/$name.txt" 2>&1
    status=$?
    echo "$name $status" >> results/status.txt
    echo "$name: status $status, $(wc -l < "results/$name.txt") lines"
    return $status
}

{
    date -u
    uname -a
    command -v nvidia-smi > /dev/null && nvidia-smi
} > results/machine.txt 2>&1

part check 300 ./gpu_check $sim --records results/check.records
case $? in
    0) ;;
    3)
        cat results/check.txt
        exit 3
        ;;
    *) n_failed=1 ;;
esac
part sticky 60 ./gpu_check sticky $sim --records results/sticky.records || n_failed=1
part ulps 300 ./gpu_check ulps $sim --records results/ulps.records || n_failed=1
if [ -z "$sim" ] && command -v compute-sanitizer > /dev/null; then
    # Calls that are refused are made on purpose.
    for tool in memcheck initcheck racecheck synccheck; do
        part "$tool" 900 compute-sanitizer --tool $tool --report-api-errors no --error-exitcode 9 ./gpu_check \
            --records "results/$tool.records" || n_failed=1
    done
fi
part bench 300 ./gpu_check bench $sim --records results/bench.records || n_failed=1
if [ -z "$sim" ] && python3 -c 'import torch; assert torch.cuda.is_available()' 2> /dev/null; then
    # In turn, so that both are measured twice on a machine as it is.
    part peers 300 python3 peers.py
    part bench_again 300 ./gpu_check bench --records results/bench_again.records || n_failed=1
    part peers_again 300 python3 peers.py
fi
./gpu_check report results > results/table.md || n_failed=1
cat results/table.md
tar czf results.tar.gz results
echo "results.tar.gz has what to send back"
exit $n_failed
