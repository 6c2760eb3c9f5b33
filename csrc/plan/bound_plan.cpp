// plan/bound_plan.cpp: define the type BoundPlan, and its calls.
#include "plan/bound_plan.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "array/contract/describe.h"
#include "array/memory/overlap.h"
#include "graph/build.h"
#include "graph/value_spec.h"
#include "plan/execute.h"
#include "plan/plan.h"
#include "plan/quick/quick_arrays.h"
#include "runtime/errors.h"
#include "runtime/meter.h"
#include "runtime/reaper.h"
#include "runtime/stack_array.h"

#include <structmember.h>

namespace pyop {

namespace {

PyTypeObject* bound_plan_type = nullptr;

struct BoundPlanObject {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject* plan;
    PyObject* buffers;  // an array, or a tuple of several
    PyObject* names;    // of the arguments of the plan's call behind the inputs: ("out",)
    std::shared_ptr<const QuickArrays>* quick;
    bool called;        // so that `quick` was looked for
};

BoundPlanObject& bound_of(PyObject* self) { return *reinterpret_cast<BoundPlanObject*>(self); }

PyObject* bound_otherwise(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* names);

void look_for_quick_way(BoundPlanObject& b, PyObject* const* args, size_t n) try {
    b.called = true;
    const PlanObject& plan = *reinterpret_cast<const PlanObject*>(b.plan);
    if (n != plan.program->feeds.size() || !is_exact_array(b.buffers) || !feeds_fit(*plan.program, args)) return;
    std::vector<QuickArgument> given(n);
    for (size_t k = 0; k < n; ++k) {
        PyArrayObject* a = as_array(args[k]);
        QuickArgument& g = given[k];
        g.type = &PyArray_Type;
        g.dtype = Ref::borrow(reinterpret_cast<PyObject*>(PyArray_DESCR(a)));
        g.ndim = PyArray_NDIM(a);
        g.dims.assign(PyArray_DIMS(a), PyArray_DIMS(a) + g.ndim);
    }
    *b.quick = QuickArrays::make(plan, given, nullptr, bound_otherwise);
    if (*b.quick && (*b.quick)->writes()) b.quick->reset();
} catch (const std::bad_alloc&) {
    // There are slower ways.
}

// The names of a call's keyword arguments, and "out" behind them.
Ref names_with_out(PyObject* names, PyObject* out) {
    const Py_ssize_t n = PyTuple_GET_SIZE(names);
    for (Py_ssize_t i = 0; i < n; ++i) {
        if (PyUnicode_Compare(PyTuple_GET_ITEM(names, i), PyTuple_GET_ITEM(out, 0)) != 0) continue;
        PyErr_SetString(PyExc_TypeError,
                        "the plan is bound to the arrays that it writes into: call the plan itself with other out=");
        return Ref();
    }
    return Ref::steal(PySequence_Concat(names, out));
}

PyObject* call_generally(BoundPlanObject& b, PyObject* const* args, size_t n_positional, PyObject* names) {
    const size_t n = n_positional + (names ? static_cast<size_t>(PyTuple_GET_SIZE(names)) : 0);
    const Ref plan = Ref::borrow(b.plan), out = Ref::borrow(b.buffers);
    const Ref all_names = names ? names_with_out(names, b.names) : Ref::borrow(b.names);
    if (!all_names) return nullptr;
    StackArray<PyObject*, 16> all(n + 1);
    std::copy_n(args, n, all.data());
    all[n] = out.get();
    const Ref result = Ref::steal(plan_vectorcall(plan.get(), all.data(), n_positional, all_names.get()));
    return result ? out.new_ref() : nullptr;
}

// A call by whatever way it takes, and what is left of one that is not quick.
PyObject* bound_otherwise(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* names) {
    if (PyErr_Occurred()) return nullptr;
    BoundPlanObject& b = bound_of(self);
    const auto n = static_cast<size_t>(PyVectorcall_NARGS(nargsf));
    const Ref alive = Ref::borrow(self);
    reaper_poll();
    if (!names && !b.called) look_for_quick_way(b, args, n);
    return guarded([&] { return call_generally(b, args, n, names); }, static_cast<PyObject*>(nullptr));
}

PyObject* bound_vectorcall(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* names) {
    BoundPlanObject& b = bound_of(self);
    const QuickArrays* const quick = b.quick->get();
    if (!quick || names || profiling() || static_cast<size_t>(PyVectorcall_NARGS(nargsf)) != quick->n_arguments() ||
        PYOP_UNLIKELY(reaper::state.graveyard.load(std::memory_order_relaxed) != nullptr))
        return bound_otherwise(self, args, nargsf, names);
    return quick->call(args, b.buffers, self, nargsf, nullptr);
}

// Whether an array takes a result, as far as that is known before it is computed. 0, or -1 with the error set.
int check_buffer(const ValueSpec& spec, PyObject* buffer, size_t k) {
    bool fits = is_exact_array(buffer) && PyArray_ISWRITEABLE(as_array(buffer));
    if (fits && spec.descr()) fits = PyArray_EquivTypes(PyArray_DESCR(as_array(buffer)), spec.descr());
    if (fits && spec.ndim >= 0) fits = PyArray_NDIM(as_array(buffer)) == spec.ndim;
    for (int d = 0; fits && d < spec.ndim; ++d)
        fits = spec.dims[static_cast<size_t>(d)] < 0 ||
               spec.dims[static_cast<size_t>(d)] == PyArray_DIM(as_array(buffer), d);
    if (fits) return 0;
    const Ref object = Ref::steal(spec_new(spec)), text = object ? Ref::steal(PyObject_Str(object.get())) : Ref();
    if (!text) return -1;
    const bool read_only = is_exact_array(buffer) && !PyArray_ISWRITEABLE(as_array(buffer));
    const std::string of_class =
        PyArray_Check(buffer) && !is_exact_array(buffer) ? std::string(" of class ") + Py_TYPE(buffer)->tp_name : "";
    PyErr_Format(errors.input, "plan.into() takes for output %zu a writable ndarray %s, but got %s%s%s", k,
                 printable(text.get()).c_str(), array_text(buffer).c_str(), of_class.c_str(),
                 read_only ? " (read-only)" : "");
    return -1;
}

int check_buffers(const PlanObject& plan, PyObject* const* buffers, size_t n) {
    const Program& p = *plan.program;
    const Graph& g = graph_of(plan.graph);
    if (g.check_usable() < 0) return -1;
    if (p.n_results() == 0) {
        PyErr_SetString(errors.input,
                        "plan.into() binds a plan to arrays for its results, and this one has none: call it");
        return -1;
    }
    if (n != p.n_results()) {
        PyErr_Format(errors.input, "plan.into() takes one array for each of the plan's %zu outputs, but got %zu",
                     p.n_results(), n);
        return -1;
    }
    for (size_t k = 0; k < n; ++k) {
        if (check_buffer(g.spec(plan.request->fetches[k]), buffers[k], k) < 0) return -1;
        for (size_t j = 0; j < k; ++j) {
            if (!may_overlap(as_array(buffers[k]), as_array(buffers[j]))) continue;
            PyErr_Format(errors.input,
                         "plan.into() takes arrays that lie apart, but those for outputs %zu and %zu share memory: "
                         "make each with np.empty()",
                         j, k);
            return -1;
        }
    }
    return 0;
}

PyObject* bound_new(PyObject* plan, PyObject* const* buffers, Py_ssize_t n) {
    if (check_buffers(*reinterpret_cast<PlanObject*>(plan), buffers, static_cast<size_t>(n)) < 0) return nullptr;
    Ref held = n == 1 ? Ref::borrow(buffers[0]) : Ref::steal(PyTuple_New(n));
    for (Py_ssize_t k = 0; held && n > 1 && k < n; ++k) PyTuple_SET_ITEM(held.get(), k, Py_NewRef(buffers[k]));
    Ref name = Ref::steal(PyUnicode_InternFromString("out"));
    Ref names = name ? Ref::steal(PyTuple_Pack(1, name.get())) : Ref();
    if (!held || !names) return nullptr;
    auto quick = std::make_unique<std::shared_ptr<const QuickArrays>>();
    Ref self = Ref::steal(bound_plan_type->tp_alloc(bound_plan_type, 0));
    if (!self) return nullptr;
    BoundPlanObject& b = bound_of(self.get());
    b.vectorcall = bound_vectorcall;
    b.plan = Py_NewRef(plan);
    b.buffers = held.release();
    b.names = names.release();
    b.quick = quick.release();
    return self.release();
}

int bound_traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(bound_of(self).plan);
    Py_VISIT(bound_of(self).buffers);
    return 0;
}

void bound_dealloc(PyObject* self) {
    PyObject_GC_UnTrack(self);
    BoundPlanObject& b = bound_of(self);
    delete std::exchange(b.quick, nullptr);  // borrows from the plan
    Py_CLEAR(b.plan);
    Py_CLEAR(b.buffers);
    Py_CLEAR(b.names);
    PyTypeObject* type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

PyObject* bound_repr(PyObject* self) {
    return PyUnicode_FromFormat("<pyop.BoundPlan: %R into its own arrays>", bound_of(self).plan);
}

PyMemberDef bound_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(BoundPlanObject, vectorcall), READONLY, nullptr},
    {"plan", T_OBJECT_EX, offsetof(BoundPlanObject, plan), READONLY, "The plan that runs."},
    {"buffers", T_OBJECT_EX, offsetof(BoundPlanObject, buffers), READONLY,
     "What it writes into, and returns: an array, or a tuple of several."},
    {},
};

PyType_Slot bound_slots[] = {
    {Py_tp_doc, const_cast<char*>("A plan that writes its results into arrays that it was bound to: `Plan.into`.")},
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_repr, reinterpret_cast<void*>(bound_repr)},
    {Py_tp_traverse, reinterpret_cast<void*>(bound_traverse)},
    {Py_tp_dealloc, reinterpret_cast<void*>(bound_dealloc)},
    {Py_tp_members, bound_members},
    {0, nullptr},
};

PyType_Spec bound_spec = {
    "pyop._core.BoundPlan", sizeof(BoundPlanObject), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    bound_slots};

}  // namespace

PyObject* plan_into(PyObject* plan, PyObject* const* buffers, Py_ssize_t n) {
    return guarded([&] { return bound_new(plan, buffers, n); }, static_cast<PyObject*>(nullptr));
}

int bound_plan_init(PyObject* module) {
    bound_plan_type = reinterpret_cast<PyTypeObject*>(PyType_FromModuleAndSpec(module, &bound_spec, nullptr));
    return bound_plan_type ? PyModule_AddType(module, bound_plan_type) : -1;
}

}  // namespace pyop
