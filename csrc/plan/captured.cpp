// plan/captured.cpp: read the rows that Python lists, and compare each with the present state.
#include "plan/captured.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "array/memory/overlap.h"
#include "runtime/items.h"

namespace pyop {

namespace {

bool same_items(PyObject* owner, PyObject* items) {
    const ObjectLock lock(owner);
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

bool same_walk(PyObject* owner, PyTypeObject* kind, PyObject* items) {
    const Ref iterator = Ref::steal(kind->tp_iter(owner));
    const Py_ssize_t n = PyTuple_GET_SIZE(items);
    Py_ssize_t k = 0;
    bool same = static_cast<bool>(iterator);
    while (same) {
        const Ref item = Ref::steal(Py_TYPE(iterator.get())->tp_iternext(iterator.get()));
        if (!item) break;
        same = k < n && PyTuple_GET_ITEM(items, k) == item.get();
        ++k;
    }
    if (PyErr_Occurred()) {
        PyErr_Clear();
        return false;
    }
    return same && k == n;
}

// An array whose elements lie together: this one, or a copy of it.
Ref together(PyArrayObject* a) {
    if (PyArray_IS_C_CONTIGUOUS(a) || PyArray_IS_F_CONTIGUOUS(a)) return Ref::borrow(as_object(a));
    return Ref::steal(PyArray_NewCopy(a, NPY_CORDER));
}

bool same_form(PyArrayObject* a, PyArrayObject* form) {
    if (PyArray_NDIM(a) != PyArray_NDIM(form)) return false;
    for (int k = 0; k < PyArray_NDIM(form); ++k)
        if (PyArray_DIM(a, k) != PyArray_DIM(form, k)) return false;
    return PyArray_DESCR(a) == PyArray_DESCR(form) || PyArray_EquivTypes(PyArray_DESCR(a), PyArray_DESCR(form));
}

bool same_bytes(const void* data, size_t n, PyObject* bytes) {
    return n == static_cast<size_t>(PyBytes_GET_SIZE(bytes)) && std::memcmp(data, PyBytes_AS_STRING(bytes), n) == 0;
}

bool same_array(PyArrayObject* a, PyArrayObject* form, PyObject* bytes) {
    if (!same_form(a, form)) return false;
    if (PYOP_LIKELY(PyArray_FLAGS(a) & (NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_F_CONTIGUOUS)))
        return std::memcmp(PyArray_DATA(a), PyBytes_AS_STRING(bytes), PyBytes_GET_SIZE(bytes)) == 0;
    const int same = same_elements(a, bytes);
    if (same < 0) PyErr_Clear();
    return same == 1;
}

bool same_buffer(PyObject* owner, PyObject* bytes) {
    Py_buffer view;
    if (PyObject_GetBuffer(owner, &view, PyBUF_FULL_RO) < 0) {
        PyErr_Clear();
        return false;
    }
    const bool same = PyBuffer_IsContiguous(&view, 'A') && same_bytes(view.buf, static_cast<size_t>(view.len), bytes);
    PyBuffer_Release(&view);
    return same;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // CPython 3.12 and 3.13 still count
// Where a dict has a number that no dict had before this one was last changed; null where the interpreter does not
// tell: of dicts from CPython 3.14 on, and of those of instances that share their keys.
const uint64_t* version_in(PyObject* dict) {
#if PY_VERSION_HEX < 0x030E0000
    const auto* d = reinterpret_cast<const PyDictObject*>(dict);
    return d->ma_values ? nullptr : &d->ma_version_tag;
#else
    return nullptr;
#endif
}
#pragma GCC diagnostic pop

// What `value` is where there is nothing.
PyObject* null_for_gone(PyObject* value) { return value == Py_Ellipsis ? nullptr : value; }

bool same_member(PyObject* owner, PyObject* descriptor, PyObject* value) {
    const auto* member = reinterpret_cast<PyMemberDescrObject*>(descriptor)->d_member;
    const Ref instance = PyWeakref_CheckRef(owner) ? referent(owner) : Ref::borrow(owner);
    if (!instance) return false;
    const auto* where =
        reinterpret_cast<PyObject* const*>(reinterpret_cast<const char*>(instance.get()) + member->offset);
    return __atomic_load_n(where, __ATOMIC_ACQUIRE) == null_for_gone(value);
}

bool same_class(PyObject* owner, PyObject* value) {
    const Ref instance = PyWeakref_CheckRef(owner) ? referent(owner) : Ref::borrow(owner);
    return instance && reinterpret_cast<PyObject*>(Py_TYPE(instance.get())) == value;
}

bool same_entry(PyObject* owner, PyObject* key, PyObject* value) {
    const Ref now = item_of_dict(owner, key);
    if (!now && PyErr_Occurred()) PyErr_Clear();
    return now && now.get() == value;
}

bool same_context(PyObject* owner, PyObject* value) {
    PyObject* now = nullptr;
    if (PyContextVar_Get(owner, nullptr, &now) < 0) PyErr_Clear();
    const Ref found = Ref::steal(now);
    return now == null_for_gone(value);
}

bool is_member(PyObject* owner, PyObject* key) {
    if (!Py_IS_TYPE(key, &PyMemberDescr_Type)) return false;
    const auto* descriptor = reinterpret_cast<PyMemberDescrObject*>(key);
    const bool fits = PyWeakref_CheckRef(owner) || PyObject_TypeCheck(owner, descriptor->d_common.d_type);
    const int type = descriptor->d_member->type;
    return fits && (type == 16 || type == 6);  // T_OBJECT_EX, as of __slots__, or T_OBJECT
}

bool is_row(PyObject* row) {
    if (!PyTuple_Check(row) || PyTuple_GET_SIZE(row) != 5 || !PyBytes_Check(PyTuple_GET_ITEM(row, 0))) return false;
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
        case ReadingKind::Size:
            return PyDict_Check(owner) && PyLong_CheckExact(value);
        case ReadingKind::Walked:
            return PyType_Check(key) && PyObject_TypeCheck(owner, reinterpret_cast<PyTypeObject*>(key)) &&
                   reinterpret_cast<PyTypeObject*>(key)->tp_iter && PyTuple_CheckExact(value);
        case ReadingKind::Elements:
            return is_exact_array(owner) && is_exact_array(key) && PyBytes_CheckExact(value);
        case ReadingKind::Buffer:
            return PyObject_CheckBuffer(owner) && PyBytes_CheckExact(value);
        case ReadingKind::Member:
            return is_member(owner, key);
        case ReadingKind::Class:
            return PyType_Check(value);
        case ReadingKind::Entry:
            return PyDict_Check(owner);
        case ReadingKind::Context:
            return PyContextVar_CheckExact(owner);
        case ReadingKind::Function:
            return PyFunction_Check(owner) && PyTuple_CheckExact(value) && PyTuple_GET_SIZE(value) == 3;
        case ReadingKind::Weak:
            return PyWeakref_CheckRef(owner);
    }
    return false;
}

}  // namespace

PyObject* elements_new(PyArrayObject* owner) {
    const Ref array = together(owner);
    if (!array) return nullptr;
    const auto* data = static_cast<const char*>(PyArray_DATA(as_array(array.get())));
    return PyBytes_FromStringAndSize(data, PyArray_NBYTES(owner));
}

int same_elements(PyArrayObject* owner, PyObject* bytes) {
    const Ref array = together(owner);
    if (!array) return -1;
    return same_bytes(PyArray_DATA(as_array(array.get())), static_cast<size_t>(PyArray_NBYTES(owner)), bytes);
}

int Captured::set(PyObject* readings) {
    std::vector<Row> rows;
    std::vector<Owner> owners;
    std::unordered_map<PyObject*, size_t> places;
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(readings); ++k) {
        PyObject* row = PyTuple_GET_ITEM(readings, k);
        if (!is_row(row)) {
            PyErr_Format(PyExc_TypeError, "not a reading: %R", row);
            return -1;
        }
        const Row read{static_cast<ReadingKind>(PyBytes_AS_STRING(PyTuple_GET_ITEM(row, 0))[0]),
                       PyTuple_GET_ITEM(row, 1), PyTuple_GET_ITEM(row, 2), PyTuple_GET_ITEM(row, 3)};
        if (read.kind != ReadingKind::Name && read.kind != ReadingKind::Size && read.kind != ReadingKind::Type &&
            !(read.kind == ReadingKind::Items && PyDict_Check(read.owner))) {
            rows.push_back(read);
            continue;
        }
        const size_t place = places.try_emplace(read.owner, owners.size()).first->second;
        if (place == owners.size()) owners.push_back({read.owner, {}});
        owners[place].rows.push_back(read);
    }
    readings_ = Ref::borrow(readings);
    watch(std::move(owners), rows);
    return 0;
}

// What a word of memory tells is held against that at each call, the others are looked up.
void Captured::watch(std::vector<Owner> owners, const std::vector<Row>& rows) {
    words_.clear();
    owners_.clear();
    rows_.clear();
    const auto add = [&](const void* where, PyObject* expected) {
        static_assert(sizeof expected == sizeof(uint64_t));
        words_.push_back({where, reinterpret_cast<uint64_t>(null_for_gone(expected))});
    };
    for (Owner& owner : owners) {
        if (const uint64_t* version = PyDict_Check(owner.owner) ? version_in(owner.owner) : nullptr)
            words_.push_back({version, 0, std::move(owner.rows)});  // no dict's version: looked up at the first call
        else
            owners_.push_back(std::move(owner));
    }
    for (const Row& row : rows) {
        if (row.kind == ReadingKind::Cell) {
            add(&reinterpret_cast<PyCellObject*>(row.owner)->ob_ref, row.value);
        } else if (row.kind == ReadingKind::Function) {
            const auto* function = reinterpret_cast<PyFunctionObject*>(row.owner);
            add(&function->func_code, PyTuple_GET_ITEM(row.value, 0));
            add(&function->func_defaults, PyTuple_GET_ITEM(row.value, 1));
            add(&function->func_kwdefaults, PyTuple_GET_ITEM(row.value, 2));
        } else {
            rows_.push_back(row);
        }
    }
    more_ = !owners_.empty() || !rows_.empty();
}

bool Captured::holds(const Row& row) {
    switch (row.kind) {
        case ReadingKind::Name:
            return item_of_dict(row.owner, row.key).get() == null_for_gone(row.value);  // keys of text raise nothing
        case ReadingKind::Type:
            return _PyType_Lookup(reinterpret_cast<PyTypeObject*>(row.owner), row.key) == null_for_gone(row.value);
        case ReadingKind::Items:
            return same_items(row.owner, row.value);
        case ReadingKind::Size:
            return PyDict_GET_SIZE(row.owner) == PyLong_AsSsize_t(row.value);
        case ReadingKind::Walked:
            return same_walk(row.owner, reinterpret_cast<PyTypeObject*>(row.key), row.value);
        case ReadingKind::Elements:
            return same_array(as_array(row.owner), as_array(row.key), row.value);
        case ReadingKind::Buffer:
            return same_buffer(row.owner, row.value);
        case ReadingKind::Member:
            return same_member(row.owner, row.key, row.value);
        case ReadingKind::Class:
            return same_class(row.owner, row.value);
        case ReadingKind::Entry:
            return same_entry(row.owner, row.key, row.value);
        case ReadingKind::Context:
            return same_context(row.owner, row.value);
        case ReadingKind::Weak:
            return static_cast<bool>(referent(row.owner)) == (row.value == Py_True);
        case ReadingKind::Cell:
        case ReadingKind::Function:
            break;  // words
    }
    return false;
}

bool Captured::holds(const std::vector<Row>& rows) {
    return std::all_of(rows.begin(), rows.end(), [](const Row& row) { return holds(row); });
}

bool Captured::holds(const Owner& owner) {
    const uint64_t version =
        PyType_Check(owner.owner)
            ? __atomic_load_n(&reinterpret_cast<const PyTypeObject*>(owner.owner)->tp_version_tag, __ATOMIC_ACQUIRE)
            : 0;
    if (PYOP_LIKELY(version && version == owner.version)) return true;
    if (!holds(owner.rows)) return false;
    owner.version = version;  // 0 at the first look-up, which gives it one
    return true;
}

bool Captured::holds(const Word& word) {
    const uint64_t now = word.now();
    if (word.rows.empty() || !holds(word.rows)) return false;
    word.expected = now;
    return true;
}

namespace {

// An iterator over a set, which a comparison may make, has the collector run up to CPython 3.11, and that may run
// anything: it could have this plan forgotten.
class NoCollection {
  public:
#if PY_VERSION_HEX < 0x030C0000
    NoCollection() : enabled_(PyGC_Disable()) {}
    ~NoCollection() {
        if (enabled_) PyGC_Enable();
    }

  private:
    const bool enabled_;
#endif
};

}  // namespace

bool Captured::compare() const {
    [[maybe_unused]] const NoCollection none;
    return std::all_of(owners_.begin(), owners_.end(), [](const Owner& owner) { return holds(owner); }) && holds(rows_);
}

bool Captured::reads(PyObject* array) const {
    return std::any_of(rows_.begin(), rows_.end(),
                       [&](const Row& row) { return row.kind == ReadingKind::Elements && row.owner == array; });
}

bool Captured::finds_elements() const {
    return std::any_of(rows_.begin(), rows_.end(), [](const Row& row) {
        return row.kind == ReadingKind::Elements || row.kind == ReadingKind::Buffer;
    });
}

bool Captured::may_lie_in(PyArrayObject* array) const {
    const MemoryBounds there = memory_bounds(array);
    return std::any_of(rows_.begin(), rows_.end(), [&](const Row& row) {
        if (row.kind == ReadingKind::Elements) return may_overlap(as_array(row.owner), array);
        Py_buffer buffer;
        if (row.kind != ReadingKind::Buffer) return false;
        if (PyObject_GetBuffer(row.owner, &buffer, PyBUF_SIMPLE) < 0) return PyErr_Clear(), true;
        const auto* low = static_cast<const char*>(buffer.buf);
        const bool in = low < there.high && there.low < low + buffer.len;
        PyBuffer_Release(&buffer);
        return in;
    });
}

int Captured::traverse(visitproc visit, void* arg) const {
    Py_VISIT(readings_.get());
    return 0;
}

}  // namespace pyop
