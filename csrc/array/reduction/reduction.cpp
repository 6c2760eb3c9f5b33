// array/reduction/reduction.cpp: cut a reduction into calls of the loop where NumPy cuts it, gathering scattered
// elements.
#include "array/reduction/reduction.h"

#include <cstring>
#include <memory>

#include "array/loop/fp_flags.h"
#include "array/reduction/ready_reduction.h"
#include "array/reduction/reduction_walk.h"
#include "runtime/attach.h"
#include "runtime/release_gil.h"

namespace pyop {

namespace {

constexpr npy_intp kConverted = 1024;               // elements converted at once, where the number is free
constexpr npy_intp kWhole = 8192;               // elements gathered at most, where they must be summed as one
constexpr npy_intp kLeastBuffer = 16;           // that np.setbufsize takes

// Gathered or converted elements of this thread.
char* scratch() {
    static thread_local std::unique_ptr<char[]> memory;
    if (!memory) memory.reset(new (std::nothrow) char[kWhole * ReductionLoop::kMaxItemsize]);
    return memory.get();
}

// How one reduction is cut into calls of the loop.
enum class Cut {
    Lines,    // the innermost dimension at once
    Blocks,   // any number of elements at once
    Whole,    // all elements at once, gathered
    Unknown,
};

// Sums that are not sequential come out of one call as they come out of NumPy's: NumPy's iterator has rules of its
// own for when it gathers elements and how many it takes, and they change.
// `buffer`: a size of NumPy's buffers; 0: the one that is in force.
Cut cut(const Reduction& r, const ReductionWalk& w, npy_intp buffer = 0) {
    if (r.loop->place_matters() && w.out_strides[0] != 0) {
        // NumPy may gather results of several lines for one call.
        for (int d = 1; d < w.ndim; ++d)
            if (w.out_strides[d] != 0) return Cut::Unknown;
        return r.convert ? Cut::Unknown : Cut::Lines;
    }
    if (r.loop->is_sequential()) return r.convert ? Cut::Blocks : Cut::Lines;
    if (w.out_strides[0] != 0) return r.convert ? Cut::Blocks : Cut::Lines;  // one step for every result
    npy_intp limit = reduction_chunk();
    bool all = true;
    for (int d = 0; d < w.ndim; ++d) all = all && (w.out_strides[d] == 0 || w.dims[d] == 1);
    const bool lines = w.ndim == 1 || (!all && w.out_strides[1] != 0);
    if (lines && !r.convert && limit == 0) return Cut::Lines;
    limit = buffer ? buffer : buffer_size();
    if (limit < 0) return Cut::Unknown;
    if (lines && w.dims[0] <= (r.convert ? std::min(limit, kWhole) : limit)) return Cut::Lines;
    if (all && w.size <= std::min(limit, kWhole)) return Cut::Whole;
    return Cut::Unknown;
}

// Steps through the dimensions from `first` on; through those of the result only, if asked.
struct Odometer {
    Odometer(const ReductionWalk& walk, int first_dim, bool results = false)
        : w(walk), first(first_dim), only_results(results) {}
    bool next() {
        for (int d = first; d < w.ndim; ++d) {
            if (only_results && w.out_strides[d] == 0) continue;
            in += w.in_strides[d];
            out += w.out_strides[d];
            if (++at[d] < w.dims[d]) return true;
            in -= w.in_strides[d] * w.dims[d];
            out -= w.out_strides[d] * w.dims[d];
            at[d] = 0;
        }
        return false;
    }
    // Whether the results that are reached from here were not reached before.
    bool first_visit() const {
        for (int d = first; d < w.ndim; ++d)
            if (at[d] != 0 && w.out_strides[d] == 0) return false;
        return true;
    }
    const ReductionWalk& w;
    const int first;
    const bool only_results;
    npy_intp in = 0, out = 0;
    npy_intp at[ReductionWalk::kMaxDims] = {};
};

struct Runner {
    const Reduction& r;
    const ReductionWalk& w;
    const char* in;
    char* out;
    const npy_intp block_size;  // elements converted at once
    const char* where;          // of each element, whether it counts; null: all do
    char* const block;          // for elements that are gathered or converted

    const StridedLoop& loop() const { return r.loop->loop(); }
    npy_intp itemsize() const { return r.loop->itemsize(); }

    void fill(const char* initial) const {
        const auto step = static_cast<size_t>(itemsize());
        for (npy_intp i = 0; i < w.result_size; ++i) std::memcpy(out + i * itemsize(), initial, step);
    }

    // The elements that lie first along the reduced axes.
    void copy_first() const {
        Odometer o(w, 0, true);
        do {
            if (r.convert)
                r.convert(out + o.out, in + o.in, 0, 1);
            else
                std::memcpy(out + o.out, in + o.in, static_cast<size_t>(itemsize()));
        } while (o.next());
    }

    int call(char* to, npy_intp to_stride, const char* from, npy_intp from_stride, npy_intp n) const {
        char* const data[] = {to, const_cast<char*>(from), to};
        const npy_intp strides[] = {to_stride, from_stride, to_stride};
        return loop()(data, n, strides);
    }

    // As NumPy: a call of the loop for every run of elements that count.
    int chosen_of_line(const char* from, char* to, npy_intp n) const {
        const npy_intp step = w.in_strides[0] / PyDataType_ELSIZE(r.in);
        const char* chosen = where + (from - in) / PyDataType_ELSIZE(r.in);
        for (npy_intp i = 0; i < n;) {
            while (i < n && !chosen[i * step]) ++i;
            const npy_intp begin = i;
            while (i < n && chosen[i * step]) ++i;
            if (i > begin && run_of_line(from + begin * w.in_strides[0], to + begin * w.out_strides[0], i - begin) < 0)
                return -1;
        }
        return 0;
    }

    int line(const char* from, char* to, npy_intp n) const {
        return where ? chosen_of_line(from, to, n) : run_of_line(from, to, n);
    }

    int run_of_line(const char* from, char* to, npy_intp n) const {
        if (!r.convert) return call(to, w.out_strides[0], from, w.in_strides[0], n);
        for (npy_intp start = 0; start < n; start += block_size) {
            const npy_intp count = std::min(block_size, n - start);
            r.convert(block, from + start * w.in_strides[0], w.in_strides[0], count);
            if (call(to + start * w.out_strides[0], w.out_strides[0], block, itemsize(), count) < 0) return -1;
        }
        return 0;
    }

    // Whether there is a loop for all the lines, and each has a result of its own.
    bool by_short_rows(const char* initial) const {
        const RowSums sums = r.loop->row_sums(w.dims[0] - (initial ? 0 : 1));
        if (!sums || where || r.convert || w.ndim < 2 || w.out_strides[0] != 0) return false;
        for (int d = 1; d < w.ndim; ++d)
            if (w.out_strides[d] == 0) return false;
        Odometer o(w, 2);
        do {
            sums({initial, in + o.in, w.in_strides[0], w.dims[0], w.in_strides[1], w.dims[1], out + o.out,
                  w.out_strides[1]});
        } while (o.next());
        return true;
    }

    // Whether there is a loop for all the lines, which add to the same few results.
    bool by_short_columns(bool skip_first) const {
        const RowSums sums = r.loop->column_sums();
        if (!sums || where || r.convert || w.ndim != 2 || w.dims[0] > kShortColumns) return false;
        if (w.out_strides[0] == 0 || w.out_strides[1] != 0) return false;
        const npy_intp skipped = skip_first ? 1 : 0;
        sums({nullptr, in + skipped * w.in_strides[1], w.in_strides[0], w.dims[0], w.in_strides[1], w.dims[1] - skipped,
              out, w.out_strides[0]});
        return true;
    }

    int by_calls(Cut how, const char* initial) const {
        if (initial)
            fill(initial);
        else
            copy_first();
        if (how == Cut::Whole) return gathered(!initial);
        return by_short_columns(!initial) ? 0 : by_lines(!initial);
    }

    int by_lines(bool skip_first) const {
        Odometer o(w, 1);
        do {
            const char* from = in + o.in;
            npy_intp n = w.dims[0];
            if (skip_first && o.first_visit()) {
                if (w.out_strides[0] != 0) continue;
                from += w.in_strides[0];
                --n;
            }
            if (n > 0 && line(from, out + o.out, n) < 0) return -1;
        } while (o.next());
        return 0;
    }

    int gathered(bool skip_first) const {
        char* to = block;
        Odometer o(w, 1);
        do {
            if (r.convert) {
                r.convert(to, in + o.in, w.in_strides[0], w.dims[0]);
                to += w.dims[0] * itemsize();
            } else {
                const char* from = in + o.in;
                for (npy_intp i = 0; i < w.dims[0]; ++i, from += w.in_strides[0], to += itemsize())
                    std::memcpy(to, from, static_cast<size_t>(itemsize()));
            }
        } while (o.next());
        const npy_intp skipped = skip_first ? 1 : 0;
        return w.size > skipped ? call(out, 0, block + skipped * itemsize(), itemsize(), w.size - skipped) : 0;
    }
};

// Whether `mask` has a bool for each element of `a`, as far from the next as the elements are.
bool lies_like(PyArrayObject* mask, PyArrayObject* a) {
    const int ndim = PyArray_NDIM(a);
    if (PyArray_TYPE(mask) != NPY_BOOL || PyArray_NDIM(mask) != ndim) return false;
    for (int d = 0; d < ndim; ++d) {
        const npy_intp dim = PyArray_DIM(a, d);
        if (PyArray_DIM(mask, d) != dim) return false;
        if (dim > 1 && PyArray_STRIDE(mask, d) * PyDataType_ELSIZE(PyArray_DESCR(a)) != PyArray_STRIDE(a, d))
            return false;
    }
    return true;
}

}  // namespace

int Reduction::make(PyObject* ufunc, PyArray_Descr* dtype, PyArray_Descr* wanted) {
    if (reduction_init() < 0 || ReductionLoop::find(ufunc, dtype, wanted, loop) < 0) return -1;
    if (!loop) return 0;
    in = dtype;
    if (loop->dtype() != in) convert = find_convert(in->type_num, loop->dtype()->type_num);
    return loop->dtype() == in || convert;
}

int Reduction::run_into(PyArrayObject* a, const ReductionWalk& w, char* out, const char* where) const {
    const Cut how = w.size == 0 ? Cut::Lines : cut(*this, w);
    if (how == Cut::Unknown) return PyErr_Occurred() ? -1 : 0;
    char* const block = convert || how == Cut::Whole ? scratch() : nullptr;
    const Runner runner{*this, w, PyArray_BYTES(a), out, how == Cut::Blocks ? kConverted : kWhole, where, block};
    const char* start = has_initial ? initial.data() : loop->initial();
    if (where) {
        // None may be chosen. And NumPy's iterator buffers then, however long a line is.
        const bool fits = how == Cut::Lines ? !convert : how == Cut::Blocks && loop->is_sequential();
        if (!fits || !start || w.dims[0] > NPY_BUFSIZE || buffer_size() != NPY_BUFSIZE)
            return PyErr_Occurred() ? -1 : 0;
        if (!has_initial) start = loop->of_nothing();
    }
    if (w.size == 0) {
        if (!start) return 0;
        runner.fill(has_initial ? start : loop->of_nothing());
        return 1;
    }
    if ((convert || how == Cut::Whole) && !block) return 0;
    int status;
    {
        const DetachScope detached(w.size >= kReleaseElements);
        if (all_fp_errors()) clear_all_fp_errors();
        status = how == Cut::Lines && runner.by_short_rows(start) ? 0 : runner.by_calls(how, start);
        if (all_fp_errors()) {
            clear_all_fp_errors();
            if (!loop->loop().ignores_flags()) status = -1;
        }
    }
    // Loops of the older kind return nothing: an error set is all that tells of their failure.
    if (status == 0 && PYOP_LIKELY(!PyErr_Occurred())) return 1;
    PyErr_Clear();
    return 0;
}

int Reduction::run(PyArrayObject* a, uint32_t axes, PyObject** result, PyArrayObject* where) const {
    if (PyArray_DESCR(a) != in || !PyArray_ISALIGNED(a) || axes == 0) return 0;
    if (where && !lies_like(where, a)) return 0;
    if ((axes & (axes - 1)) && !loop->reorderable()) return 0;
    ReductionWalk walk;
    if (!walk.plan(a, axes, keepdims, loop->itemsize())) return 0;
    Ref made = Ref::steal(PyArray_NewFromDescr(
        &PyArray_Type, reinterpret_cast<PyArray_Descr*>(Py_NewRef(loop->dtype())), walk.result_ndim, walk.result_dims,
        walk.result_size ? walk.result_strides : nullptr, nullptr, 0, nullptr));
    if (!made) return -1;
    const int status = run_into(a, walk, PyArray_BYTES(as_array(made.get())), where ? PyArray_BYTES(where) : nullptr);
    if (status == 1) *result = made.release();
    return status;
}

bool ReadyReduction::make(const Reduction& r, PyArrayObject* like, uint32_t axes) {
    if (PyArray_DESCR(like) != r.in || axes == 0 || ((axes & (axes - 1)) && !r.loop->reorderable())) return false;
    if (!walk_.plan(like, axes, r.keepdims, r.loop->itemsize())) return false;
    if (walk_.size < 1 || walk_.size > kMostElements) return false;
    // Whatever size the buffers of the calling thread have.
    const Cut how = cut(r, walk_, kLeastBuffer);
    reduction_ = &r;
    cut_ = static_cast<int>(how);
    return how != Cut::Unknown && (!r.convert || how != Cut::Lines || walk_.dims[0] <= kLeastBuffer);
}

bool ReadyReduction::run(const char* in, char* out) const {
    const Reduction& r = *reduction_;
    const Cut how = static_cast<Cut>(cut_);
    alignas(16) char block[kConverted * ReductionLoop::kMaxItemsize];
    const Runner runner{r, walk_, in, out, kConverted, nullptr, block};
    const char* start = r.has_initial ? r.initial.data() : r.loop->initial();
    const int before = all_fp_errors();
    if (PYOP_UNLIKELY(before != 0)) clear_all_fp_errors();
    const int status = how == Cut::Lines && runner.by_short_rows(start) ? 0 : runner.by_calls(how, start);
    if (r.loop->loop().ignores_flags() && all_fp_errors()) clear_all_fp_errors();
    if (PYOP_UNLIKELY(before != 0)) std::feraiseexcept(before);
    return status == 0;
}

bool AxisSet::read(PyObject* given) {
    all = given == Py_None;
    if (all) return true;
    PyObject* const* items = &given;
    Py_ssize_t count = 1;
    if (PyTuple_CheckExact(given)) {
        items = PySequence_Fast_ITEMS(given);
        count = PyTuple_GET_SIZE(given);
    }
    if (count > static_cast<Py_ssize_t>(axis.size())) return false;
    for (n = 0; n < count; ++n) {
        int overflow = 0;
        const long value = PyLong_CheckExact(items[n]) ? PyLong_AsLongAndOverflow(items[n], &overflow) : NPY_MAXDIMS;
        if (overflow || value >= NPY_MAXDIMS || value < -NPY_MAXDIMS) return false;
        axis[static_cast<size_t>(n)] = static_cast<int>(value);
    }
    return true;
}

bool AxisSet::bits(int ndim, uint32_t& axes) const {
    if (ndim > 31) return false;
    axes = all ? (1u << ndim) - 1 : 0;
    for (int k = 0; !all && k < n; ++k) {
        const int d = axis[static_cast<size_t>(k)] + (axis[static_cast<size_t>(k)] < 0 ? ndim : 0);
        if (d < 0 || d >= ndim || axes >> d & 1) return false;
        axes |= 1u << d;
    }
    return true;
}

}  // namespace pyop
