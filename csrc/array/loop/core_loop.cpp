// array/loop/core_loop.cpp: compute sizes and strides of a run, as NumPy's iterator would give them to the loop.
#include "array/loop/core_loop.h"

#include <algorithm>
#include <cstdlib>

#include "array/loop/fp_flags.h"
#include "array/memory/pool.h"
#include "runtime/attach.h"
#include "runtime/release_gil.h"

#define NO_IMPORT_UFUNC  // only the struct is used
#include <numpy/ufuncobject.h>

namespace pyop {

namespace {

constexpr npy_intp kReleaseWork = 1 << 15;  // multiplications, about
constexpr npy_intp kWorthTrial = 8;         // repetitions
constexpr unsigned kFeature21 = 0x13;       // NumPy 2.1's C API

// Since 2.1 a ufunc may check and choose sizes by a function of its own, kept in a field behind those we know.
bool chooses_sizes(PyUFuncObject* u) {
    return PyArray_GetNDArrayCFeatureVersion() >= kFeature21 && *reinterpret_cast<void* const*>(u + 1) != nullptr;
}

}  // namespace

// Where the operands of one run lie.
struct CoreLoop::Shape {
    npy_intp sizes[1 + kMaxSizes];  // repetitions of the innermost outer dimension, then the core sizes
    bool lacks[kMaxSizes] = {};
    int outer = 0;                  // outer dimensions, and their sizes
    npy_intp dims[kMaxDims];
    npy_intp outer_strides[kMaxDims][StridedLoop::kMaxOperands];
    npy_intp core_strides[StridedLoop::kMaxOperands * kMaxDims];
    int n_core_strides = 0;
    npy_intp work = 1;
};

int CoreLoop::resolve(PyObject* ufunc, PyObject* const* dtypes, int n) {
    if (!is_ufunc(ufunc) || !read_cores(ufunc)) return 0;
    const int status = loop_.resolve_any(ufunc, dtypes, n);
    if (status <= 0) return status;
    for (int i = 0; i < n; ++i)
        if (reinterpret_cast<PyObject*>(loop_.dtype(i)) != dtypes[i]) return 0;  // NumPy casts on the way
    return 1;
}

bool CoreLoop::assign(PyObject* ufunc, const StridedLoop& loop) {
    loop_ = loop;
    return read_cores(ufunc);
}

// The core dimensions of the operands; false if they are more than can be laid out here.
bool CoreLoop::read_cores(PyObject* ufunc) {
    auto* u = reinterpret_cast<PyUFuncObject*>(ufunc);
    if (!u->core_enabled || u->core_num_dim_ix > kMaxSizes || u->nargs > StridedLoop::kMaxOperands || u->nout < 1 ||
        u->nout > kMaxResults || (chooses_sizes(u) && !takes_smallest_))
        return false;
    n_sizes_ = u->core_num_dim_ix;
    for (int k = 0; k < n_sizes_; ++k) {
        const npy_uint32 flags = u->core_dim_flags ? u->core_dim_flags[k] : UFUNC_CORE_DIM_SIZE_INFERRED;
        may_lack_[static_cast<size_t>(k)] = flags & UFUNC_CORE_DIM_CAN_IGNORE;
        fixed_[static_cast<size_t>(k)] = flags & UFUNC_CORE_DIM_SIZE_INFERRED ? -1 : u->core_dim_sizes[k];
    }
    for (int i = 0; i < u->nargs; ++i) {
        core_[i].assign(u->core_dim_ixs + u->core_offsets[i],
                        u->core_dim_ixs + u->core_offsets[i] + u->core_num_dims[i]);
        if (core_[i].size() > 3) return false;
    }
    return true;
}

bool CoreLoop::lay_out(PyObject* const* inputs, Shape& s) const {
    npy_intp* const sizes = s.sizes + 1;
    std::copy_n(fixed_.begin(), n_sizes_, sizes);
    const auto n_in = static_cast<size_t>(loop_.n_inputs());
    int core_ndim[StridedLoop::kMaxOperands];
    for (size_t i = 0; i < n_in; ++i) {
        PyArrayObject* a = as_array(inputs[i]);
        if (!is_exact_array(inputs[i]) || PyArray_DESCR(a) != loop_.dtype(static_cast<int>(i)) ||
            !PyArray_ISALIGNED(a) || PyArray_NDIM(a) > kMaxDims || PyArray_SIZE(a) == 0)
            return false;
        core_ndim[i] = static_cast<int>(core_[i].size());
        for (const int k : core_[i]) {
            if (PyArray_NDIM(a) >= core_ndim[i]) break;
            if (!may_lack_[static_cast<size_t>(k)]) continue;
            s.lacks[k] = true;
            --core_ndim[i];
        }
        if (PyArray_NDIM(a) < core_ndim[i]) return false;
    }
    for (size_t i = 0; i < n_in; ++i) {
        PyArrayObject* a = as_array(inputs[i]);
        // What one operand lacks none has.
        core_ndim[i] =
            static_cast<int>(std::count_if(core_[i].begin(), core_[i].end(), [&](int k) { return !s.lacks[k]; }));
        int d = PyArray_NDIM(a) - core_ndim[i];
        if (d < 0) return false;
        s.outer = std::max(s.outer, d);
        for (const int k : core_[i]) {
            if (s.lacks[k]) {
                s.core_strides[s.n_core_strides++] = 0;
                continue;
            }
            const npy_intp size = PyArray_DIM(a, d);
            if (sizes[k] >= 0 && sizes[k] != size) return false;
            sizes[k] = size;
            s.core_strides[s.n_core_strides++] = size == 1 ? 0 : PyArray_STRIDE(a, d);
            ++d;
        }
    }
    for (int k = 0; k < n_sizes_; ++k) {
        if (s.lacks[k]) sizes[k] = 1;
        if (takes_smallest_ && sizes[k] < 0) sizes[k] = std::min(sizes[core_[0][0]], sizes[core_[0][1]]);
        if (sizes[k] <= 0) return false;
        s.work *= sizes[k];
    }
    std::fill_n(s.dims, s.outer, 1);
    for (size_t i = 0; i < n_in; ++i) {
        PyArrayObject* a = as_array(inputs[i]);
        const int own = PyArray_NDIM(a) - core_ndim[i];
        npy_intp last = NPY_MAX_INTP;
        for (int d = 0; d < s.outer; ++d) {
            const int at = d - (s.outer - own);
            const npy_intp size = at < 0 ? 1 : PyArray_DIM(a, at);
            npy_intp& stride = s.outer_strides[d][i];
            stride = size == 1 ? 0 : PyArray_STRIDE(a, at);
            if (size != 1 && s.dims[d] != 1 && s.dims[d] != size) return false;
            if (size != 1) s.dims[d] = size;
            // Results are laid out in the order of their inputs; here only as C has it.
            if (stride != 0 && std::abs(stride) > last) return false;
            if (stride != 0) last = std::abs(stride);
        }
    }
    for (int d = 0; d < s.outer; ++d) s.work *= s.dims[d];
    return true;
}

// One call of the loop, or of a kernel for each repetition.
int CoreLoop::call(char* const* data, const npy_intp* sizes, const npy_intp* strides, ProductKernel product) const {
    char* moving[StridedLoop::kMaxOperands];  // some loops advance their pointers
    const int n = loop_.n_inputs() + loop_.n_outputs();
    if (!product || data[0] == data[1]) {
        std::copy_n(data, n, moving);
        return loop_.call_with_core(moving, sizes, strides);
    }
    const npy_intp once[] = {1, sizes[1], sizes[2], sizes[3]};
    for (npy_intp k = 0; k < sizes[0]; ++k) {
        for (int i = 0; i < n; ++i) moving[i] = data[i] + k * strides[i];
        if (!multiply_small(product, once + 1, strides + n, moving) && loop_.call_with_core(moving, once, strides) < 0)
            return -1;
    }
    return 0;
}

int CoreLoop::repeat(const Shape& s, char* const* operands, ProductKernel product) const {
    const int n = loop_.n_inputs() + loop_.n_outputs();
    npy_intp strides[StridedLoop::kMaxOperands * (1 + kMaxDims)];
    npy_intp sizes[1 + kMaxSizes];
    char* data[StridedLoop::kMaxOperands];
    npy_intp at[kMaxDims] = {};
    std::copy_n(operands, n, data);
    std::copy_n(s.sizes + 1, n_sizes_, sizes + 1);
    const int inner = s.outer - 1;
    for (int i = 0; i < n; ++i) strides[i] = s.outer ? s.outer_strides[inner][i] : 0;
    std::copy_n(s.core_strides, s.n_core_strides, strides + n);
    sizes[0] = s.outer ? s.dims[inner] : 1;
    for (;;) {
        if (call(data, sizes, strides, product) < 0) return -1;
        int d = inner - 1;
        for (; d >= 0; --d) {
            for (int i = 0; i < n; ++i) data[i] += s.outer_strides[d][i];
            if (++at[d] < s.dims[d]) break;
            for (int i = 0; i < n; ++i) data[i] -= s.outer_strides[d][i] * s.dims[d];
            at[d] = 0;
        }
        if (d < 0) return 0;
    }
}

bool CoreLoop::make_ready(PyObject* const* inputs, Ready& ready) const {
    Shape s;
    if (!lay_out(inputs, s) || s.outer > 0) return false;
    const int n_in = loop_.n_inputs(), n = n_in + loop_.n_outputs();
    for (int i = n_in; i < n; ++i) {
        std::vector<npy_intp>& shape = ready.shapes.emplace_back();
        for (const int c : core_[i])
            if (!s.lacks[c]) shape.push_back(s.sizes[1 + c]);
        // As run() finds them in a new array.
        npy_intp step = PyDataType_ELSIZE(loop_.dtype(i));
        std::vector<npy_intp> strides(core_[i].size());
        for (size_t d = core_[i].size(); d-- > 0;) {
            const int c = core_[i][d];
            strides[d] = s.lacks[c] || s.sizes[1 + c] == 1 ? 0 : step;
            if (!s.lacks[c]) step *= s.sizes[1 + c];
        }
        for (const npy_intp stride : strides) s.core_strides[s.n_core_strides++] = stride;
    }
    if (is_matmul_) ready.product = find_small_product(loop_, s.sizes + 1, s.core_strides);
    ready.sizes.assign(s.sizes, s.sizes + 1 + n_sizes_);
    ready.sizes[0] = 1;
    ready.strides.assign(static_cast<size_t>(n), 0);
    ready.strides.insert(ready.strides.end(), s.core_strides, s.core_strides + s.n_core_strides);
    return true;
}

int CoreLoop::run(PyObject* const* inputs, PyObject** results, Errors wanted) const {
    Shape s;
    if (!lay_out(inputs, s)) return 0;
    const int n_in = loop_.n_inputs(), n_out = loop_.n_outputs();
    char* data[StridedLoop::kMaxOperands];
    Ref made[StridedLoop::kMaxOperands];
    for (int i = 0; i < n_in; ++i) data[i] = PyArray_BYTES(as_array(inputs[i]));
    for (int k = 0; k < n_out; ++k) {
        const int i = n_in + k;
        npy_intp dims[kMaxDims + 3];
        int ndim = s.outer;
        std::copy_n(s.dims, s.outer, dims);
        for (const int c : core_[i])
            if (!s.lacks[c]) dims[ndim++] = s.sizes[1 + c];
        npy_intp bytes = PyDataType_ELSIZE(loop_.dtype(i));
        for (int d = 0; d < ndim; ++d) bytes *= dims[d];
        made[k] = Ref::steal(bytes <= ResultRecycler::kMostBytes
                                 ? recyclers_[static_cast<size_t>(k)].take(loop_.dtype(i), ndim, dims)
                                 : pooled_array_new(loop_.dtype(i), ndim, dims, nullptr));
        if (!made[k]) return -1;
        PyArrayObject* a = as_array(made[k].get());
        data[i] = PyArray_BYTES(a);
        for (int d = 0; d < s.outer; ++d) s.outer_strides[d][i] = s.dims[d] == 1 ? 0 : PyArray_STRIDE(a, d);
        int d = s.outer;
        for (const int c : core_[i]) {
            const bool moves = !s.lacks[c] && s.sizes[1 + c] != 1;
            s.core_strides[s.n_core_strides++] = moves ? PyArray_STRIDE(a, d) : 0;
            d += !s.lacks[c];
        }
    }
    const bool in_stacks = is_matmul_ && s.outer > 0 && s.dims[s.outer - 1] >= kWorthTrial;
    const ProductKernel product = in_stacks ? find_small_product(loop_, s.sizes + 1, s.core_strides) : nullptr;
    int status;
    {
        const DetachScope detached(s.work >= (loop_.is_foreign() ? kReleaseForeign : kReleaseWork));
        if (all_fp_errors()) clear_all_fp_errors();
        status = repeat(s, data, product);
        if (const int raised = all_fp_errors()) {
            clear_all_fp_errors();
            if ((wanted == Errors::Invalid ? raised & FE_INVALID : raised) && !loop_.ignores_flags()) status = -1;
        }
    }
    // Loops of the older kind return nothing: an error set is all that tells of their failure.
    if (status < 0 || PyErr_Occurred()) {
        PyErr_Clear();
        return 0;
    }
    for (int k = 0; k < n_out; ++k) results[k] = made[k].release();
    return 1;
}

}  // namespace pyop
