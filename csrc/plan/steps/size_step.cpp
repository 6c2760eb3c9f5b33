// plan/steps/size_step.cpp: compute a symbolic size as a number (`size_number` of
// python/pyop/graph/symbolic_number.py): that of an axis, or one computed from the counter of a loop.
#include "array/memory/recycle.h"
#include "plan/steps/call_arguments.h"
#include "plan/steps/node_call.h"
#include "plan/steps/steps.h"
#include "plan/tape/tape_builder.h"
#include "runtime/stack_array.h"
#include "runtime/up_calls.h"

namespace pyop {

namespace {

class SizeStep final : public NativeStep {
  public:
    SizeStep(const Graph& g, uint32_t node, const TreeCallObject::Layout& layout, uint32_t size)
        : NativeStep(Fallback::of_node(g, node)), layout_(layout), size_(size) {}

    int run(PyObject* const* inputs, PyObject** results, const StepContext&) const override {
        StackArray<npy_intp, 8> sizes(layout_.sizes.size());
        if (!tree_sizes(layout_, inputs, sizes.data())) return 0;
        PyArray_Descr* dtype = PyArray_DescrFromType(NPY_INTP);  // lives for ever
        results[0] = recycler_.take(dtype, 0, nullptr);
        Py_DECREF(dtype);
        if (!results[0]) return -1;
        *static_cast<npy_intp*>(PyArray_DATA(as_array(results[0]))) = sizes.data()[size_];
        return 1;
    }
    bool record(TapeBuilder& tape, const TapeValue* inputs, TapeValue* results) const override {
        return tape.size(layout_, size_, inputs, results[0]);
    }
    std::string describe(size_t) const override { return "number of a size"; }

  private:
    const TreeCallObject::Layout& layout_;  // the node's
    const uint32_t size_;
    mutable ResultRecycler recycler_;  // the GIL guards it
};

}  // namespace

int make_size_step(const Rewrite& r, uint32_t i, std::unique_ptr<NativeStep>& step) {
    const PyNode& node = r.g.node_as<PyNode>(i);
    if (!is_plain_call(node) || node.n_outputs() != 1 || NodeCall::function_of(node) != up_calls.size_number) return 0;
    const TreeCallObject::Layout* layout = NodeCall(node).layout();
    if (!layout || layout->positional.size() != 1 || !layout->keywords.empty()) return 0;
    const TreeItem& item = layout->positional[0];
    if (item.kind == TreeItem::Size && layout->sizes[item.index].is_poly)
        step = std::make_unique<SizeStep>(r.g, i, *layout, item.index);
    return 0;
}

}  // namespace pyop
