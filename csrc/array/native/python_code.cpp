// array/native/python_code.cpp: run a Python function as the code of a ufunc, called for the arrays of each run of its
// loop.
//
// What it gets are copies: the memory that a loop is given is NumPy's, and gone when the loop is done, but a function
// may keep its arguments.
#include "array/native/python_code.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "array/native/native_code.h"
#include "runtime/errors.h"
#include "runtime/forced_exit.h"
#include "runtime/ref.h"

namespace pyop {

namespace {

constexpr const char* kCapsule = "pyop.python_code";

struct PythonCode {
    PyObject* function;  // borrowed: the owner of the code has it
    bool whole;          // it takes all repetitions at once, as a leading dimension
    int n_in;
    std::vector<int> types;
    std::vector<PyArray_Descr*> dtypes;   // of these; NumPy's own, which live for ever
    std::vector<std::vector<int>> cores;  // by operand: its core dimensions, by number
};

// Operand i of repetition `from`, or of all of them, as an array on the loop's memory. Empty with the error set.
Ref view_new(const PythonCode& code, size_t i, char* at, const npy_intp* sizes, const npy_intp* strides,
             const npy_intp* core_strides) {
    npy_intp dims[NPY_MAXDIMS], steps[NPY_MAXDIMS];
    int ndim = 0;
    if (code.whole) {
        dims[ndim] = sizes[0];
        steps[ndim++] = strides[i];
    }
    for (size_t d = 0; d < code.cores[i].size(); ++d) {
        dims[ndim] = sizes[1 + code.cores[i][d]];
        steps[ndim++] = core_strides[d];
    }
    return Ref::steal(
        PyArray_NewFromDescr(&PyArray_Type, PyArray_DescrFromType(code.types[i]), ndim, dims, steps, at,
                             NPY_ARRAY_ALIGNED | (static_cast<int>(i) < code.n_in ? 0 : NPY_ARRAY_WRITEABLE), nullptr));
}

int call_once(const PythonCode& code, npy_intp k, char* const* args, const npy_intp* sizes, const npy_intp* strides) {
    const size_t n = code.types.size(), n_in = static_cast<size_t>(code.n_in);
    const npy_intp* core_strides = strides + n;
    std::vector<Ref> owned;
    std::vector<PyObject*> argv(1);
    for (size_t i = 0; i < n_in; core_strides += code.cores[i++].size()) {
        Ref view = view_new(code, i, args[i] + k * strides[i], sizes, strides, core_strides);
        owned.push_back(view ? Ref::steal(PyArray_NewCopy(as_array(view.get()), NPY_CORDER)) : Ref());
        if (!owned.back()) return -1;
        argv.push_back(owned.back().get());
    }
    Ref result =
        Ref::steal(vectorcall_new(code.function, argv.data() + 1, n_in | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr));
    if (!result) return -1;
    const auto n_out = static_cast<Py_ssize_t>(n - n_in);
    if (n_out > 1 && (!PyTuple_Check(result.get()) || PyTuple_GET_SIZE(result.get()) != n_out)) {
        PyErr_Format(errors.output, "a ufunc of %zd outputs got %s from its op", n_out, Py_TYPE(result.get())->tp_name);
        return -1;
    }
    for (size_t i = n_in; i < n; core_strides += code.cores[i++].size()) {
        PyObject* value = n_out == 1 ? result.get() : PyTuple_GET_ITEM(result.get(), static_cast<Py_ssize_t>(i - n_in));
        Ref to = view_new(code, i, args[i] + k * strides[i], sizes, strides, core_strides);
        if (!to) return -1;
        if (!is_exact_array(value) || !PyArray_SAMESHAPE(as_array(value), as_array(to.get()))) {
            PyErr_Format(
                errors.output,
                "an op that is called as a ufunc must return arrays of the shape of its loop: output %zu is %R, "
                "but its place has shape %R",
                i - n_in, value, Ref::steal(PyObject_GetAttrString(to.get(), "shape")).get());
            return -1;
        }
        if (PyArray_CopyInto(as_array(to.get()), as_array(value)) < 0) return -1;
    }
    return 0;
}

// Whether a repetition reads what another one writes, as those of reduce and accumulate do.
bool in_order(const PythonCode& code, char* const* args, npy_intp n, const npy_intp* strides) {
    const auto low = [&](size_t i) { return args[i] + std::min<npy_intp>(strides[i] * (n - 1), 0); };
    const auto high = [&](size_t i) {
        return args[i] + std::max<npy_intp>(strides[i] * (n - 1), 0) + PyDataType_ELSIZE(code.dtypes[i]);
    };
    const size_t n_all = code.dtypes.size(), n_in = static_cast<size_t>(code.n_in);
    for (size_t o = n_in; o < n_all; ++o)
        for (size_t i = 0; i < n_in; ++i) {
            const bool same = args[i] == args[o] && strides[i] == strides[o] && strides[o] != 0;
            if (!same && low(i) < high(o) && low(o) < high(i)) return true;
        }
    return false;
}

// A pyop_kernel. With the GIL.
int call_python(char* const* args, const npy_intp* sizes, const npy_intp* strides, void* data) {
    const auto& code = *static_cast<const PythonCode*>(data);
    return guarded(
        [&] {
            const bool elementwise = std::all_of(code.cores.begin(), code.cores.end(),
                                                 [](const std::vector<int>& core) { return core.empty(); });
            const bool whole = code.whole && !(elementwise && in_order(code, args, sizes[0], strides));
            if (whole || sizes[0] <= 1) return sizes[0] ? call_once(code, 0, args, sizes, strides) : 0;
            std::vector<npy_intp> one(1, 1);
            for (const std::vector<int>& core : code.cores)
                for (const int k : core) one.resize(std::max(one.size(), static_cast<size_t>(k) + 2));
            std::copy(sizes + 1, sizes + one.size(), one.begin() + 1);
            for (npy_intp k = 0; k < sizes[0]; ++k)
                if (call_once(code, k, args, one.data(), strides) < 0) return -1;
            return 0;
        },
        -1);
}

void destroy(PyObject* capsule) { delete static_cast<PythonCode*>(PyCapsule_GetPointer(capsule, kCapsule)); }

int read_numbers(PyObject* tuple, std::vector<int>& numbers) {
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(tuple); ++k) {
        numbers.push_back(static_cast<int>(PyLong_AsLong(PyTuple_GET_ITEM(tuple, k))));
        if (numbers.back() == -1 && PyErr_Occurred()) return -1;
    }
    return 0;
}

// python_code(function, types, cores, n_in, whole) -> (address, data, capsule)
PyObject* python_code(PyObject*, PyObject* args) {
    PyObject *function, *types, *cores;
    int n_in, whole;
    if (!PyArg_ParseTuple(args, "OO!O!ip", &function, &PyTuple_Type, &types, &PyTuple_Type, &cores, &n_in, &whole))
        return nullptr;
    return guarded(
        [&]() -> PyObject* {
            auto code = std::make_unique<PythonCode>();
            code->function = function;
            code->whole = whole;
            code->n_in = n_in;
            if (read_numbers(types, code->types) < 0) return nullptr;
            for (const int type : code->types) {
                code->dtypes.push_back(PyArray_DescrFromType(type));
                if (!code->dtypes.back()) return nullptr;
                Py_DECREF(code->dtypes.back());
            }
            for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(cores); ++k)
                if (read_numbers(PyTuple_GET_ITEM(cores, k), code->cores.emplace_back()) < 0) return nullptr;
            Ref capsule = Ref::steal(PyCapsule_New(code.get(), kCapsule, destroy));
            if (!capsule) return nullptr;
            Ref address = Ref::steal(PyLong_FromVoidPtr(reinterpret_cast<void*>(call_python)));
            Ref data = Ref::steal(PyLong_FromVoidPtr(code.release()));
            return address && data ? PyTuple_Pack(3, address.get(), data.get(), capsule.get()) : nullptr;
        },
        static_cast<PyObject*>(nullptr));
}

PyMethodDef functions[] = {
    {"python_code", python_code, METH_VARARGS, "A Python function as a kernel: its address, its data, their owner."},
    {},
};

}  // namespace

int python_code_init(PyObject* module) { return PyModule_AddFunctions(module, functions); }

}  // namespace pyop
