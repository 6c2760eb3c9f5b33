// array/memory/pool.h: keep the memory of results for the next result when an array dies.
//
// The C library gives large blocks back to the system when they are freed, and the next result then pays a page
// fault for every 4 KiB that it writes: up to nine tenths of the time of a plan on 10^5 elements. So blocks that
// come from here go back to the pool, not to the system:
//
//     array dies ──► handler's free ──► pool_give ──► kept, newest first, one stack per size class
//                                                       │ more than the limit is kept: the oldest go
//     next result ◄── pooled_array_new ◄── pool_take ◄──┘
//
// An array made here is an ordinary ndarray that owns its data (`flags.owndata`, no base). What NumPy has to know
// is its `mem_handler` (NEP 49), a capsule whose functions are ours: `resize` and the end of the array come here,
// whoever holds the array last, and whether or not pyop's module still exists.
//
// Lifetime: a block begins with a header of one cache line that says how large it is, because NumPy's word for the
// size is what the array's shape and dtype are when it dies, and those can be assigned. The pool has no destructor
// and the capsule is immortal: arrays outlive modules.
// Threads: pool_take and pool_give may run on any thread, attached or not, and in the child of a fork; a spin lock
// guards the lists, and no system call is made while it is held. Everything with Python objects: attached.
#pragma once

#include "array/numpy.h"

namespace pyop {

// Makes the handler; 0, or -1 with the error set.
int pool_init();

// An ndarray of undefined content that owns memory from the pool. `strides` null is C order; otherwise they are not
// negative and place every element within the memory that C order would take (a permutation of it). What is too
// small to gain, has no bytes or holds references is made by NumPy as always. New reference, or nullptr with the
// error set.
PyObject* pooled_array_new(PyArray_Descr* dtype /* borrowed */, int ndim, const npy_intp* dims,
                           const npy_intp* strides);

// A block of at least `bytes` bytes on a 64-byte boundary, for scratch and temporaries; nullptr if memory ran out
// (no Python error is set). To be returned with pool_give.
void* pool_take(size_t bytes);
void pool_give(void* data);
// How many bytes the block has room for.
size_t pool_room(void* data);

struct PoolStats {
    size_t limit;             // bytes kept at most
    size_t kept;              // bytes kept now
    size_t blocks;            // in so many blocks
    unsigned long long hits;  // blocks handed out again
    unsigned long long misses;   // blocks asked of the system
    unsigned long long evicted;  // blocks given back to the system
};
PoolStats pool_stats();

// Keeps at most `bytes` from now on; returns the old limit. Zero: nothing is kept.
size_t pool_set_limit(size_t bytes);

// Gives all that is kept back to the system; returns how many bytes.
size_t pool_trim();

}  // namespace pyop
