// plan/steps/c_function.cpp: functions of NumPy that are one C function of NumPy behind some Python: np.sort is a copy
// and ndarray.sort, np.bincount what it wraps. The step calls that one with the arguments of the node. So it calls what
// takes Python numbers that the graph computes (OnNumbers), with these.
//
// It is what NumPy calls with them, so that bits, layouts and warnings are NumPy's. Whatever raises is left to the
// function, for its own words. Arguments are arrays of NumPy's own numbers, and static ones that run no code of a user.
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "array/loop/strided_loop.h"
#include "array/memory/recycle.h"
#include "graph/value_item.h"
#include "plan/steps/call_arguments.h"
#include "plan/steps/node_call.h"
#include "plan/steps/steps.h"
#include "runtime/stack_array.h"
#include "runtime/up_calls.h"

#define NO_IMPORT_UFUNC  // only the struct is used
#include <numpy/ufuncobject.h>

namespace pyop {

namespace {

struct Behind {
    const char* callee;  // below numpy
    bool copies = false;  // works on a copy of the first argument, and is that
    bool real_only = false;  // it would take the real part of complex numbers
};
constexpr std::string_view kCopy = "copy";
constexpr Named<Behind> kBehind[] = {
    {"copy", {"ndarray.copy", true}},
    {"sort", {"ndarray.sort", true}},
    {"partition", {"ndarray.partition", true}},
    {"argsort", {"ndarray.argsort"}},
    {"argpartition", {"ndarray.argpartition"}},
    {"lexsort", {"lexsort._implementation"}},
    {"searchsorted", {"ndarray.searchsorted"}},
    {"nonzero", {"ndarray.nonzero"}},
    {"where", {"where._implementation"}},
    {"repeat", {"ndarray.repeat"}},
    {"take", {"ndarray.take"}},
    {"choose", {"ndarray.choose"}},
    {"round", {"ndarray.round"}},
    {"bincount", {"bincount._implementation"}},
    {"interp", {"_core.multiarray.interp", false, true}},
    {"_core.multiarray.correlate", {"_core.multiarray.correlate"}},
    {"correlate", {"_core.multiarray.correlate2"}},
    {"einsum", {"_core.multiarray.c_einsum"}},
    {"vdot", {"vdot._implementation"}},
    {"unravel_index", {"unravel_index._implementation"}},
    {"ravel_multi_index", {"ravel_multi_index._implementation"}},
    {"packbits", {"packbits._implementation"}},
    {"unpackbits", {"unpackbits._implementation"}},
};
// What only Python reads, or what makes the result somebody else's memory.
constexpr std::string_view kRefused[] = {"out", "like", "optimize", "period", "order"};

bool is_plain_object(PyObject* o, bool real_only) {
    if (o == Py_None || o == Py_Ellipsis || PyBool_Check(o) || PyLong_CheckExact(o) || PyFloat_CheckExact(o) ||
        PyUnicode_CheckExact(o))
        return true;
    if (PyComplex_CheckExact(o)) return !real_only;
    if (PySlice_Check(o)) {
        auto* slice = reinterpret_cast<PySliceObject*>(o);
        return is_plain_object(slice->start, true) && is_plain_object(slice->stop, true) &&
               is_plain_object(slice->step, true);
    }
    if (PyTuple_CheckExact(o) || PyList_CheckExact(o)) {
        for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(o); ++k)
            if (!is_plain_object(PySequence_Fast_GET_ITEM(o, k), real_only)) return false;
        return true;
    }
    if (PyArray_IsScalar(o, Generic))
        return PyArray_IsScalar(o, Bool) || PyArray_IsScalar(o, Integer) || PyArray_IsScalar(o, Floating);
    // A dtype of NumPy's own, or the class of one.
    if (PyArray_DescrCheck(o)) return PyTypeNum_ISNUMBER(reinterpret_cast<PyArray_Descr*>(o)->type_num);
    return o == reinterpret_cast<PyObject*>(&PyFloat_Type) || o == reinterpret_cast<PyObject*>(&PyLong_Type) ||
           (PyType_Check(o) && PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(o), &PyGenericArrType_Type) &&
            !PyType_HasFeature(reinterpret_cast<PyTypeObject*>(o), Py_TPFLAGS_HEAPTYPE));
}

bool is_plain_item(const TreeItem& item, bool real_only) {
    switch (item.kind) {
        case TreeItem::Static:
            return is_plain_object(item.object.get(), real_only);
        case TreeItem::Array:
        case TreeItem::Size:
            return true;
        case TreeItem::Dict:
            return false;
        default:
            for (const TreeItem& inner : item.items)
                if (!is_plain_item(inner, real_only)) return false;
            return true;
    }
}

bool read_order(PyObject* text, NPY_ORDER& order) {
    if (!text || !PyUnicode_Check(text)) return false;
    order = PyUnicode_CompareWithASCIIString(text, "C") == 0 ? NPY_CORDER : NPY_KEEPORDER;
    return order == NPY_CORDER || PyUnicode_CompareWithASCIIString(text, "K") == 0;
}

bool is_refused(PyObject* kwnames) {
    for (Py_ssize_t k = 0; kwnames && k < PyTuple_GET_SIZE(kwnames); ++k)
        for (const std::string_view name : kRefused)
            if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, k), std::string(name).c_str()) == 0)
                return true;
    return false;
}

bool is_reduceat_of_numbers(PyObject* fn) {
    if (!PyCFunction_Check(fn) || !is_ufunc(PyCFunction_GET_SELF(fn))) return false;
    const auto* ufunc = reinterpret_cast<PyUFuncObject*>(PyCFunction_GET_SELF(fn));
    return std::string_view(reinterpret_cast<PyCFunctionObject*>(fn)->m_ml->ml_name) == "reduceat" &&
           ufunc->ntypes > 0 && ufunc->types[0] != NPY_OBJECT;  // such a one may be of Python
}

// The array in which an array's memory lies, if it owns that; else null.
PyArrayObject* owner_of_memory(PyArrayObject* a) {
    while (!PyArray_CHKFLAGS(a, NPY_ARRAY_OWNDATA)) {
        PyObject* const base = PyArray_BASE(a);
        if (!base || !is_exact_array(base)) return nullptr;
        a = as_array(base);
    }
    return a;
}

class CFunctionStep final : public NativeStep {
  public:
    using NativeStep::NativeStep;

    enum class As : uint8_t { Array, Number, Scalar };
    struct Argument {
        int32_t input;  // of the node, or -1
        PyObject* value;  // static; the node keeps it
        As as = As::Array;
    };

    int run(PyObject* const* inputs, PyObject** results, const StepContext&) const override {
        for (size_t k = 0; k < dtypes.size(); ++k)
            if (!is_exact_array(inputs[k]) || PyArray_DESCR(as_array(inputs[k])) != dtypes[k]) return 0;
        Ref copy;
        if (copies) {
            copy = copy_of(as_array(inputs[arguments[0].input]));
            if (!copy) return -1;
        }
        if (!callee) return keep(copy, inputs, results[0]);
        Ref made = Ref::steal(call(inputs, copy.get()));
        if (!made) {
            if (!PyErr_ExceptionMatches(PyExc_Exception)) return -1;
            PyErr_Clear();
            return 0;
        }
        if (copies) made = std::move(copy);
        if (!in_tuple) return keep(made, inputs, results[0]);
        if (!PyTuple_CheckExact(made.get()) || PyTuple_GET_SIZE(made.get()) != n_out) return 0;
        for (Py_ssize_t k = 0; k < n_out; ++k) {
            Ref item = Ref::borrow(PyTuple_GET_ITEM(made.get(), k));
            const int status = keep(item, inputs, results[k]);
            if (status > 0) continue;
            while (k-- > 0) Py_CLEAR(results[k]);
            return status;
        }
        return 1;
    }
    std::string describe(size_t) const override { return text; }

    PyObject* callee = nullptr;  // lives for ever, or as long as the node; null: a copy is all
    NPY_ORDER order = NPY_KEEPORDER;  // of the copy
    const TreeCallObject* tree = nullptr;  // arguments in containers; the node keeps it
    std::vector<Argument> arguments;  // else
    PyObject* kwnames = nullptr;
    std::vector<PyArray_Descr*> dtypes;  // of the inputs: NumPy's own, which live for ever
    bool copies = false, in_tuple = false, any_number = false;
    PyArray_Descr* number = nullptr;  // of a result that is a Python number: NumPy's own, which lives for ever
    Py_ssize_t n_out = 1;
    std::string text;

  private:
    Ref copy_of(PyArrayObject* a) const {
        if (!PyArray_IS_C_CONTIGUOUS(a) || !PyArray_ISALIGNED(a)) return Ref::steal(PyArray_NewCopy(a, order));
        Ref made = Ref::steal(recycler_.take(PyArray_DESCR(a), PyArray_NDIM(a), PyArray_DIMS(a)));
        const auto bytes = static_cast<size_t>(PyArray_NBYTES(a));
        if (made && bytes > 0) std::memcpy(PyArray_DATA(as_array(made.get())), PyArray_DATA(a), bytes);
        return made;
    }

    PyObject* call(PyObject* const* inputs, PyObject* copy) const {
        if (tree) return tree_call_as(*tree, callee, inputs);
        StackArray<PyObject*, 8> argv(arguments.size());
        for (size_t k = 0; k < arguments.size(); ++k)
            argv[k] = arguments[k].input >= 0 ? inputs[arguments[k].input] : arguments[k].value;
        if (copy) argv[0] = copy;
        StackRefs<4> numbers(any_number ? arguments.size() : 0);
        for (size_t k = 0; any_number && k < arguments.size(); ++k) {
            if (arguments[k].as == As::Array) continue;
            PyArrayObject* const array = as_array(argv[k]);
            if (PyArray_NDIM(array) != 0) {
                if (arguments[k].as == As::Scalar) continue;  // an array, as it is
                PyErr_SetString(PyExc_TypeError, "no number");
                return nullptr;
            }
            char* const data = PyArray_BYTES(array);
            numbers[k] = arguments[k].as == As::Number ? PyArray_GETITEM(array, data) : PyArray_ToScalar(data, array);
            if (!numbers[k]) return nullptr;
            argv[k] = numbers[k];
        }
        const size_t n_keywords = kwnames ? static_cast<size_t>(PyTuple_GET_SIZE(kwnames)) : 0;
        return PyObject_Vectorcall(callee, argv.data(), arguments.size() - n_keywords, kwnames);
    }

    // An array in memory that no input shows. NumPy hands out a single number as a scalar, Python as one of its own.
    int keep(Ref& made, PyObject* const* inputs, PyObject*& result) const {
        if (number && keep_number(made.get(), result)) return result ? 1 : -1;
        if (PyArray_IsScalar(made.get(), Generic)) {
            result = PyArray_FromScalar(made.get(), nullptr);
            return result ? 1 : -1;
        }
        if (!is_exact_array(made.get())) return 0;
        PyArrayObject* const owner = owner_of_memory(as_array(made.get()));
        if (!owner) return 0;
        for (size_t k = 0; k < dtypes.size(); ++k) {
            if (inputs[k] == made.get()) return 0;
            if (owner == owner_of_memory(as_array(inputs[k]))) return 0;
        }
        result = made.release();
        return 1;
    }

    // Whether it is the Python number that the graph was made for.
    bool keep_number(PyObject* made, PyObject*& result) const {
        const bool fits = number->type_num == NPY_DOUBLE    ? PyFloat_CheckExact(made)
                          : number->type_num == NPY_CDOUBLE ? PyComplex_CheckExact(made)
                          : number->type_num == NPY_BOOL    ? PyBool_Check(made)
                                                            : false;
        if (!fits) return false;
        result = recycler_.take(number, 0, nullptr);
        if (result && PyArray_SETITEM(as_array(result), PyArray_BYTES(as_array(result)), made) < 0) Py_CLEAR(result);
        return true;
    }

    mutable ResultRecycler recycler_;  // the GIL guards it
};

// The function of an OnNumbers, and how its arguments are given. False with an error set, or if it is none.
bool read_number_call(PyObject* call, Ref& fn, std::vector<CFunctionStep::As>& as) {
    if (reinterpret_cast<PyObject*>(Py_TYPE(call)) != up_calls.number_call) return false;
    fn = Ref::steal(PyObject_GetAttr(call, up_attributes.fn));
    const Ref numbers = Ref::steal(fn ? PyObject_GetAttr(call, up_attributes.numbers) : nullptr);
    if (!numbers || !PyTuple_Check(numbers.get())) return false;
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(numbers.get()); ++k) {
        const long how = PyLong_AsLong(PyTuple_GET_ITEM(numbers.get(), k));
        as.push_back(how == 1   ? CFunctionStep::As::Number
                     : how == 2 ? CFunctionStep::As::Scalar
                                : CFunctionStep::As::Array);
    }
    return !PyErr_Occurred();
}

}  // namespace

int make_c_function_step(const Rewrite& r, uint32_t i, std::unique_ptr<NativeStep>& step) {
    const PyNode& node = r.g.node_as<PyNode>(i);
    if (!is_plain_call(node) || node.inputs().empty()) return 0;
    PyObject* fn = node.fn();
    Ref inner;
    const bool for_one = reinterpret_cast<PyObject*>(Py_TYPE(fn)) == up_calls.call_for_one;
    if (for_one) {
        inner = Ref::steal(PyObject_GetAttr(fn, up_attributes.fn));
        if (!inner) return -1;
        fn = inner.get();  // the node keeps it
    }
    auto made = std::make_unique<CFunctionStep>(Fallback::of_node(r.g, i));
    if (is_tree_call(fn) && !node.form()) {
        made->tree = reinterpret_cast<const TreeCallObject*>(fn);
        if (made->tree->layout->opaque) return 0;
        fn = made->tree->callee;
    }
    // Indices that are arrays; others make views.
    std::vector<CFunctionStep::As> as;
    made->any_number = read_number_call(fn, inner, as);
    if (made->any_number) fn = inner.get();  // the node keeps it
    if (PyErr_Occurred()) return -1;
    const bool is_item = fn == getitem_function, is_reduceat = is_reduceat_of_numbers(fn);
    const auto* found = is_item || is_reduceat ? nullptr : function_table<kBehind>().find(fn);
    if (!found && !is_item && !is_reduceat && !made->any_number) return 0;
    if (is_item && (node.inputs().size() < 2 || r.g.spec(node.inputs().back()).ndim < 1)) return 0;
    const Behind behind = found ? found->entry : Behind{""};
    const bool of_method = std::string_view(behind.callee).starts_with("ndarray.");
    for (const Edge e : node.inputs()) {
        PyArray_Descr* dtype = builtin_dtype(r.g, e);
        if (!dtype || (behind.real_only && PyTypeNum_ISCOMPLEX(dtype->type_num))) return 0;
        made->dtypes.push_back(dtype);
    }
    if (made->tree) {
        const TreeCallObject::Layout& layout = *made->tree->layout;
        // A key of sizes makes views, whose arrays stand there for their sizes alone.
        if (behind.copies || is_refused(layout.kwnames.get()) || (is_item && !layout.sizes.empty())) return 0;
        if (of_method && (layout.positional.empty() || layout.positional[0].kind != TreeItem::Array)) return 0;
        for (const auto* items : {&layout.positional, &layout.keywords})
            for (const TreeItem& item : *items)
                if (!is_plain_item(item, behind.real_only)) return 0;
    } else {
        const CallForm* form = node.form();
        const size_t n = form ? form->order.size() : node.inputs().size();
        for (size_t k = 0; k < n; ++k) {
            const int32_t code = form ? form->order[k] : static_cast<int32_t>(k);
            PyObject* value = code >= 0 ? nullptr : PyTuple_GET_ITEM(form->statics.get(), ~code);
            if (value && !is_plain_object(value, behind.real_only)) return 0;
            const CFunctionStep::As how = code >= 0 && k < as.size() ? as[k] : CFunctionStep::As::Array;
            made->arguments.push_back({code >= 0 ? code : -1, value, how});
        }
        if (made->any_number && as.size() != n) return 0;
        made->kwnames = form ? form->kwnames.get() : nullptr;
        if (is_refused(made->kwnames)) return 0;
        const size_t n_positional = n - (made->kwnames ? static_cast<size_t>(PyTuple_GET_SIZE(made->kwnames)) : 0);
        if (of_method && (n_positional < 1 || made->arguments[0].input < 0)) return 0;
        // axis=None flattens before.
        for (size_t k = 1; behind.copies && k < n; ++k)
            if (made->arguments[k].value == Py_None) return 0;
    }
    if (found && found->name == kCopy) {
        if (made->tree || made->kwnames || made->arguments.size() > 2) return 0;
        if (made->arguments.size() == 2 && !read_order(made->arguments[1].value, made->order)) return 0;
    } else {
        made->callee = found ? find_below_numpy(behind.callee) : fn;  // kept for ever, or by the node
        if (!made->callee) return 0;
    }
    made->copies = behind.copies;
    made->n_out = static_cast<Py_ssize_t>(node.n_outputs());
    made->in_tuple = for_one || made->n_out != 1;
    const std::string_view name = found ? found->name : is_item ? "x[indices]" : "reduceat";
    made->text = made->any_number ? "called with Python numbers"
                 : made->callee   ? "NumPy's C function of " + std::string(name)
                                  : "a copy of the array";
    if (made->any_number && made->n_out == 1) made->number = builtin_dtype(r.g, {i, 0});
    step = std::move(made);
    return 0;
}

}  // namespace pyop
