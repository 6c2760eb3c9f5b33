// ode/problem.cpp: call plans, choose the first step, and check signals.
#include "ode/problem.h"

#include <cmath>
#include <cstring>

#include "runtime/up_calls.h"

namespace pyop::ode {

namespace {

const pyop_plan* plan_of(PyObject* plan) {
    const Ref capsule = Ref::steal(PyObject_GetAttrString(plan, "capsule"));
    return capsule ? static_cast<const pyop_plan*>(PyCapsule_GetPointer(capsule.get(), PYOP_PLAN_CAPSULE)) : nullptr;
}

int misfit(const char* what, size_t k) {
    PyErr_Format(PyExc_TypeError, "%s %zu of a plan of a differential equation has another dtype or size", what, k);
    return -1;
}

bool is_float64(const pyop_array* a) { return std::strcmp(a->dtype, "float64") == 0; }

}  // namespace

int PlanCall::read(PyObject* described, size_t n, size_t results) {
    PyObject *plan, *inputs, *again;
    if (!PyArg_ParseTuple(described, "OO!O", &plan, &PyTuple_Type, &inputs, &again)) return -1;
    *this = PlanCall();
    n_ = n;
    results_ = results;
    again_ = Ref::borrow(again);
    plan_ = plan_of(plan);
    if (!plan_) return -1;
    owner_ = Ref::borrow(plan);
    native_ = pyop_is_native(plan_) == 1;
    const size_t n_in = pyop_n_inputs(plan_), n_out = pyop_n_outputs(plan_);
    if (static_cast<size_t>(PyTuple_GET_SIZE(inputs)) != n_in) return misfit("the number of inputs, not", n_in);
    in_.resize(n_in);
    for (size_t k = 0; k < n_in; ++k) {
        const pyop_array* const a = pyop_input(plan_, k);
        PyObject* const given = PyTuple_GET_ITEM(inputs, static_cast<Py_ssize_t>(k));
        if (PyBytes_Check(given)) {
            if (static_cast<size_t>(PyBytes_GET_SIZE(given)) != a->bytes) return misfit("input", k);
            arguments_.push_back(Ref::borrow(given));
            in_[k] = PyBytes_AS_STRING(given);
        } else if (PyUnicode_Check(given)) {
            const bool is_t = PyUnicode_CompareWithASCIIString(given, "t") == 0;
            if (!is_float64(a) || a->bytes != sizeof(double) * (is_t ? 1 : n)) return misfit("input", k);
            (is_t ? times_ : states_).push_back(k);
        } else {
            return misfit("input", k);
        }
    }
    size_t total = 0;
    for (size_t k = 0; k < n_out; ++k) {
        const pyop_array* const a = pyop_output(plan_, k);
        if (!is_float64(a)) return misfit("result", k);
        sizes_.push_back(a->bytes / sizeof(double));
        total += sizes_.back();
    }
    if (total != results) return misfit("the number of results, not", total);
    out_.resize(n_out);
    return 0;
}

void PlanCall::operator()(double t, const double* y, double* result) {
    constexpr int kMostPaths = 100;  // that one call finds left
    int status = PYOP_OK;
    for (int paths = 0; paths <= kMostPaths; ++paths) {
        t_ = t;
        for (const size_t k : times_) in_[k] = &t_;
        for (const size_t k : states_) in_[k] = y;
        double* to = result;
        for (size_t k = 0; k < out_.size(); ++k) {
            out_[k] = to;
            to += sizes_[k];
        }
        status = pyop_plan_call(plan_, in_.data(), out_.data());
        if (PYOP_LIKELY(status == PYOP_OK)) return;
        if (status != PYOP_RAISED || !take_path(t, y)) break;
    }
    throw PlanFailed{plan_, status};
}

// Whether the last call has failed for being of another path, and this is the one of the right path now. Else the error
// is set for this thread, which may be detached.
bool PlanCall::take_path(double t, const double* y) {
    const bool before = attached();
    const AttachScope scope;
    if (!scope) return false;
    if (!before && !PyErr_Occurred()) pyop_raise(plan_);
    if (!PyErr_ExceptionMatches(up_calls.path_left)) return false;
    PyErr_Clear();
    const Ref again = again_;
    const Ref state = Ref::steal(
        PyBytes_FromStringAndSize(reinterpret_cast<const char*>(y), static_cast<Py_ssize_t>(n_ * sizeof(double))));
    const Ref made = state ? Ref::steal(PyObject_CallFunction(again.get(), "dO", t, state.get())) : Ref();
    return made && read(made.get(), n_, results_) == 0;
}

int Problem::find_loops() {
    const Ref numpy = Ref::steal(PyImport_ImportModule("numpy"));
    const auto find = [&](StridedLoop& loop, const char* name, int type) {
        const Ref ufunc = Ref::steal(numpy ? PyObject_GetAttrString(numpy.get(), name) : nullptr);
        const Ref dtype = Ref::steal(reinterpret_cast<PyObject*>(PyArray_DescrFromType(type)));
        PyObject* const kinds[] = {dtype.get(), dtype.get()};
        const int found = ufunc && dtype ? loop.resolve(ufunc.get(), kinds, 2) : -1;
        if (found == 0) PyErr_Format(errors.base, "NumPy does not tell its loop of %s", name);
        return found > 0;
    };
    return find(multiply_complex, "multiply", NPY_CDOUBLE) && find(power_of_arrays, "power", NPY_DOUBLE) ? 0 : -1;
}

// E. Hairer, S. P. Nørsett, G. Wanner, Solving Ordinary Differential Equations I, II.4.
double Problem::initial_step(const double* dy, int order) {
    const size_t size = static_cast<size_t>(n);
    std::vector<double> scale(size), scaled(size), y1(size), dy1(size);
    for (size_t i = 0; i < size; ++i) {
        scale[i] = atol[i] + std::fabs(y0[i]) * rtol[i];
        scaled[i] = y0[i] / scale[i];
    }
    const double d0 = rms(scaled.data(), n);
    for (size_t i = 0; i < size; ++i) scaled[i] = dy[i] / scale[i];
    const double d1 = rms(scaled.data(), n), length = std::fabs(t_bound - t0);
    const double h0 = smaller(less(d0, 1e-5) || less(d1, 1e-5) ? 1e-6 : 0.01 * d0 / d1, length), h = h0 * direction;
    for (size_t i = 0; i < size; ++i) y1[i] = y0[i] + h * dy[i];
    derivative(t0 + h, y1.data(), dy1.data());
    for (size_t i = 0; i < size; ++i) scaled[i] = (dy1[i] - dy[i]) / scale[i];
    const double d2 = rms(scaled.data(), n) / h0;
    const double h1 = std::islessequal(d1, 1e-15) && std::islessequal(d2, 1e-15)
                          ? larger(1e-6, h0 * 1e-3)
                          : power(0.01 / larger(d1, d2), 1.0 / (order + 1));
    return smaller(smaller(smaller(100 * h0, h1), length), max_step);
}

void Problem::pause() {
    // Python is shutting down, and after it the libraries that BLAS is in.
    if (PYOP_UNLIKELY(native && (reaper::state.scopes.load(std::memory_order_relaxed) & 1) != 0)) park_thread();
    if (interrupts.due()) {
        interrupts.listen();
        if (interrupts.raised()) throw Interrupted{};
    }
    if (native) return;
    // Longer than the 5 ms for which Python has others wait before they ask for the GIL: it is handed over to who has
    // asked, and else taken back before anybody wakes.
    if (const auto now = std::chrono::steady_clock::now(); now - turn > std::chrono::milliseconds(12)) {
        {
            const DetachScope others;
        }
        turn = now;
    }
}

}  // namespace pyop::ode
