// tests/cpp/bench.cpp: what dropping a reference costs, and telling an ndarray, in nanoseconds of this thread's CPU
// time.
#include <time.h>  // clock_gettime

#include <utility>  // std::move
#include <vector>   // std::vector

#include "array/numpy.h"
#include "registry.h"
#include "runtime/attach.h"
#include "runtime/reaper.h"
#include "runtime/shared_ref.h"

namespace {

using pyop::SharedRef;
using Refs = std::vector<SharedRef>;

double cpu_ns() {
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

// Each owns the last reference to an object of its own (a float: the cheapest to destroy).
Refs stock(size_t n) {
    Refs refs(n);
    for (SharedRef& ref : refs) {
        ref = SharedRef::steal(PyFloat_FromDouble(1.5));
    }
    return refs;
}

double time_each(Refs& refs) {
    const double start = cpu_ns();
    for (SharedRef& ref : refs) {
        ref.reset();
    }
    return (cpu_ns() - start) / static_cast<double>(refs.size());
}

PyObject* bench_drop(PyObject*, PyObject* count) {
    const Py_ssize_t n = PyLong_AsSsize_t(count);
    if (n <= 0) {
        return PyErr_Format(PyExc_ValueError, "bench_drop needs a positive number of references, got %R", count);
    }
    pyop::drain();
    Refs here = stock(static_cast<size_t>(n));
    const double with_gil = time_each(here);
    Refs there = stock(static_cast<size_t>(n));
    double without = 0;
    {
        pyop::DetachScope no_gil;
        without = time_each(there);
    }
    const double start = cpu_ns();
    pyop::drain();
    return Py_BuildValue("ddd", with_gil, without, (cpu_ns() - start) / static_cast<double>(n));
}

// The objects one after the other, as arguments of a call are, and whether each is an ndarray.
PyObject* bench_exact(PyObject*, PyObject* objects) {
    if (!PyTuple_Check(objects) || PyTuple_GET_SIZE(objects) == 0)
        return PyErr_Format(PyExc_TypeError, "bench_exact needs a tuple of objects, got %R", objects);
    constexpr int kRounds = 100'000;
    const Py_ssize_t n = PyTuple_GET_SIZE(objects);
    bool all = true;
    const double start = cpu_ns();
    for (int round = 0; round < kRounds; ++round) {
        for (Py_ssize_t k = 0; k < n; ++k) {
            PyObject* object = PyTuple_GET_ITEM(objects, k);
            asm volatile("" : "+r"(object));  // told anew each time
            all &= pyop::is_exact_array(object);
        }
    }
    const double each = (cpu_ns() - start) / kRounds / static_cast<double>(n);
    return Py_BuildValue("dO", each, all ? Py_True : Py_False);
}

}  // namespace

PyMethodDef ctests::bench_methods[] = {
    {"bench_drop", bench_drop, METH_O,
     "bench_drop(n) -> (attached, detached, drain): nanoseconds for each last reference dropped with the "
     "GIL, "
     "without it, and for releasing the latter afterwards."},
    {"bench_exact", bench_exact, METH_O,
     "bench_exact(objects) -> (ns, all): nanoseconds to tell whether an object is an ndarray; whether all are."},
    {nullptr, nullptr, 0, nullptr},
};
