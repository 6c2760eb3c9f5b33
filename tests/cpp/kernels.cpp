// tests/cpp/kernels.cpp: kernels called on arrays from Python, at every level that this processor has
// (tests/kernels/test_kernels.py).
#include <cfenv>   // std::fetestexcept, std::feclearexcept
#include <chrono>  // std::chrono::steady_clock
#include <cmath>   // std::erf, std::erfc
#include <vector>  // std::vector

#include "kernels/level.h"
#include "registry.h"
#include "runtime/ref.h"

namespace {

using namespace pyop;

constexpr int kFlags = FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW | FE_INVALID;

const KernelLevel* level_of(const char* name) {
    for (const KernelLevel* level : kernel_levels())
        if (std::string_view(level->name) == name) return level;
    PyErr_Format(PyExc_ValueError, "this processor has no level '%s'", name);
    return nullptr;
}

// (level, what, ...): a kernel as an integer, 0 if there is none; null with the error set.
PyObject* find(PyObject*, PyObject* args) {
    const char *level_name, *what, *a = "", *b = "", *c = "", *d = "";
    int e = 0, f = 0;
    if (!PyArg_ParseTuple(args, "ssii|ssss", &level_name, &what, &e, &f, &a, &b, &c, &d)) return nullptr;
    const KernelLevel* level = level_of(level_name);
    if (!level) return nullptr;
    const auto element = static_cast<Element>(e);
    const std::string_view kind = what;
    Kernel kernel = nullptr;
    if (kind == "kernel") kernel = level->find_kernel(operation_of(a), element);
    if (kind == "number")  // f: whether the number is the first operand
        kernel = level->find_with_number(operation_of(a), f != 0, element);
    if (kind == "cast") kernel = level->find_cast(element, static_cast<Element>(f));
    if (kind == "fast") kernel = level->find_fast(a, element);
    if (kind == "fused") kernel = level->find_fused(operation_of(a), operation_of(b), operation_of(c), element);
    if (kind == "tail")  // f: whether what is fused is the first operand
        kernel =
            level->find_fused_tail(operation_of(a), f != 0, operation_of(b), operation_of(c), operation_of(d), element);
    return PyLong_FromVoidPtr(reinterpret_cast<void*>(kernel));
}

// Contiguous memory of arrays, for as long as this lives.
class Buffers {
  public:
    explicit Buffers(PyObject* arrays) : views_(static_cast<size_t>(PyTuple_GET_SIZE(arrays))) {
        for (size_t i = 0; i < views_.size(); ++i) {
            if (PyObject_GetBuffer(PyTuple_GET_ITEM(arrays, static_cast<Py_ssize_t>(i)), &views_[i], PyBUF_SIMPLE) != 0)
                return;
            data.push_back(static_cast<char*>(views_[i].buf));
        }
    }
    ~Buffers() {
        for (size_t i = 0; i < data.size(); ++i) PyBuffer_Release(&views_[i]);
    }
    Buffers(const Buffers&) = delete;
    Buffers& operator=(const Buffers&) = delete;
    bool ok() const { return data.size() == views_.size(); }

    std::vector<char*> data;

  private:
    std::vector<Py_buffer> views_;
};

// (kernel, n, arrays): runs it; the flags it raised.
PyObject* run(PyObject*, PyObject* args) {
    PyObject *address, *arrays;
    Py_ssize_t n;
    if (!PyArg_ParseTuple(args, "OnO!", &address, &n, &PyTuple_Type, &arrays)) return nullptr;
    const auto kernel = reinterpret_cast<Kernel>(PyLong_AsVoidPtr(address));
    Buffers buffers(arrays);
    if (!kernel || !buffers.ok()) return nullptr;
    std::feclearexcept(FE_ALL_EXCEPT);
    kernel(buffers.data.data(), n);
    const int flags = std::fetestexcept(kFlags);
    std::feclearexcept(FE_ALL_EXCEPT);
    return Py_BuildValue("(iiii)", flags & FE_DIVBYZERO ? 1 : 0, flags & FE_OVERFLOW ? 1 : 0,
                         flags & FE_UNDERFLOW ? 1 : 0, flags & FE_INVALID ? 1 : 0);
}

// (level, gather?, to, from, stride, n, itemsize, offset): offset, in bytes, of the strided side's first element.
PyObject* move(PyObject*, PyObject* args) {
    const char* level_name;
    int is_gather;
    PyObject* arrays;
    Py_ssize_t stride, n, itemsize, offset;
    if (!PyArg_ParseTuple(args, "spO!nnnn", &level_name, &is_gather, &PyTuple_Type, &arrays, &stride, &n, &itemsize,
                          &offset))
        return nullptr;
    const KernelLevel* level = level_of(level_name);
    Buffers buffers(arrays);
    if (!level || !buffers.ok()) return nullptr;
    const auto size = static_cast<size_t>(itemsize);
    if (is_gather)
        level->gather(buffers.data[0], buffers.data[1] + offset, stride, n, size);
    else
        level->scatter(buffers.data[0] + offset, stride, buffers.data[1], n, size);
    Py_RETURN_NONE;
}

// (kernel, n, arrays, rounds): seconds for one call.
PyObject* time(PyObject*, PyObject* args) {
    PyObject *address, *arrays;
    Py_ssize_t n, rounds;
    if (!PyArg_ParseTuple(args, "OnO!n", &address, &n, &PyTuple_Type, &arrays, &rounds)) return nullptr;
    const auto kernel = reinterpret_cast<Kernel>(PyLong_AsVoidPtr(address));
    Buffers buffers(arrays);
    if (!kernel || !buffers.ok()) return nullptr;
    const auto start = std::chrono::steady_clock::now();
    for (Py_ssize_t i = 0; i < rounds; ++i) kernel(buffers.data.data(), n);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    return PyFloat_FromDouble(taken.count() / static_cast<double>(rounds));
}

// (name, (from, to)): erf or erfc of doubles as long doubles, which NumPy does not have.
PyObject* reference(PyObject*, PyObject* args) {
    const char* name;
    PyObject* arrays;
    Py_ssize_t n;
    if (!PyArg_ParseTuple(args, "snO!", &name, &n, &PyTuple_Type, &arrays)) return nullptr;
    Buffers buffers(arrays);
    if (!buffers.ok()) return nullptr;
    const auto* from = reinterpret_cast<const double*>(buffers.data[0]);
    auto* to = reinterpret_cast<long double*>(buffers.data[1]);
    const bool complement = std::string_view(name) == "erfc";
    for (Py_ssize_t i = 0; i < n; ++i) {
        const auto x = static_cast<long double>(from[i]);
        to[i] = complement ? std::erfc(x) : std::erf(x);
    }
    Py_RETURN_NONE;
}

// (level, ufunc, units, n, (x, to, settled)): an exact function, of which a byte says for each result whether it is
// settled, where its own error is taken for `units` of the last place and libm's for that of rounding. Its own error as
// its source has it; None if the level has no such function.
PyObject* exact(PyObject*, PyObject* args) {
    const char *level_name, *name;
    double units;
    PyObject* arrays;
    Py_ssize_t n;
    if (!PyArg_ParseTuple(args, "ssdnO!", &level_name, &name, &units, &n, &PyTuple_Type, &arrays)) return nullptr;
    const KernelLevel* level = level_of(level_name);
    Buffers buffers(arrays);
    if (!level || !buffers.ok()) return nullptr;
    for (const ExactFunction* function : level->exact_functions()) {
        if (function->ufunc != name) continue;
        static OpenLanes open;
        const auto* x = reinterpret_cast<const double*>(buffers.data[0]);
        auto* to = reinterpret_cast<double*>(buffers.data[1]);
        for (Py_ssize_t i = 0; i < n; i += kMostExact) {
            const Py_ssize_t count = n - i < kMostExact ? n - i : kMostExact;
            function->settle(x + i, to + i, count, units, open);
            for (Py_ssize_t k = 0; k < count; ++k) buffers.data[2][i + k] = 1;
            for (Py_ssize_t k = 0; k < open.n; ++k) buffers.data[2][i + open.places[k]] = 0;
        }
        return PyFloat_FromDouble(function->own);
    }
    Py_RETURN_NONE;
}

PyObject* levels(PyObject*, PyObject*) {
    Ref names = Ref::steal(PyList_New(0));
    for (const KernelLevel* level : kernel_levels()) {
        const Ref name = Ref::steal(PyUnicode_FromString(level->name));
        if (!names || !name || PyList_Append(names.get(), name.get()) != 0) return nullptr;
    }
    return names.release();
}

}  // namespace

PYOP_TEST(kernels_keep_flags) {
    double quiet_nan = __builtin_nan(""), one = 1, written[8];
    double x[8], y[8];
    for (int i = 0; i < 8; ++i) x[i] = i % 2 ? one : quiet_nan, y[i] = one;
    char* data[] = {reinterpret_cast<char*>(x), reinterpret_cast<char*>(y), reinterpret_cast<char*>(written)};
    for (const KernelLevel* level : kernel_levels()) {
        for (const Operation op : {Operation::Less, Operation::Maximum, Operation::Add}) {
            const auto kernel = level->find_kernel(op, Element::F64);
            if (!kernel) continue;  // other processors than x86 have fewer
            for (const int up : {0, FE_INVALID, FE_DIVBYZERO}) {
                std::feclearexcept(FE_ALL_EXCEPT);
                if (up) std::feraiseexcept(up);
                kernel(data, 7);
                EXPECT_EQ(std::fetestexcept(kFlags), up);
            }
        }
    }
    std::feclearexcept(FE_ALL_EXCEPT);
}

namespace ctests {

PyMethodDef kernel_methods[] = {
    {"kernel_levels", levels, METH_NOARGS, "The levels this processor has, the best last."},
    {"kernel_find", find, METH_VARARGS, "(level, 'kernel'|'fused'|'cast'|'fast', element, element, names...)"},
    {"kernel_run", run, METH_VARARGS, "(kernel, n, arrays) -> flags raised"},
    {"kernel_time", time, METH_VARARGS, "(kernel, n, arrays, rounds) -> seconds a call"},
    {"long_double_erf", reference, METH_VARARGS, "('erf'|'erfc', n, (from, to))"},
    {"kernel_exact", exact, METH_VARARGS, "(level, ufunc, units, n, (x, to, settled)) -> its own error, or None"},
    {"kernel_move", move, METH_VARARGS, "(level, gather, (to, from), stride, n, itemsize, offset)"},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace ctests
