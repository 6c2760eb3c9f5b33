// plan/steps/written_over.cpp: make writes that NumPy itself does (by masks and lists, `np.add.at`, `sort`, out=) in
// the memory of the array where nobody reads that any more.
//
// `store`, `performed` and `InPlace` (python/pyop/gradients/store.py, python/pyop/gradients/performed.py,
// python/pyop/graph/in_place.py) copy the array that they write into, unless take_over(array) says that it is given
// away: by the step that calls them, once for each array. Which arrays those are is known to the thread of the call
// alone, and for its length.
#include "plan/steps/written_over.h"

#include "graph/passes/rewrite.h"
#include "plan/steps/call_arguments.h"
#include "plan/steps/node_call.h"
#include "plan/steps/steps.h"
#include "runtime/up_calls.h"

namespace pyop {

namespace {

struct Given {
    PyObject* const* inputs = nullptr;
    uint64_t left = 0;
};
thread_local Given given;

class WrittenOver final : public NativeStep {
  public:
    WrittenOver(const Graph& g, uint32_t node) : NativeStep(Fallback::of_node(g, node)), graph_(g) {}

    int run(PyObject* const* inputs, PyObject** results, const StepContext& context) const override {
        if (!context.dying) return 0;
        const Given before = given;
        given = {inputs, context.dying};
        const int done = fallback_.call(graph_, inputs, results);
        given = before;
        return done < 0 ? -1 : 1;
    }
    std::string describe(size_t) const override { return "written by NumPy"; }
    bool may_overwrite() const override { return true; }
    int written_input() const override { return 0; }

  private:
    const Graph& graph_;  // the plan, which owns the step, keeps it
};

PyObject* take_over(PyObject*, PyObject* array) {
    for (uint64_t rest = given.left; rest; rest &= rest - 1) {
        const int k = __builtin_ctzll(rest);
        if (given.inputs[k] != array) continue;
        given.left &= ~(uint64_t{1} << k);
        Py_RETURN_TRUE;
    }
    Py_RETURN_FALSE;
}

PyMethodDef written_functions[] = {
    {"take_over", take_over, METH_O,
     "take_over(array): whether it is the caller's to write into, since nobody reads what it holds now. Once."},
    {},
};

}  // namespace

bool calls_write(const PyNode& node) {
    PyObject* const fn = NodeCall::function_of(node);
    if (fn == Py_None) return false;
    return fn == up_calls.store || fn == up_calls.performed ||
           reinterpret_cast<PyObject*>(Py_TYPE(fn)) == up_calls.in_place_call;
}

int make_written_over(const Rewrite& r, uint32_t i, std::unique_ptr<NativeStep>& step) {
    const PyNode& node = r.g.node_as<PyNode>(i);
    if (!is_plain_call(node) || node.inputs().size() > 64) return 0;
    if (calls_write(node)) step = std::make_unique<WrittenOver>(r.g, i);
    return 0;
}

int written_over_init(PyObject* module) { return PyModule_AddFunctions(module, written_functions); }

}  // namespace pyop
