// plan/steps/composed_step.cpp: run functions of NumPy that are a few simpler ones (python/pyop/graph/parts.py), as a
// program of their own for one node.
//
// The program runs as a trial (array/loop/ufunc_errors.h): where NumPy would have to warn or raise, where a step of it
// says "not this way", and where one of its checks does not hold, the function itself is called. Nothing has been said
// or kept then. So the program need only know what is common, and the graph keeps the function with its name, its
// gradient and its place in the code.
#include <string>

#include "array/loop/ufunc_errors.h"
#include "plan/execute.h"
#include "plan/plan.h"
#include "plan/steps/call_arguments.h"
#include "plan/steps/node_call.h"
#include "plan/steps/part.h"
#include "plan/steps/steps.h"
#include "runtime/stack_array.h"
#include "runtime/stack_limit.h"

namespace pyop {

namespace {

class ComposedStep final : public NativeStep {
  public:
    using NativeStep::NativeStep;

    int run(PyObject* const* inputs, PyObject** results, const StepContext&) const override {
        const Program& p = *part.program;
        if (stack_is_low() || !feeds_fit(p, inputs)) return 0;
        for (size_t k = 0; in_c_order && k < p.feeds.size(); ++k)
            if (PyArray_NDIM(as_array(inputs[k])) > 1 && !PyArray_IS_C_CONTIGUOUS(as_array(inputs[k]))) return 0;
        const size_t n = p.outputs.size();
        StackRefs<8> made(n);
        {
            const Trial trial;
            if (execute(p, part.graph, inputs, nullptr, made.data()) < 0) {
                if (!trial.left()) return -1;
                PyErr_Clear();
                return 0;
            }
        }
        for (size_t k = n_out; k < n; ++k)
            if (!holds(made[k])) return 0;
        for (size_t k = 0; k < n_out; ++k) {
            bool seen = false;
            for (size_t j = 0; j < p.feeds.size(); ++j) seen |= inputs[j] == made[k];
            for (size_t j = 0; j < n; ++j) seen |= j != k && made[j] == made[k];
            results[k] = own_result_new(made[k], seen, false);
            if (results[k]) continue;
            while (k-- > 0) Py_CLEAR(results[k]);
            return -1;
        }
        return 1;
    }
    std::string describe(size_t) const override { return text; }

    Part part;
    Ref plan;  // owns the part
    size_t n_out = 1;
    bool in_c_order = true;  // the result would lie in another way if the arguments do
    std::string text;

  private:
    static bool holds(PyObject* check) {
        return is_exact_array(check) && PyArray_NDIM(as_array(check)) == 0 &&
               PyArray_TYPE(as_array(check)) == NPY_BOOL &&
               *static_cast<const npy_bool*>(PyArray_DATA(as_array(check)));
    }
};

// A function of NumPy that is written in Python, or wraps one of C.
bool may_be_composed(const PyNode& node) {
    static PyTypeObject* kind = nullptr;
    if (!kind) {
        Ref known = Ref::steal(find_below_numpy("median"));
        if (!known) return false;
        kind = Py_TYPE(known.get());  // lives for ever
        Py_INCREF(kind);
    }
    PyObject* fn = node.fn();
    if (Py_TYPE(fn) == kind) return true;
    if (is_tree_call(fn) && !node.form()) return Py_TYPE(reinterpret_cast<TreeCallObject*>(fn)->callee) == kind;
    return false;
}

}  // namespace

int make_composed_step(const Rewrite& r, uint32_t i, std::unique_ptr<NativeStep>& step) {
    const PyNode& node = r.g.node_as<PyNode>(i);
    if (!is_plain_call(node) || node.inputs().empty() || !may_be_composed(node)) return 0;
    for (const Edge e : node.inputs())
        if (!builtin_dtype(r.g, e) || r.g.spec(e).ndim < 1) return 0;
    Ref place = Ref::steal(Py_BuildValue("(OI)", r.graph, i));
    Ref parts = place ? plans_of_parts(r, place.get()) : Ref();
    if (!parts) return -1;
    if (PyTuple_GET_SIZE(parts.get()) != 2) return 0;
    auto made = std::make_unique<ComposedStep>(Fallback::of_node(r.g, i));
    made->plan = Ref::borrow(PyTuple_GET_ITEM(parts.get(), 0));
    made->in_c_order = PyTuple_GET_ITEM(parts.get(), 1) == Py_True;
    made->n_out = node.n_outputs();
    if (!read_part(made->plan.get(), made->part) || !made->part.program) return 0;
    const Program& p = *made->part.program;
    if (has_python(p) || p.effects || p.feeds.size() != node.inputs().size() || p.outputs.size() < made->n_out)
        return 0;
    made->text = std::to_string(p.instructions.size()) + " native step" + (p.instructions.size() == 1 ? "" : "s");
    step = std::move(made);
    return 0;
}

}  // namespace pyop
