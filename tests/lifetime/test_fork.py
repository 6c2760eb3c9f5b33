"""fork() while other threads are dropping references."""

from __future__ import annotations

import os

import pytest

from .harness import Run

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork()")

# Python warns about fork() in a process with threads: here that is the point.
QUIET = ("-W", "ignore::DeprecationWarning")


@pytest.mark.skipif(
    "libasan" in os.environ.get("LD_PRELOAD", ""),
    reason="AddressSanitizer's allocator does not take its locks at fork(): a child may wait for a thread it has not",
)
def test_children_of_a_process_full_of_droppers(run: Run) -> None:
    """Each child must find the reaper usable, and end: it would wait in close() for threads it does not have."""
    end = run(
        """
        import signal
        _ctests.start_churn(3)
        failed = 0
        for i in range(25):
            pid = os.fork()
            if pid == 0:
                signal.alarm(100)
                _ctests.forget_churn()
                start = _ctests.stats()
                _ctests.drop_detached(things(50))
                _ctests.collect()
                s = _ctests.stats()
                good = (s["deferred"] == s["drained"] == start["deferred"] + 50 and s["leaked"] == 0
                        and Thing.died == 50)
                if not good:
                    os.write(2, repr((start, s, Thing.died)).encode())
                sys.exit(0 if good else 3)     # through atexit, hence close()
            failed += os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != 0
        _ctests.stop_churn()
        say("failed", failed)
        """,
        *QUIET,
    )
    assert end.said[-1] == "failed 0"
    assert all(line.startswith("at exit") for line in end.said[:-1])  # the children's
    assert end.leaked == 0
    assert end.deferred == end.drained


def test_fork_keeps_what_is_waiting(run: Run) -> None:
    """Both sides release their copy of what was dropped before the fork."""
    end = run(
        """
        pid = _ctests.drop_and_call(things(20), os.fork)
        _ctests.collect()
        say("died", Thing.died)
        if pid:
            say("child", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        """,
        *QUIET,
    )
    assert sorted(end.said) == ["at exit: deferred=20 drained=20 leaked=0", "child 0", "died 20", "died 20"]


def test_fork_inside_a_finalizer(run: Run) -> None:
    end = run(
        """
        class Forks:
            def __del__(self):
                Forks.pid = os.fork()
        _ctests.drop_on_joined_thread([Forks(), *things(10)])
        _ctests.collect()
        say("died", Thing.died)
        if Forks.pid:
            say("child", os.waitstatus_to_exitcode(os.waitpid(Forks.pid, 0)[1]))
        """,
        *QUIET,
    )
    assert "child 0" in end.said
    assert end.said.count("died 10") == 2


def test_children_of_multiprocessing(run: Run) -> None:
    """They end by os._exit, without atexit."""
    end = run(
        """
        import multiprocessing
        def work(i):
            before = Thing.died
            _ctests.drop_on_joined_thread(things(i))
            _ctests.collect()
            return Thing.died - before
        if __name__ == "__main__":
            with multiprocessing.get_context("fork").Pool(2) as pool:
                say(pool.map(work, [1, 2, 3]))
        """,
        *QUIET,
    )
    assert end.said[-1] == "[1, 2, 3]"
