# Stages of a CI run: functions by name, timed, each with its own verdict. Sourced by .ci/run.
#
# Lanes run side by side, the stages of one lane one after the other. $work/verdicts has a line for each stage that has ended.

lanes=() # process groups beside this one's

# skip REASON: leave the stage that is running; it counts as skipped, and the summary gives the reason.
skip() {
    echo "$*" >"$work/skipped.$stage"
    exit 0
}

# not_after MINUTES: leave a stage that would begin later than that, or the whole run might be ended before it is done. On a machine with
# two processors to itself each begins in half the time.
not_after() {
    [ $SECONDS -lt $(($1 * 60)) ] || skip "$((SECONDS / 60)) minutes have passed, and it takes long where all else has"
}

# run_stage NAME: the function in a subshell, its verdict at the end.
run_stage() {
    local stage=$1 begin=$SECONDS status verdict
    printf '\n=== %s\n' "$stage"
    ("$stage" </dev/null)
    status=$?
    if [ $status -ne 0 ]; then
        verdict="FAILED (exit status $status)"
    elif [ -e "$work/skipped.$stage" ]; then
        verdict="skipped: $(cat "$work/skipped.$stage")"
    else
        verdict=passed
    fi
    printf '%-20s %5d s  %s\n' "$stage" $((SECONDS - begin)) "$verdict" | tee -a "$work/verdicts" | sed 's/^/--- /'
}

run_lane() {
    local name own=" $* "
    for name in $*; do run_stage "$name"; done
}

# await_other_lane STAGE: until it has ended, if another lane than this one has it.
await_other_lane() {
    [[ "$own" != *" $1 "* ]] && grep -qw "$1" "$work/stages" || return 0
    until grep -q "^$1 " "$work/verdicts"; do sleep 5; done
}

# run_lanes LANE…: each a list of stages. The first prints as it goes, the others when it has ended. Exit 1 if any stage failed.
run_lanes() {
    local first=$1 lane=0 names failed
    : >"$work/verdicts"
    echo "$*" >"$work/stages"
    shift
    set -m # without job control a shell's background processes ignore SIGINT, which the tests of interrupts send
    for names in "$@"; do
        lane=$((lane + 1))
        run_lane "$names" >"$work/lane.$lane.log" 2>&1 &
        lanes+=($!)
    done
    set +m
    run_lane "$first"
    wait
    cat /dev/null $(seq -f "$work/lane.%g.log" 1 $lane)
    failed=$(grep -c ' s  FAILED' "$work/verdicts")
    printf '\n=== summary: %d s\n' "$SECONDS"
    cat "$work/verdicts"
    printf 'stages: %d passed, %d failed, %d skipped\n' "$(grep -c ' s  passed' "$work/verdicts")" "$failed" "$(grep -c ' s  skipped' "$work/verdicts")"
    [ "$failed" -eq 0 ]
}
