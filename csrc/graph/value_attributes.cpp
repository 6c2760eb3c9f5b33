// graph/value_attributes.cpp: define a Value's attributes, and refuse those that only NumPy's object has. A
// function may ask for those and go another way where they are missing, so what NumPy has is a refusal, no
// AttributeError.
#include <array>
#include <string_view>

#include "graph/build.h"
#include "graph/storage.h"
#include "graph/value.h"
#include "graph/value_sequence.h"
#include "runtime/errors.h"
#include "runtime/items.h"
#include "runtime/refusal.h"
#include "runtime/up_calls.h"

namespace pyop {

namespace {

struct MemorySetting {
    std::string_view name;
    const char* remedy;
};
constexpr std::array<MemorySetting, 4> kMemorySettings = {{
    {"shape", "write `x = x.reshape(shape)`"},
    {"dtype", "write `x = x.view(dtype)` for other elements of the same bytes, or x.astype(dtype)"},
    {"strides", "use slices, or numpy.lib.stride_tricks in a pyop.op, which is called with arrays"},
    {"data", "write `x = values`"},
}};

bool numpy_has(PyObject* value, PyObject* name) {
    Ref there = Ref::steal(value_class(value, nullptr));
    const bool has = there && PyObject_HasAttr(there.get(), name);
    PyErr_Clear();
    return has;
}

PYOP_COLD PyObject* absent(PyObject* value, PyObject* name) {
    Ref missing = take_pending();
    const char* text = PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : nullptr;
    if (!text) PyErr_Clear();
    if (text && (std::string_view(text) == "__array_interface__" || std::string_view(text) == "__array_struct__")) {
        const Ref numbers = Ref::steal(PyObject_CallMethod(value, "__array__", nullptr));
        if (!numbers) return nullptr;  // it says what to do instead
    }
    if (!text || std::string_view(text).starts_with("__") || !numpy_has(value, name)) {
        restore_pending(std::move(missing));
        return nullptr;
    }
    Ref shown = Ref::steal(text_of_value(value));
    if (!shown) return nullptr;
    return refuse(PyExc_TypeError,
                  "attribute '%U' of %U: NumPy has it, but a Value has no numbers and no memory until its graph runs: "
                  "declare the function that needs it with pyop.op, which is called with arrays",
                  name, shown.get());
}

PYOP_COLD PyObject* unsure(PyObject* value, PyObject* name) {
    Ref shown = Ref::steal(text_of_value(value));
    if (!shown) return nullptr;
    return refuse(PyExc_TypeError,
                  "attribute '%U' of %U: arrays have it and scalars have not, and which of the two this is, is known "
                  "only when the graph runs: use np.ndim(x), or declare the shape of what the op returns",
                  name, shown.get());
}

}  // namespace

bool in_own_code() {
    PyObject* globals = PyEval_GetGlobals();
    const Ref name = globals ? item_of_dict(globals, "__name__") : Ref();
    const char* text = name && PyUnicode_Check(name.get()) ? PyUnicode_AsUTF8(name.get()) : nullptr;
    return text && std::string_view(text).starts_with("pyop.");
}

// Whether it may be an element of an array of objects, of which nothing is known.
bool is_object(PyObject* self) {
    const Graph& g = graph_of(as_value(self)->graph);
    const Node& node = g.node(as_value(self)->edge.node);
    if (spec_of(self).descr() || node.kind() != NodeKind::Py || node.inputs().empty()) return false;
    const Ref name = g.node_name(as_value(self)->edge.node);
    const char* text = name ? PyUnicode_AsUTF8(name.get()) : nullptr;
    if (!text || !std::string_view(text).starts_with("getitem")) return false;
    const PyArray_Descr* of = g.spec(node.inputs()[0]).descr();
    return of && of->type_num == NPY_OBJECT;
}

PyObject* value_class(PyObject* self, void*) {
    const ValueSpec& spec = spec_of(self);
    if (PYOP_UNLIKELY(spec.form == Form::Unknown) && is_object(self) && watching() && !in_own_code())
        return refuse(PyExc_TypeError,
                      "the type of an element of an array of objects was asked for, which is that of the object, and "
                      "known only when the graph runs: decide it in a pyop.op, which is called with arrays, or pass "
                      "it as a static argument");
    if (spec.form != Form::Scalar) return Py_NewRef(reinterpret_cast<PyObject*>(&PyArray_Type));
    PyTypeObject* type = spec.descr() ? spec.descr()->typeobj : &PyGenericArrType_Type;
    if (spec.text) type = spec.text == 'U' ? &PyUnicodeArrType_Type : &PyStringArrType_Type;
    return Py_NewRef(reinterpret_cast<PyObject*>(type));
}

namespace {

// Whether an attribute says that something is not known: None, or a shape with None in it.
bool is_unknown(PyObject* found) {
    if (PYOP_LIKELY(found != Py_None && !PyTuple_CheckExact(found))) return false;
    bool unknown = found == Py_None;
    for (Py_ssize_t k = 0; !unknown && k < PyTuple_GET_SIZE(found); ++k)
        unknown = PyTuple_GET_ITEM(found, k) == Py_None;
    return unknown;
}

}  // namespace

PyObject* value_getattro(PyObject* self, PyObject* name) {
    if (PYOP_UNLIKELY(StandIn::only_arrays_have(name)) && spec_of(self).form == Form::Unknown)
        return unsure(self, name);
    PyObject* found = value_stand_in.attribute(self, name, value_class);
    if (PYOP_UNLIKELY(!found)) return PyErr_ExceptionMatches(PyExc_AttributeError) ? absent(self, name) : nullptr;
    if (PYOP_LIKELY(!is_unknown(found)) || !watching() || graph_being_built() != as_value(self)->graph || in_own_code())
        return found;
    const Ref known = Ref::steal(found);
    PyObject* given[] = {self, name, known.get()};
    return PyObject_Vectorcall(up_calls.unknown_attribute, given, 3, nullptr);
}

int value_setattro(PyObject* self, PyObject* name, PyObject* value) {
    const char* text = PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : nullptr;
    if (!text) PyErr_Clear();
    if (text && value && spec_of(self).form != Form::Scalar) {
        for (const MemorySetting& setting : kMemorySettings) {
            if (setting.name != text) continue;
            Ref here = origin_text(current_origin());
            if (!here) return -1;
            refuse(
                PyExc_TypeError,
                "`x.%s = ...` at %U writes into an array, and a Value cannot be changed so: %s, which makes a new one",
                text, here.get(), setting.remedy);
            return -1;
        }
    }
    return PyObject_GenericSetAttr(self, name, value);
}

}  // namespace pyop
