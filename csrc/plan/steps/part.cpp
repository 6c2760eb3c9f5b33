// plan/steps/part.cpp: share what steps that run programs have in common.
#include "plan/steps/part.h"

#include <algorithm>

#include "plan/execute.h"
#include "plan/plan.h"
#include "runtime/up_calls.h"

namespace pyop {

namespace {

Ref disabled_passes(const PassSet& passes) {
    Ref names = Ref::steal(PyList_New(0));
    for (size_t k = 0; names && k < kPasses.size(); ++k) {
        if (passes.has(static_cast<Pass>(k))) continue;
        Ref name = Ref::steal(PyUnicode_FromString(kPasses[k].name.data()));
        if (!name || PyList_Append(names.get(), name.get()) < 0) return Ref();
    }
    return names ? Ref::steal(PyList_AsTuple(names.get())) : Ref();
}

}  // namespace

Ref plans_of_parts(const Rewrite& r, PyObject* callable) {
    Ref disabled = disabled_passes(r.request.passes);
    if (!disabled) return Ref();
    Ref parts = Ref::steal(PyObject_CallFunctionObjArgs(up_calls.loop_parts, callable, disabled.get(),
                                                        r.request.fast ? Py_True : Py_False, nullptr));
    if (parts && PyTuple_CheckExact(parts.get())) return parts;
    if (parts) PyErr_SetString(PyExc_SystemError, "the parts of a node are a tuple");
    return Ref();
}

bool read_part(PyObject* plan, Part& part) {
    if (plan == Py_None) return true;
    if (Py_TYPE(plan) != plan_type) return false;
    const PlanObject& made = *reinterpret_cast<PlanObject*>(plan);
    part.program = made.program;
    part.graph = made.graph;
    return !part.program->concurrent;
}

bool has_python(const Program& p) {
    return std::any_of(p.instructions.begin(), p.instructions.end(),
                       [](const Instruction& ins) { return !ins.native; });
}

PyObject* own_result_new(PyObject* value, bool seen, bool by_python) {
    if (holds_own_memory(value)) return Py_NewRef(value);
    if (!is_exact_array(value)) return Py_NewRef(value);
    if (!seen && !by_python && PyArray_CHKFLAGS(as_array(value), NPY_ARRAY_OWNDATA | NPY_ARRAY_WRITEABLE))
        return Py_NewRef(value);
    return PyArray_NewCopy(as_array(value), NPY_KEEPORDER);
}

}  // namespace pyop
