// array/reduction/reduction_loop.cpp: try the loop against ufunc.reduce.
#include "array/reduction/reduction_loop.h"

#include <cmath>
#include <cstring>
#include <string_view>
#include <vector>

#include "array/loop/fp_flags.h"
#include "array/loop/quiet.h"
#include "runtime/memo.h"

#define NO_IMPORT_UFUNC  // only the struct is used
#include <numpy/ufuncobject.h>

namespace pyop {

namespace {

constexpr npy_intp kTrial = 300;   // more than two leaves of pairwise summation
constexpr npy_intp kLongTrial = 2048;   // whole vectors, however they are unrolled
constexpr npy_intp kLong = 20000;  // more than two of NumPy's buffers

PyArray_Descr* descr(PyObject* o) { return reinterpret_cast<PyArray_Descr*>(o); }

Ref cast_new(const Ref& array, PyArray_Descr* dtype) {
    if (!array) return {};
    Py_INCREF(dtype);
    return Ref::steal(PyArray_CastToType(as_array(array.get()), dtype, 0));
}

// Numbers of several magnitudes, of both signs where the dtype has them, and no multiples of a power of two: their
// sums depend on the order.
Ref trial_array(PyArray_Descr* dtype, npy_intp n, unsigned seed) {
    const bool real = PyTypeNum_ISFLOAT(dtype->type_num) || PyTypeNum_ISCOMPLEX(dtype->type_num);
    npy_intp shape[] = {n, 2};
    Ref numbers = Ref::steal(PyArray_SimpleNew(2, shape, real ? NPY_DOUBLE : NPY_INT64));
    if (!numbers) return {};
    for (npy_intp k = 0; k < 2 * n; ++k) {
        seed = seed * 1664525u + 1013904223u;
        const int whole = static_cast<int>(seed >> 16) % 1009 - 504;
        if (real)
            static_cast<double*>(PyArray_DATA(as_array(numbers.get())))[k] = whole / 509.0 * (1 << (seed >> 9) % 5);
        else
            static_cast<npy_int64*>(PyArray_DATA(as_array(numbers.get())))[k] = whole;
    }
    const int type = PyTypeNum_ISCOMPLEX(dtype->type_num) ? NPY_CDOUBLE : real ? NPY_DOUBLE : NPY_INT64;
    PyArray_Descr* shown = PyArray_DescrFromType(type);
    // A complex number for every row; of the others, every second number.
    npy_intp strides[] = {2 * static_cast<npy_intp>(sizeof(double))};
    Ref view = Ref::steal(PyArray_NewFromDescr(&PyArray_Type, shown, 1, shape, strides,
                                               PyArray_DATA(as_array(numbers.get())), 0, nullptr));
    return cast_new(view, dtype);  // a copy: `view` does not own its memory
}

// Values whose order shows although they are equal or absorb others: zeros of both signs, and NaNs of both.
Ref special_array(PyArray_Descr* dtype, npy_intp n, unsigned seed, bool nans) {
    Ref numbers = Ref::steal(PyArray_SimpleNew(1, &n, NPY_DOUBLE));
    if (!numbers) return {};
    auto* data = static_cast<double*>(PyArray_DATA(as_array(numbers.get())));
    for (npy_intp k = 0; k < n; ++k) {
        seed = seed * 1664525u + 1013904223u;
        const double sign = seed >> 20 & 1 ? -1.0 : 1.0;
        data[k] = nans && seed >> 24 < 9 ? sign * NPY_NAN : sign * 0.0;
    }
    return cast_new(numbers, dtype);
}

// ufunc.reduce(array, axis, dtype); null without an error where it refuses.
Ref reduced(PyObject* ufunc, PyObject* array, PyObject* axis, PyArray_Descr* dtype) {
    Ref result = Ref::steal(
        PyObject_CallMethod(ufunc, "reduce", "OOO", array, axis, dtype ? reinterpret_cast<PyObject*>(dtype) : Py_None));
    if (result && !PyArray_Check(result.get()))
        result = Ref::steal(PyArray_FromAny(result.get(), nullptr, 0, 0, 0, nullptr));
    if (!result) PyErr_Clear();
    return result;
}

bool is_item(const Ref& array, const char* item, PyArray_Descr* dtype) {
    return array && PyArray_DESCR(as_array(array.get())) == dtype &&
           std::memcmp(PyArray_DATA(as_array(array.get())), item, static_cast<size_t>(PyDataType_ELSIZE(dtype))) == 0;
}

// What the loop makes of a 1-d contiguous array, given `chunk` elements at a time.
bool folded(const ReductionLoop& r, const Ref& array, const char* initial, npy_intp chunk, char* out) {
    const npy_intp n = PyArray_SIZE(as_array(array.get())), step = r.itemsize();
    const char* data = PyArray_BYTES(as_array(array.get()));
    npy_intp at = initial ? 0 : 1;
    std::memcpy(out, initial ? initial : data, static_cast<size_t>(step));
    for (bool first = true; at < n || (n == 0 && first); first = false) {
        // NumPy's first chunk counts the element that it starts from.
        const npy_intp count = std::min(n - at, at == 1 && first ? chunk - 1 : chunk);
        if (count > 0 && r.extend(out, data + at * step, step, count) < 0) return false;
        at += std::max<npy_intp>(count, 0);
        if (n == 0 || chunk <= 0) break;
    }
    return !PyErr_Occurred();
}

struct LoopKey {
    PyObject* ufunc;
    PyArray_Descr *in, *wanted;
    bool operator==(const LoopKey&) const = default;
};
struct LoopKeyHash {
    size_t operator()(const LoopKey& k) const {
        const auto mix = [](size_t h, const void* p) {
            return (h ^ reinterpret_cast<size_t>(p)) * 0x9E3779B97F4A7C15ull;
        };
        return mix(mix(mix(0, k.ufunc), k.in), k.wanted);
    }
};
struct KnownLoop {
    Ref ufunc, in, wanted;  // keep the key valid
    std::shared_ptr<const ReductionLoop> loop;  // null: none
};

// The dtype of what ufunc.reduce returns; null without an error where it refuses.
Ref result_dtype(const LoopKey& key) {
    Ref trial = trial_array(key.in, 1, 1);
    Ref result = trial ? reduced(key.ufunc, trial.get(), Ref::steal(PyLong_FromLong(0)).get(), key.wanted) : Ref();
    return result ? Ref::borrow(reinterpret_cast<PyObject*>(PyArray_DESCR(as_array(result.get())))) : Ref();
}

struct State {
    npy_intp chunk = 0;
    bool chunk_known = false;
    Ref context, usual;  // the context variable of np.setbufsize and np.errstate, and its value where neither was used
};
State& state() {
    static auto* s = new State;  // outlives static destruction
    return *s;
}

}  // namespace

int ReductionLoop::try_out(PyObject* ufunc, int& fits) {
    fits = 0;
    PyArray_Descr* const t = dtype();
    Ref axis = Ref::steal(PyLong_FromLong(0));
    std::vector<Ref> trials;
    const bool real = PyTypeNum_ISFLOAT(t->type_num) || PyTypeNum_ISCOMPLEX(t->type_num);
    for (const npy_intp n : {npy_intp{1}, npy_intp{2}, npy_intp{9}, kTrial, kTrial})
        trials.push_back(trial_array(t, n, static_cast<unsigned>(trials.size()) + 7));
    for (unsigned k = 0; real && k < 12; ++k) trials.push_back(special_array(t, 1, k, k % 3 == 0));
    Ref nothing = trial_array(t, 0, 1);
    if (!axis || !nothing) return -1;

    std::vector<Ref> expected;
    for (const Ref& trial : trials) {
        if (!trial) return -1;
        expected.push_back(reduced(ufunc, trial.get(), axis.get(), t));
        if (!expected.back()) return 0;
    }
    const auto agrees = [&](const char* initial) {
        std::array<char, kMaxItemsize> out;
        for (size_t k = 0; k < trials.size(); ++k)
            if (!folded(*this, trials[k], initial, kTrial + 1, out.data()) || !is_item(expected[k], out.data(), t))
                return false;
        return true;
    };
    // Where reducing nothing is an error NumPy starts from the first element; else from what it answers, or from the
    // other zero.
    Ref identity = reduced(ufunc, nothing.get(), axis.get(), t);
    if (!identity) {
        starts_with_first_ = true;
        if (!agrees(nullptr)) return 0;
    } else {
        if (PyArray_DESCR(as_array(identity.get())) != t) return 0;
        const auto size = static_cast<size_t>(itemsize());
        std::memcpy(of_nothing_.data(), PyArray_DATA(as_array(identity.get())), size);
        initial_ = of_nothing_;
        if (!agrees(initial_.data())) {
            if (t->type_num == NPY_DOUBLE)
                std::memcpy(initial_.data(), std::array{-0.0}.data(), size);
            else if (t->type_num == NPY_FLOAT)
                std::memcpy(initial_.data(), std::array{-0.0f}.data(), size);
            else
                return 0;
            if (!agrees(initial_.data())) return 0;
        }
    }
    npy_intp square[] = {2, 2};
    Ref plane = trial_array(t, 4, 1);
    PyArray_Dims dims{square, 2};
    plane = plane ? Ref::steal(PyArray_Newshape(as_array(plane.get()), &dims, NPY_CORDER)) : Ref();
    if (!plane) return -1;
    reorderable_ = static_cast<bool>(reduced(ufunc, plane.get(), Py_None, t));

    // What does not fill a vector is reduced last: long trials end in it in one cut and not in the other.
    sequential_ = true;
    for (unsigned seed = 0; sequential_ && seed < 12; ++seed) {
        const npy_intp n = seed % 2 ? kTrial : kLongTrial;
        Ref trial = seed < 6 || !real ? trial_array(t, n, seed) : special_array(t, n, seed, seed > 9);
        if (!trial) return -1;
        std::array<char, kMaxItemsize> whole, parts;
        for (const npy_intp chunk : {3, 64, 101, 128, 512}) {
            if (!folded(*this, trial, initial(), n + 1, whole.data()) ||
                !folded(*this, trial, initial(), chunk, parts.data()))
                return 0;
            sequential_ = sequential_ && std::memcmp(whole.data(), parts.data(), static_cast<size_t>(itemsize())) == 0;
        }
    }
    if (real && try_places() < 0) return -1;
    if (std::string_view(reinterpret_cast<PyUFuncObject*>(ufunc)->name) == "add" && try_rows() < 0) return -1;
    fits = 1;
    return 0;
}

int ReductionLoop::try_places() {
    const npy_intp step = itemsize();
    for (unsigned seed = 0; seed < 6 && !place_matters_; ++seed) {
        Ref steps = special_array(dtype(), kTrial, seed + 40, seed % 2);
        Ref whole = special_array(dtype(), kTrial, seed + 50, seed % 2);
        Ref parts = whole ? Ref::steal(PyArray_NewCopy(as_array(whole.get()), NPY_CORDER)) : Ref();
        if (!steps || !parts) return -1;
        const auto run = [&](const Ref& results, npy_intp chunk) {
            const npy_intp strides[] = {step, step, step};
            for (npy_intp at = 0; at < kTrial; at += chunk) {
                char* const out = PyArray_BYTES(as_array(results.get())) + at * step;
                char* const data[] = {out, PyArray_BYTES(as_array(steps.get())) + at * step, out};
                if (loop_(data, std::min(chunk, kTrial - at), strides) < 0) return false;
            }
            return !PyErr_Occurred();
        };
        if (!run(whole, kTrial) || !run(parts, 3)) {
            PyErr_Clear();
            place_matters_ = true;
            return 0;
        }
        place_matters_ = std::memcmp(PyArray_BYTES(as_array(whole.get())), PyArray_BYTES(as_array(parts.get())),
                                     static_cast<size_t>(kTrial * step)) != 0;
    }
    return 0;
}

// Keeps row_sums_ if rows of any short length, and columns, are summed up as the loop does it. Which of two NaNs is
// passed on is left open.
int ReductionLoop::try_rows() {
    const RowSums sums = find_row_sums(dtype()->type_num), columns = find_column_sums(dtype()->type_num);
    if (!sums || !columns) return 0;
    const npy_intp step = itemsize(), longest = kShortRow + (starts_with_first_ ? 1 : 0);
    const auto is_nan = [&](const char* item) {
        return step == sizeof(double) ? std::isnan(*reinterpret_cast<const double*>(item))
                                      : std::isnan(*reinterpret_cast<const float*>(item));
    };
    const auto same = [&](const char* a, const char* b) {
        return std::memcmp(a, b, static_cast<size_t>(step)) == 0 || (is_nan(a) && is_nan(b));
    };
    for (npy_intp length = 1; length <= longest; ++length)
        for (unsigned seed = 0; seed < 24; ++seed) {
            Ref trial =
                seed < 12 ? trial_array(dtype(), length, seed) : special_array(dtype(), length, seed, seed > 20);
            if (!trial) return -1;
            const char* const row = PyArray_BYTES(as_array(trial.get()));
            alignas(kMaxItemsize) std::array<char, kMaxItemsize> expected, made;
            if (!folded(*this, trial, initial(), longest + 1, expected.data())) return -1;
            sums({initial(), row, step, length, 0, 1, made.data(), 0});
            if (!same(made.data(), expected.data())) return 0;
            // The elements as rows of one column: a call of the loop for each.
            std::memcpy(expected.data(), row, static_cast<size_t>(step));
            std::memcpy(made.data(), row, static_cast<size_t>(step));
            for (npy_intp k = 1; k < length; ++k)
                if (extend(expected.data(), row + k * step, step, 1) < 0) return -1;
            columns({nullptr, row + step, step, 1, step, length - 1, made.data(), step});
            if (!same(made.data(), expected.data())) return 0;
        }
    row_sums_ = sums;
    column_sums_ = columns;
    return 0;
}

int ReductionLoop::find(PyObject* ufunc, PyArray_Descr* in, PyArray_Descr* wanted,
                        std::shared_ptr<const ReductionLoop>& loop) {
    static constinit Memo<LoopKey, KnownLoop, LoopKeyHash> loops;
    loop = nullptr;
    const LoopKey key{ufunc, in, wanted};
    if (const KnownLoop* known = loops.find(key)) {
        loop = known->loop;
        return 0;
    }
    if (!is_elementwise_ufunc(ufunc)) return 0;
    auto* u = reinterpret_cast<PyUFuncObject*>(ufunc);
    if (u->nin != 2 || u->nout != 1) return 0;
    const QuietErrors quiet;
    if (!quiet) return 0;
    Ref dtype = result_dtype(key);
    if (dtype && descr(dtype.get()) != in) {  // the loop is that of the dtype it computes in
        if (find(ufunc, descr(dtype.get()), descr(dtype.get()), loop) < 0) return -1;
    } else if (dtype) {
        auto fresh = std::make_shared<ReductionLoop>();
        PyObject* const kinds[] = {dtype.get(), dtype.get()};
        int fits = fresh->loop_.resolve(ufunc, kinds, 2);
        if (fits < 0) return -1;
        for (int i = 0; fits && i < 3; ++i) fits = fresh->loop_.dtype(i) == in;
        if (fits && fresh->itemsize() <= kMaxItemsize && fresh->try_out(ufunc, fits) < 0) return -1;
        if (fits) loop = std::move(fresh);
    }
    clear_all_fp_errors();  // the trials raised what they raised
    loops.keep(key, {Ref::borrow(ufunc), Ref::borrow(reinterpret_cast<PyObject*>(in)),
                     Ref::borrow(reinterpret_cast<PyObject*>(wanted)), loop});
    return 0;
}

npy_intp buffer_size() {
    State& s = state();
    PyObject* now = nullptr;
    if (s.context) {
        if (PyContextVar_Get(s.context.get(), nullptr, &now) < 0) return -1;
        Py_XDECREF(now);  // only its address matters
        if (now == s.usual.get()) return NPY_BUFSIZE;
    }
    Ref numpy = Ref::steal(PyImport_ImportModule("numpy"));
    Ref size = numpy ? Ref::steal(PyObject_CallMethod(numpy.get(), "getbufsize", nullptr)) : Ref();
    return size ? PyLong_AsSsize_t(size.get()) : -1;
}

npy_intp reduction_chunk() { return state().chunk; }

int reduction_init() {
    State& s = state();
    if (s.chunk_known) return 0;
    // NumPy's state of errors and buffers is a context variable; without it every look asks np.getbufsize().
    Ref umath = Ref::steal(PyImport_ImportModule("numpy._core.umath"));
    if (umath) s.context = Ref::steal(PyObject_GetAttrString(umath.get(), "_extobj_contextvar"));
    if (!s.context) PyErr_Clear();
    if (s.context && !PyContextVar_CheckExact(s.context.get())) s.context = Ref();
    Ref add = umath ? Ref::steal(PyObject_GetAttrString(umath.get(), "add")) : Ref();
    if (!add) return -1;
    if (s.context) {
        // The value a fresh context has, whatever the caller has set in this one.
        Ref fresh = Ref::steal(PyContext_New());
        PyObject* value = nullptr;
        if (!fresh || PyContext_Enter(fresh.get()) < 0) return -1;
        const int got = PyContextVar_Get(s.context.get(), nullptr, &value);
        if (PyContext_Exit(fresh.get()) < 0 || got < 0) return -1;
        s.usual = Ref::steal(value);
    }
    Ref dtype = Ref::steal(reinterpret_cast<PyObject*>(PyArray_DescrFromType(NPY_DOUBLE)));
    std::shared_ptr<const ReductionLoop> loop;
    if (ReductionLoop::find(add.get(), descr(dtype.get()), nullptr, loop) < 0) return -1;
    s.chunk_known = true;
    s.chunk = 1;  // nothing is known: as if any number of elements made a difference
    Ref trial = trial_array(descr(dtype.get()), kLong, 3), axis = Ref::steal(PyLong_FromLong(0));
    if (!trial || !axis) return -1;
    if (!loop) return 0;
    const npy_intp size = buffer_size();
    if (size < 0) return -1;
    Ref expected = reduced(add.get(), trial.get(), axis.get(), nullptr);
    for (const npy_intp chunk : {kLong, size}) {
        double out;
        if (!folded(*loop, trial, loop->initial(), chunk, reinterpret_cast<char*>(&out))) continue;
        if (!is_item(expected, reinterpret_cast<const char*>(&out), descr(dtype.get()))) continue;
        s.chunk = chunk == kLong ? 0 : NPY_BUFSIZE;
        break;
    }
    return 0;
}

}  // namespace pyop
