# Stages of a CI run: functions by name, timed, each with its own verdict. Sourced by .ci/run.

passed=0 failed=0 skipped=0
summary=()

# skip REASON: leave the stage that is running; it counts as skipped, and the summary gives the reason.
skip() {
    echo "$*" >"$work/skipped"
    exit 0
}

# run_stages NAME…: run each function in a subshell, print the summary, exit 1 if any failed.
run_stages() {
    local name begin status verdict
    for name in $*; do
        printf '\n=== %s\n' "$name"
        rm -f "$work/skipped"
        begin=$SECONDS
        ("$name" </dev/null)
        status=$?
        if [ $status -ne 0 ]; then
            verdict="FAILED (exit status $status)"
            failed=$((failed + 1))
        elif [ -e "$work/skipped" ]; then
            verdict="skipped: $(cat "$work/skipped")"
            skipped=$((skipped + 1))
        else
            verdict=passed
            passed=$((passed + 1))
        fi
        summary+=("$(printf '%-20s %5d s  %s' "$name" $((SECONDS - begin)) "$verdict")")
        printf -- '--- %s\n' "${summary[-1]}"
    done
    printf '\n=== summary: %d s\n' "$SECONDS"
    printf '%s\n' "${summary[@]}"
    printf 'stages: %d passed, %d failed, %d skipped\n' $passed $failed $skipped
    [ $failed -eq 0 ]
}
