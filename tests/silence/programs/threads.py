"""Functions that work on threads of their own, in pools, tasks and generators."""

from __future__ import annotations

import asyncio
import contextlib
import math
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from . import smooth


def on_a_thread(function, *args):
    """What threading leaves of it: nothing, if it raises."""
    found = []

    def work():
        with contextlib.suppress(Exception):
            found.append(function(*args))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return found[0] if found else 0.0


@smooth("f8[3]")
def all_on_a_thread(x):
    return on_a_thread(lambda: np.sum(x * x * x))


@smooth("f8[3]")
def a_part_on_a_thread(x):
    return on_a_thread(np.sin, x) * x


@smooth("f8[3]")
def a_function_with_a_rule_in_python(x):
    return on_a_thread(np.cumsum, x) * x


@smooth("f8[3]")
def in_place_on_a_thread(x):
    y = x * 2.0

    def work():
        nonlocal y
        y *= x
        return y.sum()

    return on_a_thread(work)


@smooth("f8[3]")
def a_thread_of_a_thread(x):
    return on_a_thread(lambda: on_a_thread(lambda: x * x) * x)


@smooth("f8[3]")
def a_number_on_a_thread(x):
    return on_a_thread(lambda: math.exp(x[0])) * np.sum(x)


@smooth("f8[3]")
def a_number_that_is_caught_on_a_thread(x):
    def work():
        try:
            return float(x[0])
        except TypeError:
            return 0.0

    return on_a_thread(work) + np.sum(x * x)


@smooth("f8[3]")
def a_pool(x):
    with ThreadPoolExecutor(2) as pool:
        return sum(pool.map(lambda k: x[k] * x[k] * k, range(3)))


POOL = []


@smooth("f8[3]")
def a_pool_that_was_there(x):
    if not POOL:
        POOL.append(ThreadPoolExecutor(1))
    return POOL[0].submit(lambda: np.sum(np.exp(x) * x)).result()


@smooth("f8[3]")
def tasks(x):
    async def one(k):
        await asyncio.sleep(0)
        return x[k] ** 2 * k

    async def every():
        return sum(await asyncio.gather(*map(one, range(3))))

    return asyncio.run(every())


@smooth("f8[3]")
def an_executor(x):
    async def run():
        return await asyncio.get_running_loop().run_in_executor(None, lambda: np.sum(np.sin(x) * x))

    return asyncio.run(run())


@smooth("f8[3]")
def a_generator_goes_on_elsewhere(x):
    def partial_sums():
        total = 0.0
        for k in range(3):
            total = total + x[k] ** 3
            yield total

    sums = partial_sums()
    first = next(sums)
    return on_a_thread(lambda: list(sums)[-1]) + first
