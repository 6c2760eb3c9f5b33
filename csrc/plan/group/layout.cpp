// plan/group/layout.cpp: find which order of axes serves all arrays of a run, and which operands are scalar,
// contiguous or strided.
#include "plan/group/layout.h"

#include <algorithm>
#include <cstdlib>

namespace pyop {

namespace {

// Whether an array's memory runs through its axes from the last to the first (C) or from the first to the last.
// Axes that are repeated or have one element fit both.
struct Order {
    bool c = true, fortran = true;
};
Order order_of(int ndim, const npy_intp* shape, const npy_intp* strides) {
    Order order;
    npy_intp last = 0;
    for (int d = 0; d < ndim; ++d) {
        const npy_intp stride = std::abs(strides[d]);
        if (shape[d] == 1 || stride == 0) continue;
        if (last != 0) {
            if (stride > last) order.c = false;
            if (stride < last) order.fortran = false;
        }
        last = stride;
    }
    return order;
}

// Without the call of memcmp() that std::equal becomes.
PYOP_INLINE bool same_dims(int ndim, const npy_intp* a, const npy_intp* b) {
    for (int d = 0; d < ndim; ++d)
        if (a[d] != b[d]) return false;
    return true;
}

// Single elements of several ranks, or one off its alignment, make NumPy use its iterator, which gives loops no
// strides; those of one rank keep the strides they have, backward ones too. Complex products, powers and others then
// have other last bits than for a block.
bool singles_are_alike(size_t n, PyObject* const* externals) {
    for (size_t k = 0; k < n; ++k) {
        PyArrayObject* a = as_array(externals[k]);
        if (PyArray_NDIM(a) != PyArray_NDIM(as_array(externals[0])) || !PyArray_ISALIGNED(a)) return false;
        if (PyArray_NDIM(a) == 1 && PyArray_STRIDE(a, 0) < 0) return false;
    }
    return true;
}

// Whether an array repeats elements along an axis. A copy of it in the order it has is then laid out in NumPy's own
// way.
bool repeats_elements(PyArrayObject* a) {
    for (int d = 0; d < PyArray_NDIM(a); ++d)
        if (PyArray_STRIDE(a, d) == 0 && PyArray_DIM(a, d) > 1) return true;
    return false;
}

}  // namespace

bool GroupLayout::find(const LoopGroup& group, PyObject* const* externals) {
    if (PYOP_UNLIKELY(!find_simple(group, externals))) {
        for (size_t k = 0; k < group.n_externals_; ++k) {
            if (!is_exact_array(externals[k])) return false;
            PyArray_Descr *have = PyArray_DESCR(as_array(externals[k])), *want = group.code_.streams[k].dtype;
            if (have != want && (have->type_num != want->type_num || !PyArray_ISNBO(have->byteorder))) return false;
        }
        if (!find_alike(group, externals) && !find_general(group, externals)) return false;
    }
    // NumPy casts a single element once and repeats it; power and clip look at that, and give other bits for a block.
    if (PYOP_UNLIKELY(scalar & group.cast_)) return false;
    for (uint64_t rest = group.copied_ & ~contiguous; PYOP_UNLIKELY(rest != 0); rest &= rest - 1)
        if (repeats_elements(as_array(externals[__builtin_ctzll(rest)]))) return false;
    return PYOP_LIKELY(size != 1 || !group.strict_) || singles_are_alike(group.n_externals_, externals);
}

// The commonest case: arrays of one shape, side by side in C order, and single elements of no more axes.
bool GroupLayout::find_simple(const LoopGroup& group, PyObject* const* externals) {
    PyArrayObject* leader = nullptr;
    for (size_t k = 0; k < group.n_externals_; ++k) {
        PyArrayObject* a = as_array(externals[k]);
        if (!is_exact_array(externals[k]) || PyArray_DESCR(a) != group.code_.streams[k].dtype ||
            !PyArray_CHKFLAGS(a, NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED))
            return false;
        const int rank = PyArray_NDIM(a);
        const npy_intp* dims = PyArray_DIMS(a);
        const uint64_t bit = uint64_t{1} << k;
        if (leader && rank == ndim && same_dims(rank, dims, shape)) {
            (size == 1 ? scalar : contiguous) |= bit;
            continue;
        }
        npy_intp n = 1;
        for (int d = 0; d < rank; ++d) n *= dims[d];
        if (n == 1 && leader && rank <= ndim) {
            scalar |= bit;
            continue;
        }
        if (leader && (size != 1 || rank < ndim)) return false;
        leader = a;
        ndim = rank;
        size = n;
        shape = dims;
        (n == 1 ? scalar : contiguous) |= bit;
    }
    // A result that reads only single elements has their shape, whatever the others have.
    if (scalar && contiguous)
        for (const uint64_t depends : group.depends_)
            if (!(depends & contiguous)) return false;
    return leader != nullptr;
}

// The next: slices of one shape with the same strides, and single elements of no more axes.
bool GroupLayout::find_alike(const LoopGroup& group, PyObject* const* externals) {
    contiguous = scalar = 0;
    fortran = false;
    if (!group.reductions_.empty()) return false;
    PyArrayObject* leader = nullptr;
    int most = 0;  // axes
    size_t n_lines = 0;
    for (size_t k = 0; k < group.n_externals_; ++k) {
        PyArrayObject* a = as_array(externals[k]);
        most = std::max(most, PyArray_NDIM(a));
        if (!PyArray_ISALIGNED(a)) return false;
        if (PyArray_SIZE(a) == 1) {
            scalar |= uint64_t{1} << k;
            continue;
        }
        if (!leader) leader = a;
        const int n = PyArray_NDIM(leader);
        if (PyArray_NDIM(a) != n || PyArray_ITEMSIZE(a) != PyArray_ITEMSIZE(leader) ||
            !same_dims(n, PyArray_DIMS(a), PyArray_DIMS(leader)) ||
            !same_dims(n, PyArray_STRIDES(a), PyArray_STRIDES(leader)))
            return false;
        contiguous |= uint64_t{1} << k;
        ++n_lines;
    }
    if (!leader || PyArray_NDIM(leader) != most || most < 2 || PyArray_IS_C_CONTIGUOUS(leader) ||
        n_lines <= group.depends_.size())
        return false;
    for (const uint64_t depends : group.depends_)
        if (!(depends & contiguous)) return false;
    ndim = most;
    shape = PyArray_DIMS(leader);
    size = PyArray_SIZE(leader);
    by_lines = lines.find(ndim, shape, PyArray_STRIDES(leader), PyArray_ITEMSIZE(leader)) && read_as_lines();
    if (by_lines) size = lines.places;
    return by_lines;
}

bool GroupLayout::find_general(const LoopGroup& group, PyObject* const* externals) {
    ndim = 0;
    size = 1;
    contiguous = scalar = strided = 0;
    const size_t n = group.n_externals_;
    for (size_t k = 0; k < n; ++k) ndim = std::max(ndim, PyArray_NDIM(as_array(externals[k])));
    std::fill_n(shape_, ndim, 1);
    for (size_t k = 0; k < n; ++k) {
        PyArrayObject* a = as_array(externals[k]);
        const int offset = ndim - PyArray_NDIM(a);
        for (int d = 0; d < PyArray_NDIM(a); ++d) {
            npy_intp& have = shape_[offset + d];
            const npy_intp next = PyArray_DIM(a, d);
            if (have == 1)
                have = next;
            else if (next != 1 && next != have)
                return false;
        }
    }
    shape = shape_;
    for (int d = 0; d < ndim; ++d) size *= shape[d];
    // An array of no elements has as many as the result whatever its shape, and a walk over it repeats nothing.
    if (size == 0) return false;

    // Strides over the common shape, and the order in which memory runs.
    std::vector<npy_intp> strides(n * static_cast<size_t>(ndim));
    Order order;
    bool partial = false;
    uint64_t by_rows = 0;  // externals of the whole shape that lie in C order alone
    for (size_t k = 0; k < n; ++k) {
        PyArrayObject* a = as_array(externals[k]);
        const int offset = ndim - PyArray_NDIM(a);
        npy_intp* s = strides.data() + k * static_cast<size_t>(ndim);
        for (int d = 0; d < ndim; ++d)
            s[d] = d < offset || PyArray_DIM(a, d - offset) == 1 ? 0 : PyArray_STRIDE(a, d - offset);
        const Order own = order_of(ndim, shape, s);
        order.c &= own.c;
        order.fortran &= own.fortran;
        // What is computed of it alone is laid out in C order.
        const bool repeats = repeats_elements(a);
        partial |= (PyArray_SIZE(a) != size && PyArray_SIZE(a) != 1) || repeats;
        if (own.c && !own.fortran && PyArray_SIZE(a) == size && !repeats) by_rows |= uint64_t{1} << k;
    }
    // Of operands in several orders, one of the whole shape in C order decides for NumPy's iterator (A + A.T), and so
    // for the next call. Loops that look at strides would be given those of what is between.
    // What is written in place keeps its own order, whatever the others have: then the calls are made, too.
    bool decided = by_rows != 0 && !group.in_place_ && group.loops_.empty() && group.reductions_.empty();
    for (const uint64_t depends : group.depends_) decided = decided && (depends & by_rows);
    // Where NumPy would choose an order call by call, the calls must be made.
    if (!order.c && !decided && (!order.fortran || partial)) return false;
    fortran = !order.c && !decided;
    for (const uint64_t depends : group.depends_) {
        std::array<npy_intp, NPY_MAXDIMS> own;
        std::fill_n(own.begin(), ndim, 1);
        for (size_t k = 0; k < n; ++k) {
            PyArrayObject* a = as_array(externals[k]);
            const int offset = ndim - PyArray_NDIM(a);
            if (depends >> k & 1)
                for (int d = 0; d < PyArray_NDIM(a); ++d)
                    if (PyArray_DIM(a, d) != 1) own[static_cast<size_t>(offset + d)] = PyArray_DIM(a, d);
        }
        if (!std::equal(shape, shape + ndim, own.begin())) return false;
    }
    for (size_t k = 0; k < n; ++k)
        if (PyArrayObject* a = as_array(externals[k]); PyArray_SIZE(a) == 1 && PyArray_ISALIGNED(a))
            scalar |= uint64_t{1} << k;
    by_lines = find_lines(group, externals, strides.data());
    npy_intp walked[NPY_MAXDIMS], walked_strides[NPY_MAXDIMS];
    for (size_t k = 0; k < n; ++k) {
        PyArrayObject* a = as_array(externals[k]);
        const npy_intp* s = strides.data() + k * static_cast<size_t>(ndim);
        if (scalar >> k & 1) continue;
        const bool side_by_side = fortran ? PyArray_IS_F_CONTIGUOUS(a) : PyArray_IS_C_CONTIGUOUS(a);
        if (by_lines ? lies_by_lines(s, PyArray_ITEMSIZE(a)) && PyArray_ISALIGNED(a)
                     : side_by_side && PyArray_SIZE(a) == size && PyArray_ISALIGNED(a)) {
            contiguous |= uint64_t{1} << k;
            continue;
        }
        for (int d = 0; d < ndim; ++d) {
            walked[d] = fortran ? shape[ndim - 1 - d] : shape[d];
            walked_strides[d] = fortran ? s[ndim - 1 - d] : s[d];
        }
        StridedWalk walk(PyArray_BYTES(a), ndim, walked, walked_strides, PyArray_ITEMSIZE(a));
        const bool strict = (group.strict_ >> k & 1) && PyArray_ISALIGNED(a);  // else NumPy gathers it too
        if (!strict || walk.inner_stride() == PyArray_ITEMSIZE(a)) {
            gathered.push_back(std::move(walk));
            continue;
        }
        // Of one axis, NumPy's loop gets the strides as they are, unless its iterator is needed and turns them round.
        if (ndim != 1 || (s[0] < 0 && scalar)) return false;
        strided |= uint64_t{1} << k;
    }
    if (by_lines) size = lines.places;
    return true;
}

bool GroupLayout::lies_by_lines(const npy_intp* strides, npy_intp itemsize) const {
    return (itemsize == itemsize_of_lines_ && std::equal(strides, strides + ndim, strides_of_lines_)) ||
           lines.same(ndim, shape, strides, itemsize);
}

// Whether lines are long, and the gaps between them short enough.
bool GroupLayout::read_as_lines() const {
    constexpr npy_intp kShortest = 8;  // elements of a line
    return lines.shape[lines.ndim - 1] >= kShortest && lines.places <= size + size / 2;
}

// Whether it pays to read a stretch with gaps: what lies so need not be gathered, but the others are, and results.
bool GroupLayout::find_lines(const LoopGroup& group, PyObject* const* externals, const npy_intp* strides) {
    if (ndim < 2 || fortran || !group.reductions_.empty()) return false;
    const size_t n = group.n_externals_;
    for (size_t first = 0; first < n; ++first) {
        const auto of = [&](size_t k) { return strides + k * static_cast<size_t>(ndim); };
        PyArrayObject* a = as_array(externals[first]);
        if ((scalar >> first & 1) || PyArray_SIZE(a) != size || PyArray_IS_C_CONTIGUOUS(a)) continue;
        if (!lines.find(ndim, shape, of(first), PyArray_ITEMSIZE(a)) || !read_as_lines()) continue;
        size_t read = 0, moved = group.depends_.size();
        for (size_t k = 0; k < n; ++k) {
            if (scalar >> k & 1) continue;
            const bool alike = PyArray_ITEMSIZE(as_array(externals[k])) == PyArray_ITEMSIZE(a) &&
                               std::equal(of(k), of(k) + ndim, of(first));
            const bool fits = alike || lines.same(ndim, shape, of(k), PyArray_ITEMSIZE(as_array(externals[k])));
            ++(fits ? read : moved);
        }
        if (read > moved) {
            strides_of_lines_ = of(first);
            itemsize_of_lines_ = PyArray_ITEMSIZE(a);
            return true;
        }
    }
    return false;
}

}  // namespace pyop
