// plan/captured.cpp: reads the rows that Python lists, and compares each with what is there now.
#include "plan/captured.h"

#include <algorithm>
#include <cstring>

namespace pyop {

namespace {

bool same_items(PyObject* owner, PyObject* items) {
    const Py_ssize_t n = PyTuple_GET_SIZE(items);
    PyObject* const* expected = &PyTuple_GET_ITEM(items, 0);
    if (PyList_Check(owner))
        return PyList_GET_SIZE(owner) == n && std::equal(expected, expected + n, &PyList_GET_ITEM(owner, 0));
    if (PyDict_GET_SIZE(owner) * 2 != n) return false;
    PyObject *key, *value;
    Py_ssize_t at = 0;
    for (Py_ssize_t i = 0; i < n && PyDict_Next(owner, &at, &key, &value); i += 2)
        if (expected[i] != key || expected[i + 1] != value) return false;
    return true;
}

bool same_bytes(PyArrayObject* a, PyObject* bytes) {
    const auto n = static_cast<size_t>(PyArray_NBYTES(a));
    return n == static_cast<size_t>(PyBytes_GET_SIZE(bytes)) &&
           std::memcmp(PyArray_DATA(a), PyBytes_AS_STRING(bytes), n) == 0;
}

bool is_row(PyObject* row) {
    if (!PyTuple_Check(row) || PyTuple_GET_SIZE(row) != 4 || !PyBytes_Check(PyTuple_GET_ITEM(row, 0))) return false;
    PyObject *owner = PyTuple_GET_ITEM(row, 1), *key = PyTuple_GET_ITEM(row, 2), *value = PyTuple_GET_ITEM(row, 3);
    switch (static_cast<ReadingKind>(PyBytes_AS_STRING(PyTuple_GET_ITEM(row, 0))[0])) {
        case ReadingKind::Name:
            return PyDict_Check(owner) && PyUnicode_CheckExact(key);
        case ReadingKind::Cell:
            return PyCell_Check(owner);
        case ReadingKind::Type:
            return PyType_Check(owner) && PyUnicode_CheckExact(key);
        case ReadingKind::Items:
            return (PyList_Check(owner) || PyDict_Check(owner)) && PyTuple_CheckExact(value);
        case ReadingKind::Bytes:
            return is_exact_array(owner) && PyBytes_CheckExact(value);
    }
    return false;
}

// What `value` is where there is nothing.
PyObject* or_null(PyObject* value) { return value == Py_Ellipsis ? nullptr : value; }

}  // namespace

int Captured::set(PyObject* readings) {
    std::vector<Row> rows;
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(readings); ++k) {
        PyObject* row = PyTuple_GET_ITEM(readings, k);
        if (!is_row(row)) {
            PyErr_Format(PyExc_TypeError, "not a reading: %R", row);
            return -1;
        }
        rows.push_back({static_cast<ReadingKind>(PyBytes_AS_STRING(PyTuple_GET_ITEM(row, 0))[0]),
                        PyTuple_GET_ITEM(row, 1), PyTuple_GET_ITEM(row, 2), PyTuple_GET_ITEM(row, 3)});
    }
    readings_ = Ref::borrow(readings);
    rows_ = std::move(rows);
    return 0;
}

bool Captured::holds(const Row& row) {
    switch (row.kind) {
        case ReadingKind::Name:
            return PyDict_GetItemWithError(row.owner, row.key) == or_null(row.value);  // keys of text raise nothing
        case ReadingKind::Cell:
            return PyCell_GET(row.owner) == or_null(row.value);
        case ReadingKind::Type:
            return _PyType_Lookup(reinterpret_cast<PyTypeObject*>(row.owner), row.key) == or_null(row.value);
        case ReadingKind::Items:
            return same_items(row.owner, row.value);
        case ReadingKind::Bytes:
            return same_bytes(as_array(row.owner), row.value);
    }
    return false;
}

bool Captured::compare() const { return std::all_of(rows_.begin(), rows_.end(), holds); }

int Captured::traverse(visitproc visit, void* arg) const {
    Py_VISIT(readings_.get());
    return 0;
}

}  // namespace pyop
