"""Producers that lie or fail are errors, and never crashes."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path

import pytest

import pyop

from .hostile import DELETED, Producer, capsule, producer, tensor

ROOT = Path(__file__).parents[2]

itself = pyop.op("_ -> _")(lambda x: x)

WRONG = {
    "no capsule": (Producer(lambda: 3), "no capsule named"),
    "another name": (producer(name=b"dl_tensor"), "no capsule named"),
    "ndim huge": (producer(ndim=10**6), "number of dimensions is not from 0 to 64"),
    "ndim negative": (producer(ndim=-1), "number of dimensions"),
    "null data": (producer(data=None), "its data is a null pointer"),
    "null shape": (producer(shape=None), "its shape is a null pointer"),
    "a negative size": (producer(shape=[-1, 3]), "a size is negative"),
    "sizes that overflow": (producer(shape=[2**62, 2**62]), "its sizes overflow"),
    "strides that overflow": (producer(strides=[2**62, 1]), "its strides overflow"),
    "an offset that overflows": (producer(byte_offset=2**64 - 1), "its byte_offset overflows"),
    "lanes": (producer(lanes=4), "64 bits and 4 lanes"),
    "a dtype that is none": (producer(code=200), "type code 200"),
    "another version": (producer(major=2), r"DLPack 2\.1, and pyop reads DLPack 1"),
    "a device in the tensor alone": (producer(device_type=2), "on device cuda:0, which the CPU cannot read"),
    "a device": (producer(device=(2, 0)), "on device cuda, and pyop computes on the CPU"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_producer_that_lies(name):
    made, text = WRONG[name]
    for call in (itself, pyop.from_dlpack, pyop.trace(itself, "_").compile()):
        before = len(DELETED)
        with pytest.raises((TypeError, ValueError, BufferError), match=text):
            call(made)
        taken = name not in ("no capsule", "another name", "a device")
        assert len(DELETED) - before == taken


def test_a_producer_that_raises():
    def fails():
        raise OSError("the disk is gone")

    with pytest.raises(pyop.InputError, match="the disk is gone"):
        itself(Producer(fails))
    with pytest.raises(KeyboardInterrupt):
        itself(Producer(lambda: (_ for _ in ()).throw(KeyboardInterrupt)))
    assert itself(producer(device=OSError("no device"))).tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize("versioned", [True, False])
def test_what_is_unusual_and_right(versioned):
    assert itself(producer(versioned, strides=None)).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert itself(producer(versioned, byte_offset=16)).tolist() == [[2, 3, 4], [5, 6, 7]]
    assert itself(producer(versioned, strides=[0, -1], byte_offset=16)).tolist() == [[2, 1, 0], [2, 1, 0]]
    assert itself(producer(versioned, ndim=0, shape=None, strides=None)).tolist() == 0
    assert itself(producer(versioned, deleter=None)).shape == (2, 3)
    assert itself(producer(versioned, data=None, shape=[0, 3])).shape == (0, 3)
    found = itself(producer(versioned, byte_offset=4))
    assert not found.flags.aligned
    if versioned:
        assert pyop.from_dlpack(producer(flags=0)).flags.writeable
        assert not pyop.from_dlpack(producer(flags=1)).flags.writeable
        with pytest.raises(BufferError, match="copy=False, but the other library gives a copy"):
            pyop.from_dlpack(producer(flags=2), copy=False)


def test_a_capsule_is_used_once():
    only = capsule(tensor(), b"dltensor_versioned")
    x = Producer(lambda: only)
    first = itself(x)
    with pytest.raises(pyop.InputError, match="used already"):
        itself(x)
    before = len(DELETED)
    assert first.sum() == 15
    del first
    gc.collect()
    assert len(DELETED) == before + 1


def test_a_deleter_runs_with_the_error_of_the_call_kept():
    @pyop.op("_ -> _")
    def fails(x):
        raise LookupError("mine")

    before = len(DELETED)
    with pytest.raises(LookupError, match="mine"):
        fails(producer())
    gc.collect()
    assert len(DELETED) == before + 1


def fuzz(seed, n):
    ran = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-m", "tests.foreign.hostile", str(seed), str(n)],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=ROOT,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    came, refused = map(int, ran.stdout.split())
    assert came > n / 20
    assert refused > n / 4


def test_lies_by_chance():
    fuzz(1, 2000)


@pytest.mark.campaign
def test_many_lies_by_chance():
    for seed in range(100, 120):
        fuzz(seed, 50_000)
