// plan/steps/join.cpp: join arrays: np.concatenate, stack, append, hstack and vstack as native steps.
//
// Pieces of one of NumPy's own dtypes, all the same, are copied line by line. Everything else (promotion, a piece in
// another order of memory, which shows in the order of the result) is left to the function.
#include <cstring>
#include <numeric>

#include "array/memory/pool.h"
#include "array/memory/recycle.h"
#include "plan/steps/call_arguments.h"
#include "plan/steps/node_call.h"
#include "plan/steps/steps.h"
#include "plan/tape/tape_builder.h"
#include "runtime/attach.h"
#include "runtime/release_gil.h"
#include "runtime/stack_array.h"

namespace pyop {

namespace {

struct Piece {
    int32_t input = -1;
    Ref constant;  // an array, if it is no input
};

enum class Join {
    Flat,    // one behind the other, whatever their shapes
    Along,   // along an axis they have
    Stacked  // along a new axis
};

void copy_line(char* to, PyArrayObject* from, npy_intp n, npy_intp itemsize) {
    const npy_intp stride = PyArray_STRIDE(from, 0);
    const char* at = PyArray_BYTES(from);
    if (itemsize == 8) {
        for (npy_intp i = 0; i < n; ++i, at += stride, to += 8) std::memcpy(to, at, 8);
        return;
    }
    for (npy_intp i = 0; i < n; ++i, at += stride, to += itemsize) std::memcpy(to, at, static_cast<size_t>(itemsize));
}

class JoinStep final : public NativeStep {
  public:
    using NativeStep::NativeStep;

    int run(PyObject* const* inputs, PyObject** results, const StepContext&) const override {
        StackArray<PyArrayObject*, 16> arrays(pieces.size());
        for (size_t k = 0; k < pieces.size(); ++k) {
            PyObject* o = pieces[k].input < 0 ? pieces[k].constant.get() : inputs[pieces[k].input];
            if (!is_exact_array(o) || !fits(as_array(o), k == 0 ? as_array(o) : arrays[0])) return 0;
            arrays[k] = as_array(o);
        }
        npy_intp dims[NPY_MAXDIMS];
        const int n_dims = shape(arrays.data(), dims);
        const npy_intp itemsize = PyDataType_ELSIZE(dtype);
        const npy_intp bytes = itemsize * std::accumulate(dims, dims + n_dims, npy_intp{1}, std::multiplies<>());
        PyObject* result = bytes <= ResultRecycler::kMostBytes ? recycler_.take(dtype, n_dims, dims)
                                                               : pooled_array_new(dtype, n_dims, dims, nullptr);
        if (!result) return -1;
        {
            const DetachScope detached(bytes >= kReleaseBytes);
            copy(arrays.data(), PyArray_BYTES(as_array(result)), itemsize);
        }
        results[0] = result;
        return 1;
    }
    bool record(TapeBuilder& tape, const TapeValue* inputs, TapeValue* results) const override {
        if (!tape.with_blocks()) return false;
        std::vector<TapeValue> given(pieces.size());
        for (size_t k = 0; k < pieces.size(); ++k) {
            const Piece& piece = pieces[k];
            TapeValue& x = given[k] = piece.input < 0 ? tape.known(piece.constant.get()) : inputs[piece.input];
            const bool number = x.kind == TapeValue::Number, block = x.kind == TapeValue::Block;
            if ((!number && !block) || x.dtype != dtype || !tape.readable(x)) return false;
            if (number && how == Join::Along) return false;
            if (block && (!x.contiguous() && x.ndim != 1)) return false;
            if (how == Join::Flat) continue;
            if (x.ndim != ndim) return false;
            for (size_t d = 0; d < static_cast<size_t>(ndim); ++d)
                if (x.dims[d] != given[0].dims[d] && (how == Join::Stacked || static_cast<int>(d) != axis))
                    return false;
        }
        return join(tape, given, results[0]);
    }
    std::string describe(size_t) const override { return "copies " + std::to_string(pieces.size()) + " pieces"; }

    std::vector<Piece> pieces;
    PyArray_Descr* dtype = nullptr;  // one of NumPy's own, which live for ever
    Join how = Join::Flat;
    int ndim = 0, axis = 0;  // of the pieces, unless they are flattened

  private:
    bool fits(PyArrayObject* a, PyArrayObject* first) const {
        if (PyArray_DESCR(a) != dtype) return false;
        const int n = PyArray_NDIM(a);
        if (!PyArray_IS_C_CONTIGUOUS(a) && n != 1) return false;
        if (how == Join::Flat) return true;
        if (n != ndim) return false;
        for (int d = 0; d < n; ++d)
            if (PyArray_DIM(a, d) != PyArray_DIM(first, d) && (how == Join::Stacked || d != axis)) return false;
        return true;
    }

    int shape(PyArrayObject* const* arrays, npy_intp* dims) const {
        if (how == Join::Stacked) {
            std::copy_n(PyArray_DIMS(arrays[0]), axis, dims);
            dims[axis] = static_cast<npy_intp>(pieces.size());
            std::copy(PyArray_DIMS(arrays[0]) + axis, PyArray_DIMS(arrays[0]) + ndim, dims + axis + 1);
            return ndim + 1;
        }
        npy_intp length = 0;
        for (size_t k = 0; k < pieces.size(); ++k)
            length += how == Join::Flat ? PyArray_SIZE(arrays[k]) : PyArray_DIM(arrays[k], axis);
        if (how == Join::Along) std::copy_n(PyArray_DIMS(arrays[0]), ndim, dims);
        dims[axis] = length;
        return ndim;
    }

    // Each piece is copied into a part of the result.
    bool join(TapeBuilder& tape, const std::vector<TapeValue>& given, TapeValue& result) const {
        std::vector<npy_intp> dims(given[0].dims.begin(), given[0].dims.begin() + (how == Join::Flat ? 0 : ndim));
        const auto at_axis = static_cast<size_t>(axis);
        npy_intp length = 0;
        const auto extent = [&](const TapeValue& x) {
            return how == Join::Stacked ? npy_intp{1} : how == Join::Flat ? x.size() : x.dims[at_axis];
        };
        for (const TapeValue& x : given) length += extent(x);
        if (how == Join::Along)
            dims[at_axis] = length;
        else
            dims.insert(dims.begin() + axis, length);
        result = tape.block_new(dtype, static_cast<int>(dims.size()), dims.data());
        if (result.kind != TapeValue::Block) return false;
        npy_intp start = 0;
        for (const TapeValue& x : given) {
            TapeValue part = result, from = x;
            part.place.offset += static_cast<int32_t>(start * result.strides[at_axis]);
            part.dims[at_axis] = extent(x);
            start += extent(x);
            // A piece has no axis where it is stacked.
            for (auto d = static_cast<size_t>(part.ndim); how == Join::Stacked && d-- > 0;) {
                from.dims[d] = d == at_axis ? 1 : x.dims[d - (d > at_axis)];
                from.strides[d] = d == at_axis ? 0 : x.strides[d - (d > at_axis)];
            }
            if (how == Join::Flat) {
                const bool strided = x.ndim == 1 && !x.contiguous();
                from.dims[0] = x.size();
                from.strides[0] = strided ? x.strides[0] : static_cast<npy_intp>(PyDataType_ELSIZE(dtype));
            }
            if (from.kind == TapeValue::Number) from.place = TapeBuilder::place_of(x);
            from.ndim = part.ndim;
            from.kind = TapeValue::Block;
            if (!tape.copy(part, from)) return false;
        }
        return true;
    }

    void copy(PyArrayObject* const* arrays, char* to, npy_intp itemsize) const {
        npy_intp outer = 1;
        for (int d = 0; how != Join::Flat && d < axis; ++d) outer *= PyArray_DIM(arrays[0], d);
        if (outer == 0) return;
        for (npy_intp o = 0; o < outer; ++o) {
            for (size_t k = 0; k < pieces.size(); ++k) {
                const npy_intp n = PyArray_SIZE(arrays[k]) / outer;
                if (PyArray_IS_C_CONTIGUOUS(arrays[k]))
                    std::memcpy(to, PyArray_BYTES(arrays[k]) + o * n * itemsize, static_cast<size_t>(n * itemsize));
                else if (outer == 1)
                    copy_line(to, arrays[k], n, itemsize);
                else  // a new last axis: one element of each line
                    std::memcpy(to, PyArray_BYTES(arrays[k]) + o * PyArray_STRIDE(arrays[k], 0),
                                static_cast<size_t>(itemsize));
                to += n * itemsize;
            }
        }
    }

    mutable ResultRecycler recycler_;  // the GIL guards it
};

// --- reading calls

enum class JoinFunction { Concatenate, Stack, Append, HStack, VStack };
constexpr Named<JoinFunction> kJoins[] = {
    {"concatenate", JoinFunction::Concatenate}, {"concat", JoinFunction::Concatenate}, {"stack", JoinFunction::Stack},
    {"append", JoinFunction::Append},           {"hstack", JoinFunction::HStack},      {"vstack", JoinFunction::VStack},
};

// What a static piece is as an array; empty, without an error, if that is not clear.
Ref constant_of(PyObject* o, PyArray_Descr* dtype) {
    const bool number = PyFloat_CheckExact(o) || PyLong_CheckExact(o) || PyBool_Check(o) || PyComplex_CheckExact(o);
    if (!number && !PyList_CheckExact(o) && !PyTuple_CheckExact(o) && !is_exact_array(o)) return {};
    Ref array = Ref::steal(PyArray_FromAny(o, nullptr, 0, 0, NPY_ARRAY_CARRAY_RO, nullptr));
    if (!array) PyErr_Clear();
    return array && PyArray_DESCR(as_array(array.get())) == dtype ? std::move(array) : Ref();
}

class PieceReader {
  public:
    PieceReader(const Rewrite& r, const PyNode& node, JoinStep& step) : r_(r), node_(node), step_(step) {}

    // The pieces of one argument: itself, or what is in it if it is a container of arrays.
    bool read_all(const NodeArgument& argument) {
        if (!argument.nested) return false;
        const TreeItem& list = *argument.nested;
        if (list.kind != TreeItem::Tuple && list.kind != TreeItem::List) return false;
        for (const TreeItem& item : list.items) {
            NodeArgument one;
            if (item.kind == TreeItem::Array)
                one.input = item.index;
            else if (item.kind == TreeItem::Static || !item.has_arrays)
                one.value = item.object.get();
            if (!read_one(one)) return false;
        }
        return true;
    }

    bool read_one(const NodeArgument& argument) {
        Piece piece;
        int ndim;
        if (argument.input >= 0) {
            const Edge input = node_.inputs()[static_cast<size_t>(argument.input)];
            if (builtin_dtype(r_.g, input) != step_.dtype) return false;
            piece.input = static_cast<int32_t>(argument.input);
            ndim = r_.g.spec(input).ndim;
        } else {
            if (argument.nested || !argument.value) return false;
            piece.constant = constant_of(argument.value, step_.dtype);
            if (!piece.constant) return false;
            ndim = PyArray_NDIM(as_array(piece.constant.get()));
        }
        most_ = std::max(most_, ndim);
        alike_ = alike_ && ndim >= 0 && (step_.pieces.empty() || ndim == first_);
        if (step_.pieces.empty()) first_ = ndim;
        step_.pieces.push_back(std::move(piece));
        return true;
    }

    // With the rank of the pieces known: by `axis`, None for flattened ones. False if there is no such axis.
    bool join(Join how, const NodeArgument& axis, npy_intp otherwise) {
        npy_intp at = otherwise;
        if (axis.computed()) return false;
        if (axis.value == Py_None && how == Join::Along) return flatten();
        if (axis.value && !read_axis(axis.value, at)) return false;
        return join_at(how, at);
    }
    bool join_at(Join how, npy_intp at) {
        const npy_intp n = first_ + (how == Join::Stacked);
        if (!alike_ || n < 1 || n > NPY_MAXDIMS || at < -n || at >= n) return false;
        step_.how = how;
        step_.ndim = first_;
        step_.axis = static_cast<int>(at < 0 ? at + n : at);
        return true;
    }
    bool flatten() {
        step_.how = Join::Flat;
        step_.ndim = 1;
        step_.axis = 0;
        return true;
    }
    int first_rank() const { return alike_ ? first_ : -1; }
    bool flat_already() const { return alike_ && most_ <= 1; }

  private:
    static bool read_axis(PyObject* o, npy_intp& axis) {
        if (!PyLong_CheckExact(o)) return false;
        axis = PyLong_AsSsize_t(o);
        if (axis == -1 && PyErr_Occurred()) PyErr_Clear();
        return true;
    }

    const Rewrite& r_;
    const PyNode& node_;
    JoinStep& step_;
    int first_ = -1, most_ = 0;
    bool alike_ = true;  // all of one known rank
};

bool read_join(JoinFunction function, const NodeCall& call, PieceReader& reader) {
    std::vector<NodeArgument> given;
    switch (function) {
        case JoinFunction::Concatenate:
            return call.bind({"arrays", "axis", "out", "dtype", "casting"}, given) && given[2].none() &&
                   given[3].none() && !given[4].given() && reader.read_all(given[0]) &&
                   reader.join(Join::Along, given[1], 0);
        case JoinFunction::Stack:
            return call.bind({"arrays", "axis", "out", "dtype", "casting"}, given) && given[2].none() &&
                   given[3].none() && !given[4].given() && reader.read_all(given[0]) &&
                   reader.join(Join::Stacked, given[1], 0);
        case JoinFunction::Append:
            if (!call.bind({"arr", "values", "axis"}, given) || !reader.read_one(given[0]) ||
                !reader.read_one(given[1]))
                return false;
            return given[2].none() ? reader.flatten() : reader.join(Join::Along, given[2], 0);
        case JoinFunction::HStack:
            if (!call.bind({"tup", "dtype", "casting"}, given) || !given[1].none() || given[2].given() ||
                !reader.read_all(given[0]))
                return false;
            return reader.flat_already() ? reader.flatten() : reader.join_at(Join::Along, 1);
        case JoinFunction::VStack:
            if (!call.bind({"tup", "dtype", "casting"}, given) || !given[1].none() || given[2].given() ||
                !reader.read_all(given[0]))
                return false;
            if (reader.first_rank() < 1) return false;
            return reader.join_at(reader.first_rank() == 1 ? Join::Stacked : Join::Along, 0);
    }
    return false;
}

}  // namespace

int make_join_step(const Rewrite& r, uint32_t i, std::unique_ptr<NativeStep>& step) {
    const PyNode& node = r.g.node_as<PyNode>(i);
    if (!is_plain_call(node) || node.n_outputs() != 1) return 0;
    const NodeCall call(node);
    const auto* found = function_table<kJoins>().find(call.fn());
    if (!found) return 0;
    auto made = std::make_unique<JoinStep>(Fallback::of_node(r.g, i));
    made->dtype = builtin_dtype(r.g, {i, 0});
    PieceReader reader(r, node, *made);
    if (made->dtype && read_join(found->entry, call, reader) && !made->pieces.empty()) step = std::move(made);
    return 0;
}

}  // namespace pyop
