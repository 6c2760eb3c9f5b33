"""References dropped by every kind of thread, in programs that end in good order: nothing may leak."""

from __future__ import annotations

import pytest

from .harness import Run

N = 100_000

# In development mode the interpreter checks that memory is freed by a thread that holds the GIL.
MODES = pytest.mark.parametrize("flags", [(), ("-X", "dev")], ids=["plain", "dev"])


@MODES
@pytest.mark.parametrize(
    ("drop", "deferred"),
    [("drop_attached", 0), ("drop_detached", N), ("drop_on_thread", N), ("drop_on_joined_thread", N)],
)
def test_every_object_dies_once(run: Run, drop: str, deferred: int, flags: tuple[str, ...]) -> None:
    """Also while the GIL holder joins the dropping thread, where taking the GIL would deadlock."""
    end = run(
        f"""
        _ctests.{drop}(things({N}))
        before = Thing.died
        _ctests.collect()
        say(before, Thing.died)
        """,
        *flags,
    )
    assert end.said[0].split()[1] == str(N)
    assert (end.deferred, end.drained, end.leaked) == (deferred, deferred, 0)


def test_nothing_dies_on_a_thread_without_the_gil(run: Run) -> None:
    end = run(
        """
        seen = set()
        class Where:
            def __del__(self):
                seen.add(threading.get_ident())
        _ctests.drop_on_thread([Where() for _ in range(1000)])
        _ctests.drop_on_joined_thread([Where() for _ in range(1000)])
        _ctests.collect()
        say(seen == {threading.get_ident()})
        """
    )
    assert end.said == ["True"]
    assert (end.deferred, end.leaked) == (2000, 0)


def test_what_nobody_collects_dies_at_exit(run: Run) -> None:
    end = run(
        """
        import atexit
        @atexit.register
        def before_close(): say("before close", Thing.died, _ctests.stats()["closed"])
        _ctests.drop_on_joined_thread(things(10))
        """
    )
    assert len(end.said) == 1
    assert (end.deferred, end.drained, end.leaked) == (10, 10, 0)


def test_the_main_thread_collects_by_itself(run: Run) -> None:
    end = run(
        """
        _ctests.drop_on_thread(things(10))
        deadline = time.monotonic() + 60
        while Thing.died < 10 and time.monotonic() < deadline:
            time.sleep(0.001)
        say(Thing.died)
        """
    )
    assert end.said == ["10"]


def test_finalizers_that_fail_or_drop_more(run: Run) -> None:
    """An exception in `__del__` is reported and stops nothing; what a finalizer drops is released as well."""
    end = run(
        """
        reported = []
        sys.unraisablehook = lambda args: reported.append(type(args.exc_value))
        class Fails:
            def __del__(self): raise ValueError("from a finalizer")
        class DropsMore:
            def __del__(self): _ctests.drop_on_joined_thread(things(5))
        _ctests.drop_on_joined_thread([Fails(), DropsMore(), Fails()])
        try:
            raise KeyError
        except KeyError:
            while _ctests.collect(): pass
        say(reported == [ValueError, ValueError], Thing.died)
        """
    )
    assert end.said == ["True 5"]
    assert (end.deferred, end.drained, end.leaked) == (8, 8, 0)


def test_python_threads_drop_while_all_collect(run: Run) -> None:
    end = run(
        """
        def work():
            for _ in range(50):
                _ctests.drop_on_joined_thread(things(20))
                _ctests.drop_detached(things(20))
                _ctests.collect()
        threads = [threading.Thread(target=work) for _ in range(4)]
        for t in threads: t.start()
        for t in threads: t.join()
        _ctests.collect()
        say(Thing.died)
        """
    )
    # The class counts with +=, which two threads may do at once; the reaper's own count is exact.
    assert (end.deferred, end.drained, end.leaked) == (8000, 8000, 0)
