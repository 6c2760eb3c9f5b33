// array/loop/core_loop.h: call NumPy's loop of a ufunc with core dimensions, as matmul, vecdot, linalg (CoreLoop).
//
// The loop is given, behind the number of repetitions, the sizes of the core dimensions, and behind the strides of the
// operands the strides of each operand along its own core dimensions. Beyond that it is a StridedLoop: its results are
// NumPy's, bit for bit, because what it chooses (BLAS or not, transposed or not) it chooses by these strides.
#pragma once

#include <array>
#include <vector>

#include "array/loop/small_product.h"
#include "array/loop/strided_loop.h"
#include "array/memory/recycle.h"

namespace pyop {

class CoreLoop {
  public:
    // Which errors of the processor make a result invalid: all that np.errstate knows, or "invalid" alone, by which
    // the loops of linalg say that they failed.
    enum class Errors { All, Invalid };

    // 1, 0 if not available for inputs of these dtypes as they are, -1 with an error set. Attached threads.
    int resolve(PyObject* ufunc, PyObject* const* dtypes, int n);

    // As resolve(), for a ufunc whose loop is `loop`, not one of NumPy's. False if not available.
    bool assign(PyObject* ufunc, const StridedLoop& loop);

    // It is NumPy's matmul, which has kernels for small matrices.
    void set_matmul() { is_matmul_ = true; }
    // To be called first: a size that no input has is the smaller one of the two of the only input, as for NumPy's svd.
    void set_smallest() { takes_smallest_ = true; }
    int n_inputs() const { return loop_.n_inputs(); }
    int n_outputs() const { return loop_.n_outputs(); }

    // Computes the results, new references. 1, 0 where NumPy must be asked, -1 with an error set. Attached threads;
    // releases the GIL for large work.
    int run(PyObject* const* inputs, PyObject** results, Errors errors) const;

    // A call whose operands lie as always: sizes and strides for the loop, and the shapes of the results.
    struct Ready {
        std::vector<npy_intp> sizes, strides;
        std::vector<std::vector<npy_intp>> shapes;
        ProductKernel product = nullptr;  // instead of the loop (multiply_small)
    };
    // False where there is more to it than one call of the loop. Of `inputs` only the layout is read.
    bool make_ready(PyObject* const* inputs, Ready& ready) const;
    const StridedLoop& loop() const { return loop_; }

  private:
    static constexpr int kMaxDims = 8;    // of an operand
    static constexpr int kMaxSizes = 6;   // distinct core dimensions
    static constexpr int kMaxResults = 4;
    struct Shape;
    bool read_cores(PyObject* ufunc);
    bool lay_out(PyObject* const* inputs, Shape& shape) const;
    int repeat(const Shape& shape, char* const* data, ProductKernel product) const;
    int call(char* const* data, const npy_intp* sizes, const npy_intp* strides, ProductKernel product) const;

    StridedLoop loop_;
    bool is_matmul_ = false, takes_smallest_ = false;
    int n_sizes_ = 0;
    std::array<npy_intp, kMaxSizes> fixed_{};    // sizes that the signature fixes; -1 for the others
    std::array<bool, kMaxSizes> may_lack_{};     // matmul's n?: an operand of too few dimensions goes without
    std::vector<int> core_[StridedLoop::kMaxOperands];
    mutable std::array<ResultRecycler, kMaxResults> recyclers_;  // the GIL guards them
};

}  // namespace pyop
