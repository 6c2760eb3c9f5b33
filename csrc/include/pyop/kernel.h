/* pyop/kernel.h: compiled kernels that pyop calls: from C, C++, Cython, Fortran or whatever can be called as C.
   Plain C99.

   A kernel becomes an op by `pyop.native_op`, which takes a function in one of three forms (pyop_kernel_kind), either
   from a PyCapsule named PYOP_KERNEL_CAPSULE that holds a pyop_kernel_info, or by its address.

       static int scale(char *const *args, const intptr_t *sizes, const intptr_t *strides, void *data) {
           for (intptr_t i = 0; i < sizes[0]; ++i)
               *(double *)(args[1] + i * strides[1]) = 2.0 * *(const double *)(args[0] + i * strides[0]);
           return 0;
       }

   What a kernel is given. `args` has a pointer for each input, then one for each output. sizes[0] is how many times to
   compute; behind it stand the sizes of the core dimensions, each once, in the order in which the declaration first
   names them: "(m,n),(n)->(m)" and "float64[m,n], float64[n] -> float64[m]" both have {count, m, n}. `strides`, in
   bytes, has first the step of each argument from one computation to the next, and then, argument by argument, the
   steps along its own core dimensions: here {in0, in1, out, in0_m, in0_n, in1_n, out_m}. That is the layout of NumPy's
   ufunc loops. Steps may be 0 or negative. Elements are aligned, and in native byte order.

   What it must not do. It writes its outputs alone, and all of each. A kernel without core dimensions computes element
   by element, in order: an output may be one of its inputs, and reduce and accumulate of its ufunc give it as an input
   what it has written for the element before. With core dimensions outputs overlap nothing. `args`, `sizes` and
   `strides` are the caller's. It must not unwind (no C++ exception, no longjmp).

   Threads. Kernels run on any thread, several at once, without Python's lock, unless PYOP_KERNEL_GIL is set. On threads
   that Python does not know there may be no thread state to be had.

   Failures. A status other than 0 is a failure, and `message` has words for it; pyop raises RuntimeError with them. The
   results of a failed call are thrown away, and it may be made a second time to report it. A kernel of
   PYOP_KERNEL_GIL may set a Python exception instead, which is raised as it is.

   Floating-point flags that a kernel leaves raised are reported as NumPy reports those of its ufuncs (np.errstate). */
#ifndef PYOP_KERNEL_H
#define PYOP_KERNEL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of pyop_kernel_info, which only ever gets longer. */
#define PYOP_KERNEL_VERSION 1
#define PYOP_KERNEL_CAPSULE "pyop.kernel"

typedef int (*pyop_kernel)(char* const* args, const intptr_t* sizes, const intptr_t* strides, void* data);

/* As NumPy has it (PyUFuncGenericFunction): no status, and it may advance the pointers in `args`. */
typedef void (*pyop_ufunc_loop)(char** args, const intptr_t* sizes, const intptr_t* strides, void* data);

enum pyop_kernel_kind {
    PYOP_KERNEL = 0,    /* a pyop_kernel */
    PYOP_UFUNC_LOOP = 1, /* a pyop_ufunc_loop */
    PYOP_SCALAR = 2     /* a function of numbers, such as double f(double, int): pyop loops over elements */
};

enum pyop_kernel_flags {
    PYOP_KERNEL_GIL = 1,      /* it is called with Python's lock held */
    PYOP_KERNEL_STATEFUL = 2, /* it has side effects or hidden inputs: never merged, folded or left out */
    PYOP_KERNEL_RAISES = 4    /* it may set a Python exception, on a thread that Python knows */
};

/* Everything that is pointed to is the capsule's, and lives as long: a capsule that is destroyed frees it. The op keeps
   the capsule. Unused members are 0. */
typedef struct pyop_kernel_info {
    uint32_t version;         /* PYOP_KERNEL_VERSION */
    uint32_t kind;            /* enum pyop_kernel_kind */
    void (*function)(void);   /* cast to this */
    void* data;               /* the kernel's last argument */
    uint32_t flags;           /* enum pyop_kernel_flags */
    const char* name;         /* of the op */
    const char* declaration;  /* "float64[m,n], float64[n] -> float64[m]"; optional with PYOP_SCALAR */
    const char* c_signature;  /* of a PYOP_SCALAR: "double (double, int)" */
    /* Words for a status; called on the thread of the failure, right behind it. Optional. */
    const char* (*message)(int status, void* data);
} pyop_kernel_info;

#ifdef __cplusplus
}
#endif

#endif /* PYOP_KERNEL_H */
