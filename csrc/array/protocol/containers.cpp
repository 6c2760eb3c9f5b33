// array/protocol/containers.cpp: recognise the containers of other libraries, and name the remedies by library.
#include "array/protocol/containers.h"

#include <string>

#include "runtime/attribute.h"
#include "runtime/errors.h"
#include "runtime/items.h"
#include "runtime/lazy.h"
#include "runtime/ref.h"
#include "runtime/refusal.h"

namespace pyop {

namespace {

bool requires_grad(PyObject* o) {
    const Ref found = attribute_if_any<"requires_grad">(o);
    const int truth = found ? PyObject_IsTrue(found.get()) : 0;
    if (truth < 0) PyErr_Clear();
    return truth > 0;
}

std::string module_of(PyTypeObject* type) {
    Ref module = Ref::steal(PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), "__module__"));
    const char* text = module && PyUnicode_Check(module.get()) ? PyUnicode_AsUTF8(module.get()) : nullptr;
    std::string name = text ? text : "";
    PyErr_Clear();
    return name.substr(0, name.find('.'));
}

bool is_number(PyObject* o) {  // not PyArray_CheckScalar, which holds of any array of no dimension
    return PyFloat_Check(o) || PyLong_Check(o) || PyComplex_Check(o) || PyArray_IsScalar(o, Generic);
}

// Whether the class of a number is the user's, and has arithmetic of its own.
bool has_own_arithmetic(PyTypeObject* type) {
    const PyTypeObject* base = type;
    while (base && (base->tp_flags & Py_TPFLAGS_HEAPTYPE)) base = base->tp_base;
    if (base == type || !base || !base->tp_as_number || !type->tp_as_number) return false;
    const PyNumberMethods &own = *type->tp_as_number, &inherited = *base->tp_as_number;
    for (auto slot : {&PyNumberMethods::nb_add, &PyNumberMethods::nb_subtract, &PyNumberMethods::nb_multiply,
                      &PyNumberMethods::nb_true_divide, &PyNumberMethods::nb_floor_divide,
                      &PyNumberMethods::nb_remainder, &PyNumberMethods::nb_matrix_multiply})
        if (own.*slot != inherited.*slot) return true;
    return own.nb_power != inherited.nb_power || own.nb_negative != inherited.nb_negative ||
           own.nb_absolute != inherited.nb_absolute;
}

bool is_plain_item(PyObject* o) {
    return (is_number(o) && !has_own_arithmetic(Py_TYPE(o))) || PyUnicode_Check(o) || PyBytes_Check(o) ||
           o == Py_None || is_exact_array(o);
}

// NumPy's masked arrays and those of others (astropy) that are subclasses of ndarray have it.
bool any_masked(PyObject* array) {
    Ref mask = Ref::steal(PyObject_GetAttrString(array, "mask"));
    Ref plain = mask ? Ref::steal(PyArray_EnsureArray(mask.release())) : Ref();
    if (!plain || PyArray_SIZE(as_array(plain.get())) == 0) {
        PyErr_Clear();
        return false;
    }
    const int type = PyArray_DESCR(as_array(plain.get()))->type_num;
    if (type == NPY_VOID) {  // one truth a field
        auto* bytes = PyArray_GETCONTIGUOUS(as_array(plain.get()));
        Ref owner = Ref::steal(as_object(bytes));
        if (!bytes) PyErr_Clear();
        for (npy_intp i = 0; bytes && i < PyArray_NBYTES(bytes); ++i)
            if (PyArray_BYTES(bytes)[i]) return true;
        return !bytes;
    }
    if (type != NPY_BOOL) return false;
    Ref any = Ref::steal(PyArray_Any(as_array(plain.get()), NPY_RAVEL_AXIS, nullptr));
    const int truth = any ? PyObject_IsTrue(any.get()) : -1;
    if (truth < 0) PyErr_Clear();
    return truth != 0;
}

bool has_operators(PyTypeObject* type) {
    const PyNumberMethods* n = type->tp_as_number;
    return n && (n->nb_add || n->nb_subtract || n->nb_multiply || n->nb_true_divide || n->nb_matrix_multiply ||
                 n->nb_negative || n->nb_and);
}

bool is_sequence(PyTypeObject* type) {
    const PySequenceMethods* s = type->tp_as_sequence;
    return s && (s->sq_concat || s->sq_repeat);
}

// What NumPy asks an object for before it makes an array of it.
bool joins_numpy(PyObject* o) {
    return type_has<"__array_ufunc__", "__array_function__", "__array_namespace__", "__array_priority__">(o);
}

// np.mean(x) is x.mean() where there is such a method.
bool has_methods(PyObject* o) {
    return type_has<"mean", "sum", "std", "min", "max", "dot", "take", "clip", "cumsum", "sort">(o);
}

bool becomes_array(PyObject* o) {
    if (PyObject_CheckBuffer(o)) return true;
    if (type_has<"__array__", "__array_interface__", "__array_struct__", "__dlpack__">(o) || joins_numpy(o))
        return true;
    return has_attribute<"__array__">(o) || has_attribute<"__array_interface__">(o) ||
           has_attribute<"__array_struct__">(o) || has_attribute<"__dlpack__">(o);
}

Rules rules_of_subclass(PyObject* array) {
    static constinit Lazy class_of_maps;
    if (any_masked(array)) return Rules::Masked;
    PyObject* memmap = class_of_maps.attribute("numpy", "memmap");
    if (!memmap) PyErr_Clear();
    return reinterpret_cast<PyObject*>(Py_TYPE(array)) == memmap ? Rules::None : Rules::Own;
}

Rules find_rules(PyObject* o) {
    PyTypeObject* type = Py_TYPE(o);
    if (PyArray_Check(o)) return rules_of_subclass(o);
    if (is_number(o)) return Rules::Own;
    if (PyMemoryView_Check(o) || PyByteArray_Check(o)) return Rules::Sequences;
    if (module_of(type) == "pyop" || !becomes_array(o)) return Rules::None;
    if (requires_grad(o)) return Rules::Recorded;
    if (has_operators(type) || joins_numpy(o) || has_methods(o)) return Rules::Own;
    const bool compares = type->tp_richcompare != PyBaseObject_Type.tp_richcompare;
    return is_sequence(type) || compares ? Rules::Sequences : Rules::None;
}

// The module if it was imported, as torch does itself. Borrowed.
PyObject* forward_ad() {
    PyObject* const name = interned<"torch.autograd.forward_ad">();
    PyObject* const modules = name ? PyImport_GetModuleDict() : nullptr;
    PyObject* const found = modules ? PyDict_GetItemWithError(modules, name) : nullptr;
    if (!found) PyErr_Clear();
    return found && PyModule_Check(found) ? found : nullptr;
}

// Such a tensor requires no gradient, but has one. What is no tensor has none.
bool has_tangent(PyObject* o) {
    if (!type_has<"requires_grad">(o)) return false;
    const Ref unpack = attribute_if_any<"unpack_dual">(forward_ad());
    const Ref parts = Ref::steal(unpack ? PyObject_CallOneArg(unpack.get(), o) : nullptr);
    if (!parts) PyErr_Clear();
    return parts && has_attribute<"tangent">(parts.get());
}

// Of the rules those by which a plain array is wrong, not only plain.
Rules find_loss(PyObject* o) {
    if (PyArray_Check(o)) return any_masked(o) ? Rules::Masked : Rules::None;
    if (PYOP_UNLIKELY(in_dual_level()) && has_tangent(o)) return Rules::Tangent;
    const bool lost = requires_grad(o) && module_of(Py_TYPE(o)) != "pyop" && becomes_array(o);
    return lost ? Rules::Recorded : Rules::None;
}

Rules loss_of(PyObject* o) {
    return survive([&] { return find_loss(o); });
}

PyObject* raise_loss(PyObject* o, Rules rules) {
    Ref text = Ref::steal(rules_text_new(o, rules));
    if (text) PyErr_SetObject(PyExc_TypeError, text.get());
    return nullptr;
}

// A list, and those that it stands in.
struct Level {
    PyObject* list;
    const Level* around;
    int depth;

    bool stands_in(PyObject* o) const {
        for (const Level* level = this; level; level = level->around)
            if (level->list == o) return true;
        return false;
    }
};

int check_items(const Level& level) {
    PyObject* const list = level.list;
    const PyObject* checked = nullptr;
    for (Py_ssize_t i = 0; i < size_of_sequence(list); ++i) {
        const Ref owned = item_of(list, i);
        PyObject* item = owned.get();
        if (!item || is_plain_item(item)) continue;
        if (PyList_Check(item) || PyTuple_Check(item)) {
            if (item == checked || level.depth == NPY_MAXDIMS) continue;
            if (level.stands_in(item)) {
                PyErr_Format(PyExc_ValueError, "a %s contains itself", Py_TYPE(item)->tp_name);
                return -1;
            }
            if (check_items({item, &level, level.depth + 1}) < 0) return -1;
            checked = item;
            continue;
        }
        const Rules rules = loss_of(item);
        if (rules == Rules::None) continue;
        raise_loss(item, rules);
        return -1;
    }
    return 0;
}

}  // namespace

bool in_dual_level() {
    PyObject* const module = forward_ad();
    PyObject* const key = module ? interned<"_current_level">() : nullptr;
    PyObject* const level = key ? PyDict_GetItemWithError(PyModule_GetDict(module), key) : nullptr;
    const long number = level && PyLong_Check(level) ? PyLong_AsLong(level) : -1;
    if (number < 0) PyErr_Clear();
    return number >= 0;
}

bool has_its_say(PyObject* o) {
    PyObject* const key = interned<"__array_ufunc__">();
    if (key && _PyType_Lookup(Py_TYPE(o), key)) return true;  // None, too
    if (!key) PyErr_Clear();
    return type_has<"__array_priority__">(o) || module_of(Py_TYPE(o)) == "pyop";
}

Rules rules_of(PyObject* o) {
    if (is_plain_item(o) || PyList_CheckExact(o) || PyTuple_CheckExact(o)) return Rules::None;
    return survive([&] { return find_rules(o); });
}

int check_nothing_lost(PyObject* o) {
    if (is_plain_item(o)) return 0;
    if (PyList_Check(o) || PyTuple_Check(o)) return check_items({o, nullptr, 0});
    const Rules rules = loss_of(o);
    if (rules == Rules::None) return 0;
    raise_loss(o, rules);
    return -1;
}

PyObject* rules_text_new(PyObject* o, Rules rules) {
    PyTypeObject* type = Py_TYPE(o);
    Ref name = Ref::steal(PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), "__name__"));
    if (!name) return nullptr;
    const std::string module = module_of(type);
    const std::string from = module.empty() || module == "builtins" || module == "__main__" ? "" : module + " ";
    switch (rules) {
        case Rules::Masked:
            return PyUnicode_FromFormat(
                "some elements of this %s%U are masked, and a plain array has no mask: pass x.filled(value), or x.data "
                "for all elements",
                from.c_str(), name.get());
        case Rules::Tangent:
            return PyUnicode_FromFormat(
                "this %s%U has a tangent of forward-mode differentiation, which would be lost in a plain array: pass "
                "torch.autograd.forward_ad.unpack_dual(x).primal",
                from.c_str(), name.get());
        case Rules::Recorded:
            return PyUnicode_FromFormat(
                "this %s%U requires a gradient, which would be lost in a plain array: pass x.detach()", from.c_str(),
                name.get());
        default:
            break;
    }
    const char* instead = has_attribute<"to_numpy">(o)  ? "x.to_numpy()"
                          : has_attribute<"toarray">(o) ? "x.toarray()"
                                                        : "np.asarray(x)";
    return PyUnicode_FromFormat(
        "this %s%U computes by rules of its own, which it would lose as a plain array: pass %s for its numbers alone",
        from.c_str(), name.get(), instead);
}

int check_no_rules(PyObject* o, const char* what) {
    const Rules rules = rules_of(o);
    if (rules == Rules::None || rules == Rules::Sequences) return 0;
    Ref text = Ref::steal(rules_text_new(o, rules));
    if (text) refuse(PyExc_TypeError, "%s: %U", what, text.get());
    return -1;
}

}  // namespace pyop
