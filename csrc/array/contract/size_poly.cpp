// array/contract/size_poly.cpp: read the terms of a Dim, and evaluate them with overflow checks.
#include "array/contract/size_poly.h"

#include "runtime/ref.h"
#include "runtime/up_calls.h"

namespace pyop {

bool SizePoly::evaluate(const npy_intp* symbols, npy_intp& value) const {
    value = 0;
    for (const Term& term : terms) {
        npy_intp product = term.factor;
        for (const uint16_t s : term.symbols)
            if (__builtin_mul_overflow(product, symbols[s], &product)) return false;
        if (__builtin_add_overflow(value, product, &value)) return false;
    }
    return true;
}

namespace {

bool read_term(PyObject* term, PyObject* names, SizePoly::Term& out) {
    PyObject *monomial, *factor;
    if (!PyArg_ParseTuple(term, "O!O", &PyTuple_Type, &monomial, &factor)) return false;
    out.factor = PyNumber_AsSsize_t(factor, PyExc_OverflowError);
    if (out.factor == -1 && PyErr_Occurred()) return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(monomial); ++i) {
        PyObject* atom = PyTuple_GET_ITEM(monomial, i);
        if (!PyUnicode_Check(atom)) return false;
        Py_ssize_t k = 0;
        while (k < PyTuple_GET_SIZE(names) && PyUnicode_Compare(PyTuple_GET_ITEM(names, k), atom) != 0) ++k;
        if (k == PyTuple_GET_SIZE(names)) return false;
        out.symbols.push_back(static_cast<uint16_t>(k));
    }
    return true;
}

}  // namespace

bool read_size_poly(PyObject* dim, PyObject* names, SizePoly& poly) {
    Ref terms = Ref::steal(PyObject_GetAttr(dim, up_attributes.terms));
    bool read = terms && PyTuple_Check(terms.get());
    for (Py_ssize_t i = 0; read && i < PyTuple_GET_SIZE(terms.get()); ++i)
        read = read_term(PyTuple_GET_ITEM(terms.get(), i), names, poly.terms.emplace_back());
    PyErr_Clear();
    return read;
}

}  // namespace pyop
