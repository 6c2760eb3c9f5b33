// plan/steps/computed_part.cpp: compute x[k], x[a:b], x[k, 1:] with integers that the graph computes, natively.
//
// They are arrays of no dimension: where one stands for itself, and not as the bound of a slice, NumPy gives a copy.
#include "array/memory/recycle.h"
#include "graph/value_item.h"
#include "plan/steps/call_arguments.h"
#include "plan/steps/computed_key.h"
#include "plan/steps/copy_into.h"
#include "plan/steps/steps.h"
#include "plan/tape/tape_builder.h"
#include "runtime/stack_array.h"
#include "runtime/up_calls.h"

namespace pyop {

namespace {

class ComputedPart final : public NativeStep {
  public:
    ComputedPart(const Graph& g, uint32_t node, ComputedKey key)
        : NativeStep(Fallback::of_node(g, node)), key_(std::move(key)) {}

    int run(PyObject* const* inputs, PyObject** results, const StepContext&) const override {
        if (!is_exact_array(inputs[source]) || PyArray_DESCR(as_array(inputs[source])) != dtype) return 0;
        PyArrayObject* x = as_array(inputs[source]);
        StackArray<npy_intp, 8> numbers(key_.count());
        if (!key_.read(inputs, numbers.data())) return 0;
        if (places) {
            const char* from = element_at(x, *places, numbers.data());
            if (!from) return 0;
            results[0] = recycler_.take(dtype, 0, nullptr);
            if (!results[0]) return -1;
            std::memcpy(PyArray_DATA(as_array(results[0])), from, static_cast<size_t>(PyDataType_ELSIZE(dtype)));
            return 1;
        }
        const ArrayView base(x);
        ArrayView part;
        if (!recipe.apply(base, part, numbers.data())) return 0;
        if (copies && part.contiguous(false) && part.size() * part.itemsize <= ResultRecycler::kMostBytes) {
            results[0] = recycler_.take(dtype, part.ndim, part.dims);
            if (results[0])
                std::memcpy(PyArray_DATA(as_array(results[0])), part.data,
                            static_cast<size_t>(part.size() * part.itemsize));
            return results[0] ? 1 : -1;
        }
        Ref view = Ref::steal(part.array_new(inputs[source]));
        results[0] = !view || !copies ? view.release() : PyArray_NewCopy(as_array(view.get()), NPY_KEEPORDER);
        return results[0] ? 1 : -1;
    }
    bool record(TapeBuilder& tape, const TapeValue* inputs, TapeValue* results) const override {
        const TapeValue& x = inputs[source];
        if (x.dtype != dtype) return false;
        if (places && x.kind == TapeValue::Array)
            return tape.load(x, *places, key_.own(), inputs, results[0], &key_.inputs());
        return tape.part(x, {recipe}, key_.own(), inputs, &key_.inputs(), results[0]);
    }
    std::string describe(size_t) const override {
        return copies ? "copies what lies at a computed place" : "view, between computed bounds";
    }

    size_t source = 0;
    PyArray_Descr* dtype = nullptr;  // one of NumPy's own, which live for ever
    ViewRecipe recipe;
    const std::vector<AxisItem>* places = nullptr;  // of the one element that is read, if that is all
    bool copies = false;

  private:
    const ComputedKey key_;
    mutable ResultRecycler recycler_;  // the GIL guards it
};

// Whether an integer that is computed stands for itself among the items of an index.
bool picks(PyObject* key) {
    const auto is_mark = [](PyObject* o) { return PyList_CheckExact(o); };
    if (!PyTuple_CheckExact(key)) return is_mark(key);
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(key); ++k)
        if (is_mark(PyTuple_GET_ITEM(key, k))) return true;
    return false;
}

}  // namespace

int make_computed_part(const Rewrite& r, uint32_t i, std::unique_ptr<NativeStep>& step) {
    const PyNode& node = r.g.node_as<PyNode>(i);
    if (!is_plain_call(node) || node.n_outputs() != 1) return 0;
    PyObject* const fn = NodeCall::function_of(node);
    const bool bounds = fn == up_calls.getitem_with_bounds;
    if (!bounds && fn != getitem_function) return 0;
    const NodeCall call(node);
    std::vector<NodeArgument> given;
    if (!(bounds ? call.bind({"array", "key"}, given) : call.bind({"a", "b"}, given))) return 0;
    if (given[0].input < 0 || !given[1].computed()) return 0;
    const Edge source = node.inputs()[static_cast<size_t>(given[0].input)];
    const int ndim = r.g.spec(source).ndim;
    PyArray_Descr* dtype = builtin_dtype(r.g, source);
    if (!dtype || ndim < 1) return 0;
    if (ndim == 1 && given[1].input >= 0) {
        PyArray_Descr* of = builtin_dtype(r.g, node.inputs()[static_cast<size_t>(given[1].input)]);
        if (of && of->type_num == NPY_INTP) return 0;  // one of one axis is picked (take.cpp)
    }
    ComputedKey key(call.layout());
    PyObject* object = key.object(r, node, given[1]);
    Ref index = object && bounds ? spelled_key(object) : Ref::borrow(object);
    ViewRecipe recipe;
    if (!index || !key.any() || !read_key(index.get(), ndim, key.sizes(), recipe)) return 0;
    auto made = std::make_unique<ComputedPart>(r.g, i, std::move(key));
    made->source = static_cast<size_t>(given[0].input);
    made->dtype = dtype;
    made->recipe = std::move(recipe);
    made->copies = picks(index.get());
    made->places = made->recipe.places();
    if (made->places && !made->copies) return 0;
    step = std::move(made);
    return 0;
}

}  // namespace pyop
