/* pyop/entry.h: plans of pyop, called from C, C++, Cython, Fortran or whatever calls C. Plain C99, no Python needed.

   A pyop_plan comes from Python, as `plan.address` (an integer: the pyop_plan*), which is good as long as the plan
   lives, or as `plan.capsule` (a PyCapsule named PYOP_PLAN_CAPSULE, whose context is the plan), which keeps the plan
   alive. All there is to call is in the table that it points to, so nothing need be imported or linked:

       const double x = 0.5;
       double y;
       const void* in[] = {&x};
       void* out[] = {&y};
       if (pyop_plan_call(plan, in, out) != PYOP_OK) fprintf(stderr, "%s\n", pyop_message(plan));

   Numbers. `in` has a pointer for each input of the plan, `out` one for each result, in the order of the plan's `out=`;
   dtypes and sizes are those that pyop_input() and pyop_output() tell. Elements lie side by side in C order, and may
   lie anywhere: no alignment is asked for. What is read is not written, and `out` is written only when the call has
   succeeded, when all of `in` has been read: arrays of `in` and `out` may be the same or overlap. Arrays of `out` are
   written in their order.

   Threads. Any thread may call, known to Python or not, with the GIL or without, many at once, also through one
   pyop_plan. Where pyop_is_native() says 1 a call needs neither Python nor its lock, unless the processor raises a
   floating-point flag; see below. Otherwise it takes the GIL for the length of the call. Do not hold a lock of your own
   then that some holder of the GIL may be waiting for. The processor's floating-point flags are pyop's to change.

   Failures. The status is negative, and pyop_message() has the words until the next failure on this thread. Who holds
   the GIL has the Python exception set besides, as after any function of Python's C API; who does not can have it set
   by pyop_raise(), on the same thread, with the GIL then taken, as it was raised.

   Floating-point errors warn or raise as NumPy does, by the np.errstate of the calling thread (a thread that Python
   does not know has NumPy's defaults). Where a flag is up in the end, which may have been so before the call, all is
   computed once more; if it is raised again the GIL is taken to ask for that; only an underflow on a thread that Python
   does not know is ignored without.

   The end of Python. Plans that were asked for their address live on when Python shuts down, and native calls go on.
   What needs Python is PYOP_SHUT_DOWN then, and what uses BLAS (products of arrays), which ends, too. A call that is
   in Python when that ends may never return, as with any C code. */
#ifndef PYOP_ENTRY_H
#define PYOP_ENTRY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of the table below, which only ever gets longer. */
#define PYOP_ENTRY_VERSION 1
#define PYOP_PLAN_CAPSULE "pyop.plan"

enum pyop_status {
    PYOP_OK = 0,
    PYOP_RAISED = -1,    /* a Python exception */
    PYOP_SHUT_DOWN = -2, /* Python is needed and is no more */
    PYOP_NO_MEMORY = -3
};

typedef struct pyop_array {
    const char* name;     /* of an input; of a result "" */
    const char* dtype;    /* in NumPy's words: "float64" */
    size_t itemsize;      /* bytes */
    int ndim;
    const int64_t* shape; /* ndim sizes */
    size_t bytes;         /* of all elements */
} pyop_array;

struct pyop_table;

/* The first word of a pyop_plan; what follows is pyop's own. */
typedef struct pyop_plan {
    const struct pyop_table* table;
} pyop_plan;

typedef struct pyop_table {
    uint32_t version; /* PYOP_ENTRY_VERSION of the pyop at hand */
    uint32_t size;    /* of the table, in bytes */
    int (*call)(const pyop_plan* plan, const void* const* in, void* const* out);
    const char* (*message)(void);
    int (*raise)(void);
    int (*is_native)(const pyop_plan* plan);
    size_t (*n_inputs)(const pyop_plan* plan);
    size_t (*n_outputs)(const pyop_plan* plan);
    const pyop_array* (*input)(const pyop_plan* plan, size_t i);
    const pyop_array* (*output)(const pyop_plan* plan, size_t i);
} pyop_table;

/* 0, or a pyop_status. */
static inline int pyop_plan_call(const pyop_plan* plan, const void* const* in, void* const* out) {
    return plan->table->call(plan, in, out);
}
/* What the last call that failed on this thread had to say; "" if none has. Good until the next one fails. */
static inline const char* pyop_message(const pyop_plan* plan) { return plan->table->message(); }
/* Sets the exception of the last call that failed on this thread; the GIL must be held. Always -1. */
static inline int pyop_raise(const pyop_plan* plan) { return plan->table->raise(); }
/* 1 if the plan computes without Python, else 0. */
static inline int pyop_is_native(const pyop_plan* plan) { return plan->table->is_native(plan); }
static inline size_t pyop_n_inputs(const pyop_plan* plan) { return plan->table->n_inputs(plan); }
static inline size_t pyop_n_outputs(const pyop_plan* plan) { return plan->table->n_outputs(plan); }
/* Good as long as the plan; null if there is no such input or result. */
static inline const pyop_array* pyop_input(const pyop_plan* plan, size_t i) { return plan->table->input(plan, i); }
static inline const pyop_array* pyop_output(const pyop_plan* plan, size_t i) { return plan->table->output(plan, i); }

#ifdef __cplusplus
}
#endif

#endif /* PYOP_ENTRY_H */
