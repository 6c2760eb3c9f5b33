#include "plan/loop_group.h"

#include <cfenv>
#include <cstdlib>

#include "runtime/attach.h"
#include "runtime/errors.h"

namespace pyop {

namespace {

constexpr npy_intp kBlock = 512;                // elements
constexpr npy_intp kReleaseElements = 1 << 15;  // below this, giving up the GIL costs more than it gives
constexpr int kFlags = FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW | FE_INVALID;
constexpr size_t kMaxPointers = 64;

// Scratch blocks of this thread; grown, never shrunk.
class ScratchMemory {
  public:
    ~ScratchMemory() { std::free(data_); }
    char* reserve(size_t bytes) {
        if (bytes > size_) {
            std::free(data_);
            data_ = static_cast<char*>(std::aligned_alloc(64, (bytes + 63) & ~size_t{63}));
            size_ = data_ ? bytes : 0;
        }
        return data_;
    }

  private:
    char* data_ = nullptr;
    size_t size_ = 0;
};
thread_local ScratchMemory scratch_memory;

// Where the operands of one run lie.
struct Layout {
    int ndim = -1;
    const npy_intp* shape = nullptr;  // of some external
    npy_intp size = 1;
    uint64_t full = 0;                // bit k: external k is not a single number
};

bool lay_out(const LoopGroup& group, PyObject* const* externals, Layout& layout) {
    const size_t n = group.externals.size();
    for (size_t k = 0; k < n; ++k) {
        if (!is_exact_array(externals[k])) return false;
        PyArrayObject* a = as_array(externals[k]);
        if (PyArray_DESCR(a) != group.externals[k] || !PyArray_ISCARRAY_RO(a)) return false;
        if (PyArray_SIZE(a) != 1) layout.full |= uint64_t{1} << k;
        const bool leads = PyArray_NDIM(a) > layout.ndim ||
                           (PyArray_NDIM(a) == layout.ndim && layout.size == 1 && PyArray_SIZE(a) != 1);
        if (!leads) continue;
        layout.ndim = PyArray_NDIM(a);
        layout.shape = PyArray_DIMS(a);
        layout.size = PyArray_SIZE(a);
    }
    for (size_t k = 0; k < n; ++k) {
        PyArrayObject* a = as_array(externals[k]);
        const bool whole =
            PyArray_NDIM(a) == layout.ndim && PyArray_CompareLists(PyArray_DIMS(a), layout.shape, layout.ndim);
        if (!whole && (layout.full >> k & 1)) return false;
    }
    // A result that reads only single numbers has their shape, whatever the others have.
    for (const uint64_t depends : group.depends)
        if (layout.full && !(depends & layout.full)) return false;
    return layout.ndim >= 0;
}

struct Pointers {
    char* data[StridedLoop::kMaxOperands];
    npy_intp strides[StridedLoop::kMaxOperands];
};

// The distance of scratch blocks: whole cache lines, and not a power of two, or the blocks would compete for the
// same places of the cache.
npy_intp block_bytes(const LoopGroup& group, const Layout& layout) {
    return ((std::min(layout.size, kBlock) * group.scratch_itemsize + 63) & ~npy_intp{63}) + 192;
}

// 0, or -1 if a loop failed or raised a flag.
int run_blocks(const LoopGroup& group, const Layout& layout, PyObject* const* externals, PyObject* const* outputs,
               char* scratch) {
    const npy_intp block = block_bytes(group, layout);
    Pointers p;
    for (npy_intp start = 0; start < layout.size; start += kBlock) {
        const npy_intp count = std::min(kBlock, layout.size - start);
        for (const LoopStep& step : group.steps) {
            for (size_t i = 0; i < step.operands.size(); ++i) {
                const LoopOperand o = step.operands[i];
                const npy_intp itemsize = step.loop->itemsize(static_cast<int>(i));
                switch (o.place) {
                    case LoopOperand::External: {
                        const bool full = layout.full >> o.index & 1;
                        p.strides[i] = full ? itemsize : 0;
                        p.data[i] = PyArray_BYTES(as_array(externals[o.index])) + (full ? start * itemsize : 0);
                        break;
                    }
                    case LoopOperand::Number:
                        p.strides[i] = 0;
                        p.data[i] = PyArray_BYTES(as_array(group.numbers[o.index].get()));
                        break;
                    case LoopOperand::Scratch:
                        p.strides[i] = itemsize;
                        p.data[i] = scratch + o.index * block;
                        break;
                    case LoopOperand::Output:
                        p.strides[i] = itemsize;
                        p.data[i] = PyArray_BYTES(as_array(outputs[o.index])) + start * itemsize;
                        break;
                }
            }
            if ((*step.loop)(p.data, count, p.strides) < 0) return -1;
            if (std::fetestexcept(kFlags) == 0) continue;
            if (!step.loop->ignores_flags()) return -1;
            std::feclearexcept(kFlags);
        }
    }
    return 0;
}

void drop(PyObject** objects, size_t n) {
    for (size_t k = 0; k < n; ++k) Py_CLEAR(objects[k]);
}

// Returns 1 if the results are valid, 0 if the slow way must be taken, -1 with an error set.
int run_fast(const LoopGroup& group, PyObject* const* externals, PyObject** outputs) {
    Layout layout;
    if (!lay_out(group, externals, layout)) return 0;
    for (size_t k = 0; k < group.outputs.size(); ++k) {
        Py_INCREF(group.outputs[k]);
        outputs[k] = PyArray_NewFromDescr(&PyArray_Type, group.outputs[k], layout.ndim, layout.shape, nullptr, nullptr,
                                          0, nullptr);
        if (outputs[k]) continue;
        drop(outputs, k);
        return -1;
    }
    char* scratch = scratch_memory.reserve(static_cast<size_t>(block_bytes(group, layout)) * group.n_scratch + 64);
    if (!scratch) {
        drop(outputs, group.outputs.size());
        PyErr_NoMemory();
        return -1;
    }
    int status;
    {
        const DetachScope detached(layout.size >= kReleaseElements);
        if (std::fetestexcept(kFlags)) std::feclearexcept(kFlags);
        status = run_blocks(group, layout, externals, outputs, scratch);
    }
    // Loops of the older kind return nothing: an error set is all that tells of their failure.
    if (status == 0 && !PyErr_Occurred()) return 1;
    // The ufunc will set the error again, with all its words.
    PyErr_Clear();
    std::feclearexcept(kFlags);
    drop(outputs, group.outputs.size());
    return 0;
}

}  // namespace

int LoopGroup::run(PyObject* const* inputs, PyObject** results, const StepContext&) const {
    return run_fast(*this, inputs, results);
}

std::string LoopGroup::describe(size_t) const { return "NumPy's loop"; }

size_t LoopGroup::scratch_bytes() const { return static_cast<size_t>(kBlock) * scratch_itemsize * n_scratch; }

}  // namespace pyop
