// array/protocol/scalar_operator.cpp: make a built-in function for each operator, once, that takes arrays as scalars.
#include "array/protocol/scalar_operator.h"

#include <array>

#include "array/protocol/operators.h"
#include "runtime/ref.h"

namespace pyop {

namespace {

PyObject* plain_power(PyObject* a, PyObject* b) { return PyNumber_Power(a, b, Py_None); }
template <int op>
PyObject* compare(PyObject* a, PyObject* b) {
    return PyObject_RichCompare(a, b, op);
}

constexpr OperatorRow kMoreRows[] = {
    {"power", plain_power, nullptr, nullptr},
    {"less", compare<Py_LT>, nullptr, nullptr},
    {"less_equal", compare<Py_LE>, nullptr, nullptr},
    {"equal", compare<Py_EQ>, nullptr, nullptr},
    {"not_equal", compare<Py_NE>, nullptr, nullptr},
    {"greater", compare<Py_GT>, nullptr, nullptr},
    {"greater_equal", compare<Py_GE>, nullptr, nullptr},
};
constexpr size_t kMoreRowsCount = std::size(kMoreRows);
constexpr size_t kRows = kOperators + kMoreRowsCount;

constexpr const OperatorRow& row(size_t i) { return i < kOperators ? kOperatorRows[i] : kMoreRows[i - kOperators]; }

// A scalar for an array of no dimension, anything else as it is.
Ref scalar_of(PyObject* o) {
    if (!is_exact_array(o) || PyArray_NDIM(as_array(o)) != 0) return Ref::borrow(o);
    return Ref::steal(PyArray_Scalar(PyArray_DATA(as_array(o)), PyArray_DESCR(as_array(o)), o));
}

template <size_t i>
PyObject* call(PyObject*, PyObject* const* args, Py_ssize_t n) {
    constexpr const OperatorRow& does = row(i);
    constexpr bool unary = i >= static_cast<size_t>(Operator::Negative) && i < kOperators;
    if (n != (unary ? 1 : 2)) {
        PyErr_Format(PyExc_TypeError, "the operator %s of scalars got %zd operands", does.ufunc, n);
        return nullptr;
    }
    Ref a = scalar_of(args[0]);
    if (!a) return nullptr;
    if constexpr (unary) {
        return does.unary(a.get());
    } else {
        Ref b = scalar_of(args[1]);
        return b ? does.binary(a.get(), b.get()) : nullptr;
    }
}

template <size_t... i>
std::array<PyMethodDef, kRows> definitions(std::index_sequence<i...>) {
    return {PyMethodDef{row(i).ufunc, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(call<i>)),
                        METH_FASTCALL, "An operator between scalars."}...};
}

struct Entry {
    PyObject* ufunc;
    PyObject* function;
};

// For the life of the process; null with an error set.
const std::array<Entry, kRows>* table() {
    static std::array<PyMethodDef, kRows> methods = definitions(std::make_index_sequence<kRows>());
    static std::array<Entry, kRows> entries{};
    if (PYOP_LIKELY(entries.back().function)) return &entries;
    PyObject* numpy = numpy_module();
    for (size_t i = 0; numpy && i < kRows; ++i) {
        Ref ufunc = Ref::steal(PyObject_GetAttrString(numpy, row(i).ufunc));
        Ref function = Ref::steal(PyCFunction_New(&methods[i], nullptr));
        if (!ufunc || !function) return nullptr;
        entries[i] = {ufunc.release(), function.release()};
    }
    return numpy ? &entries : nullptr;
}

}  // namespace

PyObject* scalar_operator(PyObject* ufunc) {
    const auto* entries = table();
    if (!entries) PyErr_Clear();
    for (size_t i = 0; entries && i < kRows; ++i)
        if ((*entries)[i].ufunc == ufunc) return (*entries)[i].function;
    return nullptr;
}

}  // namespace pyop
