// graph/value_item.cpp: index by the commonest keys, an integer or a slice of numbers, without the rules of Python
// (python/pyop/functions/indexing/spec.py), which take twenty times as long: most of the time of tracing short
// functions.
#include "graph/value_item.h"

#include "graph/build.h"
#include "graph/storage.h"
#include "runtime/errors.h"

namespace pyop {

PyObject* getitem_function = nullptr;

int value_item_init() {
    Ref module = Ref::steal(PyImport_ImportModule("operator"));
    getitem_function = module ? PyObject_GetAttrString(module.get(), "getitem") : nullptr;
    return getitem_function ? 0 : -1;
}

namespace {

bool is_whole_index(PyObject* bound) { return bound == Py_None || PyLong_CheckExact(bound); }

// What `key` leaves of the first size. 1: an axis less; 2: so many are left; 0: something unusual, an error perhaps.
int look_up(PyObject* key, int64_t size, int64_t& left) {
    if (PyLong_CheckExact(key)) {
        int overflow;
        const long index = PyLong_AsLongAndOverflow(key, &overflow);
        return !overflow && index < size && index >= -size;
    }
    if (!PySlice_Check(key)) return 0;
    auto* slice = reinterpret_cast<PySliceObject*>(key);
    if (!is_whole_index(slice->start) || !is_whole_index(slice->stop) || !is_whole_index(slice->step)) return 0;
    Py_ssize_t start, stop, step;
    if (PySlice_Unpack(key, &start, &stop, &step) < 0) {
        PyErr_Clear();
        return 0;
    }
    left = PySlice_AdjustIndices(static_cast<Py_ssize_t>(size), &start, &stop, step);
    return 2;
}

PyObject* item_new(PyObject* self, PyObject* key) {
    Graph& g = graph_of(as_value(self)->graph);
    const ValueSpec& array = g.spec(as_value(self)->edge);
    if (array.ndim < 1 || !array.descr() || array.dims[0] < 0) Py_RETURN_NONE;
    if (!PyTypeNum_ISNUMBER(array.descr()->type_num)) Py_RETURN_NONE;
    int64_t left = 0;
    const int found = look_up(key, array.dims[0], left);
    if (!found) Py_RETURN_NONE;
    ValueSpec spec;
    spec.dtype = Ref::borrow(array.dtype.get());
    spec.dims.assign(array.dims.begin() + (found == 1 ? 1 : 0), array.dims.end());
    if (found == 2) spec.dims[0] = left;
    spec.ndim = static_cast<int>(spec.dims.size());
    spec.form = spec.ndim ? Form::Array : Form::Scalar;
    const bool view = spec.ndim != 0;
    const uint32_t id = g.specs().intern(std::move(spec));
    PyNode::Call call;
    call.fn = SharedRef::borrow(getitem_function);
    call.lends = false;
    call.form = std::make_unique<CallForm>();
    call.form->order = {0, ~0};
    call.form->statics = SharedRef::steal(PyTuple_Pack(1, key));
    Ref name = Ref::steal(PyUnicode_InternFromString("getitem"));
    if (!call.fn || !call.form->statics || !name) return nullptr;
    PyObject* const graph = as_value(self)->graph;
    if (bring_up_to_date(as_value(self)) < 0) return nullptr;
    const Edge edge = as_value(self)->edge;
    const int64_t node = add_call(graph, std::move(call), {&edge, 1}, {&id, 1}, false, name.get());
    if (node < 0) return nullptr;
    PyObject* made = value_new(graph, {static_cast<uint32_t>(node), 0});
    if (made && view) show_memory_of(as_value(made), as_value(self), false, true);
    return made;
}

}  // namespace

PyObject* value_plain_item(PyObject* self, PyObject* key) {
    return guarded([&] { return item_new(self, key); }, static_cast<PyObject*>(nullptr));
}

}  // namespace pyop
