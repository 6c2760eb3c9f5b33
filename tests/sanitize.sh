#!/usr/bin/env bash
# tests/sanitize.sh address|thread [pytest argument …]
#
# Builds pyop with sanitizers into the active virtual environment, which must hold the dependency groups `build` and
# `sanitize`, and runs tests there: without arguments the lifetime tests, the C++ tests, the tests of threads and of calls
# from C, and those of what C++ does with the memory of arrays.
#   address   AddressSanitizer and UndefinedBehaviorSanitizer
#   thread    ThreadSanitizer; the interpreter is not built with it, see tests/lifetime/tsan.supp
set -euo pipefail
cd "$(dirname "$0")/.."
: "${VIRTUAL_ENV:?activate the virtual environment that is to be used}"
python=$VIRTUAL_ENV/bin/python

kind=${1:-}
shift || true
case $kind in
    address) flags=address,undefined libraries="libasan.so libubsan.so" ;;
    thread) flags=thread libraries=libtsan.so ;;
    *)
        echo "usage: tests/sanitize.sh address|thread [pytest argument …], got '$kind'" >&2
        exit 2
        ;;
esac

"$python" -m pip install --quiet --no-build-isolation --no-deps --force-reinstall . \
    -Cbuild-dir="$VIRTUAL_ENV/build-$kind" -Ccmake.build-type=RelWithDebInfo \
    -Ccmake.define.PYOP_TESTS=ON -Ccmake.define.PYOP_SANITIZE="$flags"

if [ $# -eq 0 ]; then
    set -- tests/lifetime tests/cpp tests/entry tests/plan/test_concurrency.py tests/plan/test_native_groups.py tests/array/test_recycle.py
    if [ "$kind" = address ]; then
        set -- "$@" tests/plan/test_native_{reductions,gufuncs,loops,joins}.py tests/plan/test_{views,plan}.py \
            tests/array/test_pool.py tests/kernels/test_kernels.py \
            tests/compiling tests/foreign tests/native tests/interop/test_ode{,_edges}.py
    fi
fi

# The interpreter is an ordinary one, so the sanitizers' libraries have to be there before it.
preload=
for library in $libraries; do
    preload+="$("${CXX:-g++}" -print-file-name="$library") "
done
# Python's own allocator would hide our memory from them.
export PYTHONMALLOC=malloc
# The interpreter never frees all it has; a module never dies before the process.
export ASAN_OPTIONS=detect_leaks=0:strict_init_order=1
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
# Children of fork() go on: that is what tests/lifetime/test_fork.py is about.
export TSAN_OPTIONS="suppressions=$PWD/tests/lifetime/tsan.supp die_after_fork=0"

# ThreadSanitizer of older compilers cannot cope with as much address randomisation as newer kernels do.
plainly=()
if [ "$kind" = thread ] && setarch -R true 2>/dev/null; then
    plainly=(setarch -R)
fi
echo "sanitizers: $flags"
LD_PRELOAD=$preload exec "${plainly[@]}" "$python" -m pytest -p no:cacheprovider -q "$@"
