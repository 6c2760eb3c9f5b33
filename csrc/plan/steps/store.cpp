// plan/steps/store.cpp: write by slices and integers, as a native step: into the memory of the array itself where
// nobody reads that any more, else into a copy that lies as it does.
//
// Arrays of another dtype, and numbers whose conversion warns or raises, are left to the function.
#include <cstring>

#include "array/memory/pool.h"
#include "array/memory/recycle.h"
#include "plan/steps/call_arguments.h"
#include "plan/steps/computed_key.h"
#include "plan/steps/copy_into.h"
#include "plan/steps/node_call.h"
#include "plan/steps/steps.h"
#include "plan/steps/store_parts.h"
#include "plan/steps/view_reading.h"
#include "plan/tape/element_cast.h"
#include "plan/tape/tape_builder.h"
#include "runtime/attach.h"
#include "runtime/release_gil.h"
#include "runtime/stack_array.h"
#include "runtime/up_calls.h"

namespace pyop {

namespace {

constexpr npy_intp kWorthwhileBytes = 1024;  // of an array, to compute part of it in its place

class StoreStep final : public NativeStep {
  public:
    StoreStep(const Graph& g, uint32_t node, ComputedKey of)
        : NativeStep(Fallback::of_node(g, node)), key(std::move(of)) {}

    int run(PyObject* const* inputs, PyObject** results, const StepContext& context) const override {
        PyObject* x = inputs[source];
        if (!is_exact_array(x) || PyArray_DESCR(as_array(x)) != dtype || !PyArray_ISALIGNED(as_array(x))) return 0;
        WrittenValue::Elements written;
        if (!value.read(inputs, dtype, written)) return 0;
        PyArrayObject* const array = written.array;
        const char* const from = written.from;
        const bool overwrites = context.dying >> source & 1;
        if (index >= 0) return store_at(inputs[index], x, array, from, overwrites, results);
        StackArray<npy_intp, 8> numbers(key.count());
        if (!key.read(inputs, numbers.data())) return 0;
        if (places && overwrites && (!array || PyArray_NDIM(array) == 0)) {
            char* to = element_at(as_array(x), *places, numbers.data());
            if (!to) return 0;
            std::memcpy(to, from, static_cast<size_t>(PyDataType_ELSIZE(dtype)));
            results[0] = Py_NewRef(x);
            return 1;
        }
        // The part is looked at before anything is made, in the memory that is there.
        ArrayView memory[2];
        const ArrayView* part = part_of(as_array(x), views, numbers.data(), memory);
        npy_intp strides[NPY_MAXDIMS];
        if (!part || !broadcast(array, *part, strides)) return 0;
        if (overwrites && array && stands_there(array, *part)) {
            results[0] = Py_NewRef(x);
            return 1;
        }
        if (array && value_may_stay(inputs, context, *part)) {
            results[0] = Py_NewRef(inputs[value.input]);
            return 1;
        }
        Ref result = overwrites ? Ref::borrow(x) : copy_of(as_array(x));
        if (!result) return -1;
        if (!overwrites) part = part_of(as_array(result.get()), views, numbers.data(), memory);
        if (!part) return 0;
        {
            const DetachScope detached(part->size() * part->itemsize >= kReleaseBytes);
            copy_into(*part, from, strides);
        }
        results[0] = result.release();
        return 1;
    }
    bool record(TapeBuilder& tape, const TapeValue* inputs, TapeValue* results) const override {
        TapeValue element = value.input < 0 ? tape.constant(value.constant, dtype) : inputs[value.input];
        const TapeValue& x = inputs[source];
        if (x.dtype != dtype) return false;
        if (element.kind == TapeValue::Number && element.dtype != dtype) {
            const TapeValue given = element;
            TapeCall::Function* const cast = find_store_cast(given.dtype->type_num, dtype->type_num);
            element = tape.number_new(dtype);
            if (!cast || !tape.compute(cast, nullptr, element, given, given)) return false;
        }
        if (index >= 0) return tape.store(x, inputs[index], element, results[0]);
        if (x.kind == TapeValue::Array && places && element.kind == TapeValue::Number)
            return tape.store(x, *places, key.own(), inputs, element, results[0], &key.inputs());
        return tape.store_part(x, views, key.own(), inputs, &key.inputs(), element, results[0]);
    }
    std::string describe(size_t) const override { return "writes a part"; }
    bool may_overwrite() const override { return true; }
    int written_input() const override { return static_cast<int>(source); }
    int stored_input() const override { return index < 0 ? static_cast<int>(value.input) : -1; }

    PyObject* part_new(PyObject* const* inputs) const override {
        PyArrayObject* x = as_array(inputs[source]);
        if (PyArray_DESCR(x) != dtype || PyArray_NBYTES(x) < kWorthwhileBytes || !PyArray_ISALIGNED(x)) return nullptr;
        StackArray<npy_intp, 8> numbers(key.count());
        if (!key.read(inputs, numbers.data())) return nullptr;
        ArrayView memory[2];
        const ArrayView* part = part_of(x, views, numbers.data(), memory);
        if (!part || !part->writeable || part->ndim == 0) return nullptr;
        return PyArray_NewFromDescr(
            &PyArray_Type, reinterpret_cast<PyArray_Descr*>(Py_NewRef(reinterpret_cast<PyObject*>(part->descr))),
            part->ndim, part->dims, part->strides, part->data, NPY_ARRAY_WRITEABLE, nullptr);
    }

    bool would_write(PyObject* const* inputs) const override {
        PyObject* x = inputs[source];
        if (index >= 0 || !is_exact_array(x) || PyArray_DESCR(as_array(x)) != dtype || !PyArray_ISBEHAVED(as_array(x)))
            return false;
        WrittenValue::Elements written;
        StackArray<npy_intp, 8> numbers(key.count());
        if (!value.read(inputs, dtype, written) || !key.read(inputs, numbers.data())) return false;
        ArrayView memory[2];
        npy_intp strides[NPY_MAXDIMS];
        const ArrayView* part = part_of(as_array(x), views, numbers.data(), memory);
        return part && part->writeable && broadcast(written.array, *part, strides);
    }

    size_t source = 0;
    WrittenValue value;
    PyArray_Descr* dtype = nullptr;            // one of NumPy's own, which live for ever
    std::vector<ViewRecipe> views;             // from the whole to the part, at least one
    int64_t index = -1;                        // the input that is the position on the one axis; then no views
    const ComputedKey key;                     // numbers in the views
    const std::vector<AxisItem>* places = nullptr;  // of the one element that is written, if that is all

  private:
    // One element, at a position that the graph computes.
    int store_at(PyObject* given, PyObject* x, PyArrayObject* array, const char* from, bool overwrites,
                 PyObject** results) const {
        if (!is_exact_array(given) || PyArray_NDIM(as_array(given)) != 0 || PyArray_TYPE(as_array(given)) != NPY_INTP ||
            !PyArray_ISBEHAVED_RO(as_array(given)) || PyArray_NDIM(as_array(x)) != 1 ||
            (array && PyArray_NDIM(array) != 0))
            return 0;
        npy_intp at = *static_cast<const npy_intp*>(PyArray_DATA(as_array(given)));
        const npy_intp size = PyArray_DIM(as_array(x), 0);
        if (at < 0) at += size;
        if (at < 0 || at >= size) return 0;
        Ref result = overwrites ? Ref::borrow(x) : copy_of(as_array(x));
        if (!result) return -1;
        PyArrayObject* to = as_array(result.get());
        std::memcpy(PyArray_BYTES(to) + at * PyArray_STRIDE(to, 0), from,
                    static_cast<size_t>(PyDataType_ELSIZE(dtype)));
        results[0] = result.release();
        return 1;
    }

    // Whether the value is the part already: it was computed there (Program::part_targets).
    static bool stands_there(PyArrayObject* from, const ArrayView& part) {
        return PyArray_BYTES(from) == part.data && PyArray_NDIM(from) == part.ndim &&
               PyArray_CompareLists(PyArray_DIMS(from), part.dims, part.ndim) &&
               PyArray_CompareLists(PyArray_STRIDES(from), part.strides, part.ndim);
    }

    // Whether all of the array is written, by one that lies as it does and that nobody else will see: then that is it.
    bool value_may_stay(PyObject* const* inputs, const StepContext& context, const ArrayView& part) const {
        if (!(context.dying >> value.input & 1)) return false;
        PyArrayObject *to = as_array(inputs[source]), *from = as_array(inputs[value.input]);
        const int ndim = PyArray_NDIM(to);
        return part.data == PyArray_BYTES(to) && part.ndim == ndim && PyArray_NDIM(from) == ndim &&
               PyArray_CompareLists(part.dims, PyArray_DIMS(to), ndim) &&
               PyArray_CompareLists(part.strides, PyArray_STRIDES(to), ndim) &&
               PyArray_CompareLists(PyArray_DIMS(from), PyArray_DIMS(to), ndim) &&
               PyArray_CompareLists(PyArray_STRIDES(from), PyArray_STRIDES(to), ndim);
    }

    // How far apart the elements lie that come to stand side by side in the part. False if they do not fit.
    static bool broadcast(PyArrayObject* array, const ArrayView& part, npy_intp* strides) {
        const int ndim = array ? PyArray_NDIM(array) : 0;
        if (ndim > part.ndim) return false;
        for (int d = 0; d < part.ndim; ++d) {
            const int of = d - (part.ndim - ndim);
            const npy_intp have = of < 0 ? 1 : PyArray_DIM(array, of);
            if (have != part.dims[d] && have != 1) return false;
            strides[d] = of < 0 || have == 1 ? 0 : PyArray_STRIDE(array, of);
        }
        return true;
    }

    Ref copy_of(PyArrayObject* x) const { return copy_to_write(x, recycler_); }

    mutable ResultRecycler recycler_;  // the GIL guards it
};

bool is_position(const Rewrite& r, const PyNode& node, int64_t input) {
    const Edge e = node.inputs()[static_cast<size_t>(input)];
    PyArray_Descr* descr = builtin_dtype(r.g, e);
    return descr && descr->type_num == NPY_INTP && r.g.spec(e).ndim == 0;
}

}  // namespace

int make_store_step(const Rewrite& r, uint32_t i, std::unique_ptr<NativeStep>& step) {
    const PyNode& node = r.g.node_as<PyNode>(i);
    if (!is_plain_call(node) || node.n_outputs() != 1 || !up_calls.store) return 0;
    const NodeCall call(node);
    std::vector<NodeArgument> given;
    if (call.fn() != up_calls.store || !call.bind({"x", "value", "key", "views", "scalar"}, given)) return 0;
    if (given[0].input < 0) return 0;
    const int ndim = r.g.spec(node.inputs()[static_cast<size_t>(given[0].input)]).ndim;
    // By one position, which need not be read as a key.
    const bool one_of_line = given[2].input >= 0 && ndim == 1 && is_position(r, node, given[2].input);
    ComputedKey key(call.layout());
    PyObject* const last = one_of_line ? nullptr : key.object(r, node, given[2]);
    PyObject* const views = key.object(r, node, given[3]);
    if ((!last && !one_of_line) || !views) return 0;
    auto made = std::make_unique<StoreStep>(r.g, i, std::move(key));
    made->source = static_cast<size_t>(given[0].input);
    made->dtype = builtin_dtype(r.g, node.inputs()[made->source]);
    if (!made->dtype || ndim < 0 || static_cast<size_t>(PyDataType_ELSIZE(made->dtype)) > kLargestElement) return 0;
    if (!made->value.bind(given[1], made->dtype)) return 0;
    if (one_of_line && PyTuple_CheckExact(views) && PyTuple_GET_SIZE(views) == 0) {
        made->index = given[2].input;
    } else {
        if (!last || !read_views(views, last, ndim, made->key.sizes(), made->views)) return 0;
        if (made->views.size() == 1) made->places = made->views[0].places();
    }
    step = std::move(made);
    return 0;
}

}  // namespace pyop
