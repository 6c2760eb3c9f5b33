"""Calls by JAX from many threads, at forks and at the end of Python."""

import gc
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import pyop

jax = pytest.importorskip("jax", reason="JAX is not installed", exc_type=ImportError)

import jax.numpy as jnp  # noqa: E402

from pyop.interop.jax import wrap  # noqa: E402

from .test_jax import same, x64  # noqa: E402, F401

# --- threads, and what may hang: in a process of its own


def run(code):
    head = textwrap.dedent(
        """
        import faulthandler, threading
        import jax, jax.numpy as jnp, numpy as np, pyop
        from pyop.interop.jax import wrap
        faulthandler.dump_traceback_later(100, exit=True)
        jax.config.update('jax_enable_x64', True)
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", head + textwrap.dedent(code)], capture_output=True, text=True, timeout=150
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_many_threads_and_nested_calls_do_not_wait_for_each_other():
    """Large arrays: JAX's own callbacks hang here, when all threads of XLA wait for their arguments."""
    assert (
        run(
            """
            native = wrap(pyop.compile(lambda x: np.sin(x) + x[::-1]))
            python = wrap(pyop.op(lambda x: x + 1, "float64[n] -> float64[n]"))
            program = jax.jit(lambda x: python(python(native(x))) + python(x) + native(x))
            nested = wrap(pyop.op(lambda x: np.asarray(program(jnp.asarray(x))), "float64[n] -> float64[n]"))
            assert (np.asarray(jax.jit(nested)(jnp.ones(1 << 10))) == np.asarray(program(jnp.ones(1 << 10)))).all()
            big = jnp.ones(1 << 19)
            want = np.asarray(program(program(big) * 1e-9))
            wrong = []
            def work():
                for _ in range(5):
                    y = program(program(big) * 1e-9)  # dispatched, not waited for
                    if not (np.asarray(y) == want).all():
                        wrong.append(1)
            threads = [threading.Thread(target=work) for _ in range(3)]
            [t.start() for t in threads]
            [t.join() for t in threads]
            print(len(wrong))
            """
        )
        == "0"
    )


def test_what_a_function_keeps_outlives_the_call():
    assert (
        run(
            """
            kept = []
            @pyop.op("float64[n] -> float64[n]")
            def keep(x):
                kept.append(x)
                return x
            f = jax.jit(lambda x: wrap(keep)(x * 2) + 1)
            for n in (4, 1 << 16):
                f(jnp.arange(float(n))).block_until_ready()
                for _ in range(10):
                    (jnp.ones(n) * 7).block_until_ready()
            print(all((k == np.arange(float(len(k))) * 2).all() for k in kept))
            """
        )
        == "True"
    )


def test_a_fork_and_the_end_of_python():
    assert (
        run(
            """
            import os, warnings
            warnings.simplefilter("ignore")
            f = jax.jit(wrap(pyop.compile(lambda x: np.exp(x) * 2)))
            y = f(jnp.ones(3)).block_until_ready()
            pid = os.fork()
            if pid == 0:
                os._exit(0)
            os.waitpid(pid, 0)
            f(jnp.ones(1 << 20))  # not waited for
            print("ends")
            """
        )
        == "ends"
    )


def test_plans_live_as_long_as_what_calls_them():
    compiled = jax.jit(wrap(pyop.compile(lambda x: x * 3 + np.flip(x)))).lower(jnp.ones(3)).compile()
    gc.collect()
    same(compiled(jnp.arange(3.0)), np.arange(3.0) * 3 + np.arange(3.0)[::-1])


def test_a_program_of_another_process_is_refused():
    import pyop.interop.jax_native as native

    x = jnp.ones(3)
    wrap(pyop.compile(lambda x: x))(x)
    call = jax.ffi.ffi_call("pyop_plan", [jax.ShapeDtypeStruct((3,), np.float64)])
    with pytest.raises(jax.errors.JaxRuntimeError, match="compile it anew"):
        jax.jit(lambda x: call(x, plan=np.int64(64), process=np.int64(int(native._process) ^ 1)))(x)[
            0
        ].block_until_ready()
