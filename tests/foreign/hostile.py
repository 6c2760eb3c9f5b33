"""Producers of DLPack that lie or fail, made with ctypes: run in a process of its own, which must live to the end.

``python -m tests.foreign.hostile SEED N`` calls ops with N tensors, each wrong in some way by chance, and prints how
many came in and how many were refused. What comes in is read; every deleter has run once.
"""

from __future__ import annotations

import ctypes
import gc
import random
import sys

import numpy as np

import pyop

LEFT = {}  # keeps memory that tensors point to, by the address of the tensor
DELETED = []


class DLTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Managed(ctypes.Structure):
    _fields_ = (("tensor", DLTensor), ("context", ctypes.c_void_p), ("deleter", DELETER))


class Versioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", DELETER),
        ("flags", ctypes.c_uint64),
        ("tensor", DLTensor),
    )


@DELETER
def deleter(address):
    DELETED.append(address)
    del LEFT[address]


new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype, new_capsule.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
NAMES = {}  # of capsules, which keep the pointer


def capsule(address, name):
    kept = NAMES.setdefault(name, ctypes.create_string_buffer(name))
    return new_capsule(address, ctypes.cast(kept, ctypes.c_char_p), None)


class Producer:
    """Hands out what it is told to."""

    def __init__(self, make, device=(1, 0)):
        self.make, self.place = make, device

    def __dlpack__(self, **options):
        return self.make()

    def __dlpack_device__(self):
        if isinstance(self.place, Exception):
            raise self.place
        return self.place


def tensor(versioned=True, **changed):
    """The address of a tensor of 2 x 3 numbers, some of it changed."""
    data = (ctypes.c_double * 16)(*range(16))
    shape, strides = (ctypes.c_int64 * 70)(2, 3), (ctypes.c_int64 * 70)(3, 1)
    fields = {
        "data": ctypes.addressof(data),
        "device_type": 1,
        "device_id": 0,
        "ndim": 2,
        "code": 2,
        "bits": 64,
        "lanes": 1,
        "shape": shape,
        "strides": strides,
        "byte_offset": 0,
    }
    outer = {"major": 1, "minor": 1, "flags": 0, "deleter": deleter}
    for name, value in changed.items():
        if name in ("shape", "strides") and value is not None:
            value = (ctypes.c_int64 * 70)(*value)
        (fields if name in fields else outer)[name] = value
    made = Versioned() if versioned else Managed()
    for name, value in fields.items():
        if name in ("shape", "strides"):
            value = ctypes.cast(value, ctypes.POINTER(ctypes.c_int64))
        setattr(made.tensor, name, value)
    made.deleter = outer["deleter"] or DELETER()
    if versioned:
        made.major, made.minor, made.flags = outer["major"], outer["minor"], outer["flags"]
    address = ctypes.addressof(made)
    LEFT[address] = (made, data, fields["shape"], fields["strides"])
    return address


def producer(versioned=True, name=None, device=(1, 0), **changed):
    label = name or (b"dltensor_versioned" if versioned else b"dltensor")
    return Producer(lambda: capsule(tensor(versioned=versioned, **changed), label), device)


def by_chance(r):
    """A producer that lies in up to three ways; none of them about memory that it has."""
    lies = {
        "device_type": lambda: r.choice([0, 2, 7, 99, -1, 2**31 - 1]),
        "ndim": lambda: r.choice([-1, 0, 1, 3, 65, 10**6, -(2**31)]),
        "code": lambda: r.randrange(256),
        "bits": lambda: r.choice([0, 1, 3, 8, 16, 32, 128, 255]),
        "lanes": lambda: r.choice([0, 2, 65535]),
        "shape": lambda: r.choice([None, [-1, 3], [0, 3], [2**62, 2**62], [2**63 - 1, 2], [1, 1], [2, 0]]),
        "strides": lambda: r.choice([None, [0, 0], [1, 2], [2**62, 1], [-(2**63), 1], [0, 1]]),
        "data": lambda: None,
        "byte_offset": lambda: r.choice([0, 8, 1, 2**64 - 1]),
        "major": lambda: r.choice([0, 2, 2**32 - 1]),
        "flags": lambda: r.randrange(8),
        "deleter": lambda: None,
        "name": lambda: r.choice([b"dltensor", b"used_dltensor", b"", b"dltensor_versioned "]),
        "device": lambda: r.choice([(2, 0), (1, 0, 0), None, (1.5, 0), ("cpu", 0), OSError("no device")]),
    }
    chosen = {name: lies[name]() for name in r.sample(sorted(lies), r.choice([0, 1, 1, 2, 3]))}
    if "shape" in chosen and chosen["shape"] not in (None, [-1, 3], [0, 3], [2, 0], [1, 1]):
        chosen.pop("strides", None)
    versioned = "major" in chosen or r.random() < 0.7
    if chosen.get("name") == b"dltensor":  # a name that is wrong about the structure is beyond what can be told
        versioned = False
        chosen.pop("major", None)
    if not versioned:
        chosen.pop("flags", None)
    return producer(versioned, **chosen)


def main(seed, n):
    r = random.Random(seed)
    total = pyop.op("_ -> float64[]")(lambda x: np.float64(x.nbytes))
    plan = pyop.trace(total, "_").compile()
    counts = {"in": 0, "refused": 0}
    for _ in range(n):
        x = by_chance(r)
        call = r.choice([total, plan, pyop.from_dlpack])
        try:
            found = call(x)
        except (TypeError, ValueError, BufferError):
            counts["refused"] += 1
        else:
            np.asarray(found).tobytes()
            counts["in"] += 1
        del x
    found = None
    gc.collect()
    print(counts["in"], counts["refused"])


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
