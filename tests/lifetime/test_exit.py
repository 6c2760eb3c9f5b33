"""References dropped while, and after, the interpreter goes down."""

from __future__ import annotations

import pytest

from .harness import Run

# A race at exit needs a few tries to show.
TRIES = pytest.mark.parametrize("attempt", range(4))


def test_module_teardown_still_releases(run: Run) -> None:
    """A capsule in a module's globals dies after close(), attached: its references are released, not leaked."""
    end = run(
        # Its globals are not this module's: no cycle through the capsule, which the collector cannot see into.
        """
        space = {"write": os.write}
        exec("class Last:\\n  def __del__(self, write=write): write(1, b'released\\\\n')", space)
        kept = _ctests.capsule([space["Last"](), space["Last"]()])
        """
    )
    assert end.said == ["released", "released"]
    assert (end.deferred, end.leaked) == (0, 0)


def test_module_teardown_on_a_thread_leaks_and_counts(run: Run) -> None:
    """The same by way of a thread without the GIL, which must neither wait for it nor crash."""
    end = run("kept = _ctests.capsule_with_thread([object() for _ in range(7)])")
    assert (end.deferred, end.leaked) == (0, 7)


def test_static_destructors_leak_and_count(run: Run) -> None:
    end = run("_ctests.keep_in_static(things(1000))")
    assert (end.deferred, end.leaked) == (0, 1000)


def test_atexit_functions_are_served_until_close(run: Run) -> None:
    """Those registered after our import run before close(); those registered before it, after."""
    end = run(
        """
        import atexit
        atexit.register(lambda: say("open", not _ctests.stats()["closed"]))
        atexit.register(lambda: _ctests.drop_on_joined_thread(things(3)))
        """
    )
    assert end.said == ["open True"]
    assert (end.deferred, end.drained, end.leaked) == (3, 3, 0)


def test_atexit_functions_after_close(run: Run) -> None:
    """With the GIL all is as ever; a thread without it can no longer give its references to anybody."""
    end = run(
        """
        _ctests.drop_attached(things(2))
        _ctests.drop_on_joined_thread(things(3))
        """,
        at_last="""
        _ctests.drop_attached(things(2))
        _ctests.drop_on_joined_thread(things(4))
        _ctests.attach_for_ever(None)      # it cannot, and drops its function
        while _ctests.stats()["leaked"] < 5: time.sleep(0.001)
        say("closed", _ctests.stats()["closed"], Thing.died)
        """,
    )
    assert end.said == ["closed True 7"]
    assert (end.deferred, end.drained, end.leaked) == (3, 3, 5)


@TRIES
def test_a_thread_still_dropping_at_exit(run: Run, attempt: int) -> None:
    """It is never waited for, and never aborts the process: what comes too late is leaked and counted."""
    end = run("_ctests.drop_for_ever(things(200_000)); time.sleep(0.002)")
    assert end.deferred == end.drained
    assert end.deferred + end.leaked < 200_000


@TRIES
def test_a_foreign_thread_still_attaching_at_exit(run: Run, attempt: int) -> None:
    """It is let out of Python before the reaper closes, and told that it cannot come back."""
    end = run(
        """
        _ctests.attach_for_ever(lambda: sum(range(50)))
        _ctests.attach_for_ever(lambda: time.sleep(0.0005))
        time.sleep(0.05)
        """
    )
    assert end.deferred == end.drained > 0


def test_a_foreign_thread_that_stays_in_python_at_exit(run: Run) -> None:
    """It is waited for a while, then left behind; up to 3.13 Python ends it, through frames of ours."""
    end = run("_ctests.attach_for_ever(lambda: time.sleep(3600)); time.sleep(0.05)")
    assert end.leaked == 0


@TRIES
def test_daemon_threads_inside_our_frames_at_exit(run: Run, attempt: int) -> None:
    """Up to 3.13 Python ends them by unwinding the stack: no destructor of ours may run on that way."""
    run(
        """
        bodies = [lambda: time.sleep(0.0001), lambda: sum(range(200)), lambda: None]
        for body in bodies:
            threading.Thread(target=_ctests.call_with_frames, args=(body,), daemon=True).start()
        time.sleep(0.05)
        """
    )


def test_sys_exit_and_exceptions_close_as_well(run: Run) -> None:
    end = run("_ctests.drop_on_joined_thread(things(5)); sys.exit(0)")
    assert (end.deferred, end.drained, end.leaked) == (5, 5, 0)
