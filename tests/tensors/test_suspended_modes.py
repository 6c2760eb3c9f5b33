"""A mode that a generator or a task has entered is its own: whoever runs while it is suspended has theirs."""

import asyncio
import contextlib
import gc
import random
import threading

import numpy as np
import pytest

import pyop
from pyop.autograd import detect_anomaly, enable_grad, inference_mode, is_grad_enabled, no_grad, set_grad_enabled

OFF = {
    "no_grad": no_grad,
    "inference_mode": inference_mode,
    "set_grad_enabled": lambda: set_grad_enabled(False),
    "made before": lambda: MADE_BEFORE,
}
MADE_BEFORE = no_grad()


def steps(mode):
    with mode():
        while True:
            yield is_grad_enabled()


@pytest.mark.parametrize("mode", OFF)
def test_a_generator_keeps_its_mode_to_itself(mode):
    x = pyop.Tensor(np.ones(2), requires_grad=True)
    running = steps(OFF[mode])
    for _ in range(3):
        assert next(running) is False
        assert is_grad_enabled()
        (x * 2).sum().backward()
    assert np.array_equal(x.grad, [6, 6])
    running.close()
    assert is_grad_enabled()


def test_the_derivative_of_a_function_that_draws_from_a_generator():
    def scales(x):
        with no_grad():
            for k in (1.0, 2.0):
                yield np.sum(x * k).numpy() if isinstance(x, pyop.Tensor) else np.sum(x * k)

    assert np.array_equal(pyop.grad(lambda x: sum(np.sum(x * x) for _ in scales(x)))(np.ones(2)), [4, 4])


def test_tasks_do_not_turn_off_each_other():
    x = pyop.Tensor(np.ones(2), requires_grad=True)

    async def inner():
        await asyncio.sleep(0)
        return is_grad_enabled()

    async def quiet(seen):
        with no_grad():
            for _ in range(4):
                await asyncio.sleep(0)
                seen += [is_grad_enabled(), await inner(), (x * 2).requires_grad]

    async def learning(seen):
        for _ in range(8):
            await asyncio.sleep(0)
            seen.append((x * 2).requires_grad)

    async def both():
        off, on = [], []
        await asyncio.gather(quiet(off), learning(on), quiet(off), learning(on))
        return off, on

    off, on = asyncio.run(both())
    assert not any(off)
    assert all(on)
    assert is_grad_enabled()


@contextlib.contextmanager
def quiet():
    with no_grad():
        yield


@contextlib.asynccontextmanager
async def quiet_later():
    with no_grad():
        await asyncio.sleep(0)
        yield


class Quiet:
    def __enter__(self):
        self.mode = no_grad()
        self.mode.__enter__()

    def __exit__(self, *error):
        return self.mode.__exit__(*error)


@pytest.fixture
def not_recorded():
    with no_grad():
        yield


def test_a_generator_that_is_a_context_manager_enters_for_its_caller(not_recorded):
    assert not is_grad_enabled()
    with enable_grad():
        for mode in (quiet, Quiet):
            with mode():
                assert not is_grad_enabled()
            assert is_grad_enabled()


@pytest.mark.parametrize("mode", [quiet, Quiet, lambda: entered_by_a_stack()])
def test_such_a_one_in_a_generator_is_the_generators(mode):
    running = steps(mode)
    for _ in range(2):
        assert next(running) is False
        assert is_grad_enabled()
    running.close()
    assert is_grad_enabled()


@contextlib.contextmanager
def entered_by_a_stack():
    with contextlib.ExitStack() as stack:
        stack.enter_context(no_grad())
        yield


def test_such_a_one_in_a_task_is_the_tasks():
    async def waits(seen):
        async with quiet_later():
            seen.append(is_grad_enabled())
            await asyncio.sleep(0)
            seen.append(is_grad_enabled())

    async def main():
        seen = []
        task = asyncio.create_task(waits(seen))
        while not task.done():
            await asyncio.sleep(0)
            assert is_grad_enabled()
        return seen

    assert asyncio.run(main()) == [False, False]


def test_from_now_on_is_for_the_thread():
    async def main():
        set_grad_enabled(False)

    asyncio.run(main())
    off = is_grad_enabled()
    set_grad_enabled(True)
    assert not off
    assert is_grad_enabled()


def test_left_at_another_time_than_in_the_order_of_entering():
    running = steps(no_grad)
    with no_grad():
        next(running)
    assert is_grad_enabled()
    with no_grad():
        running.close()
        assert not is_grad_enabled()
    assert is_grad_enabled()
    running = steps(enable_grad)
    with no_grad():
        assert next(running) is True
        assert not is_grad_enabled()
    running.close()


def test_a_generator_that_nobody_keeps():
    def circle(holder):  # it holds itself
        with no_grad():
            yield holder

    holder = []
    holder.append(circle(holder))
    next(holder[0])
    del holder
    gc.collect()
    assert is_grad_enabled()
    assert next(steps(no_grad)) is False
    assert is_grad_enabled()


def test_resumed_on_another_thread():
    running = steps(no_grad)
    next(running)
    seen = []

    def elsewhere():
        seen.extend((is_grad_enabled(), next(running), is_grad_enabled()))

    for _ in range(2):
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        seen.append(is_grad_enabled())
    running.close()
    assert seen == [True, False, True, True] * 2
    assert is_grad_enabled()


def test_a_function_that_asks_a_generator_in_its_forward():
    running = steps(enable_grad)

    class Twice(pyop.Function):
        @staticmethod
        def forward(ctx, x):
            assert next(running) is True
            return x * 2

        @staticmethod
        def backward(ctx, g):
            assert next(running) is True
            assert not is_grad_enabled()
            return g * 2

    x = pyop.Tensor(np.ones(2), requires_grad=True)
    Twice.apply(x).sum().backward()
    assert np.array_equal(x.grad, [2, 2])
    assert is_grad_enabled()


def test_anomalies_are_looked_for_by_who_asked():
    class Broken(pyop.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return g * np.nan

    def looking():
        with detect_anomaly():
            yield
            with pytest.raises(RuntimeError, match="nan"):
                Broken.apply(x).backward()

    x = pyop.Tensor(np.array(0.0), requires_grad=True)
    for _ in looking():
        Broken.apply(x).backward()
    assert np.isnan(x.grad)


def test_decorated():
    @no_grad()
    def generator():
        given = yield is_grad_enabled()
        return given, is_grad_enabled()

    @no_grad
    async def task():
        await asyncio.sleep(0)
        return is_grad_enabled()

    running = generator()
    assert next(running) is False
    assert is_grad_enabled()
    with pytest.raises(StopIteration) as end:
        running.send(3)
    assert end.value.value == (3, False)
    assert asyncio.run(task()) is False
    assert is_grad_enabled()
    with pytest.raises(TypeError, match="write `with no_grad"):

        @no_grad()
        async def both():
            yield


@pytest.mark.parametrize("seed", range(40))
def test_by_chance(seed):
    """Generators that enter and leave modes and resume each other, held against what each of them has entered."""
    draw = random.Random(seed)
    entered = {k: [] for k in range(4)}  # of each generator, and of nobody
    stack = []  # who runs

    def expected():
        return next((entered[k][-1] for k in reversed(stack) if entered[k]), True)

    def act(k, depth):
        assert is_grad_enabled() is expected()
        for _ in range(draw.randrange(3)):
            others = [j for j in generators if j not in stack]
            if others and draw.random() < 0.7:
                resume(draw.choice(others))
            elif depth < 3:
                on = draw.random() < 0.5
                with set_grad_enabled(on):
                    entered[k].append(on)
                    act(k, depth + 3)
                    entered[k].pop()
            assert is_grad_enabled() is expected()

    def body(k, depth=0):
        for _ in range(draw.randrange(1, 6)):
            act(k, depth)
            if draw.random() < 0.4 and depth < 3:
                on = draw.random() < 0.5
                with (enable_grad if on else no_grad)():
                    entered[k].append(on)
                    try:
                        yield from body(k, depth + 1)
                    finally:
                        assert is_grad_enabled() is expected()
                        entered[k].pop()
            yield
            assert is_grad_enabled() is expected()

    def resume(k):
        stack.append(k)
        if draw.random() < 0.1:
            generators.pop(k).close()
        elif next(generators[k], "over") == "over":
            del generators[k]
        stack.pop()
        assert is_grad_enabled() is expected()

    generators = {k: body(k) for k in range(3)}
    stack.append(3)
    while generators:
        act(3, 0)
        if generators:
            resume(draw.choice(list(generators)))
    assert is_grad_enabled()
