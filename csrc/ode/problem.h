// ode/problem.h: describe an initial value problem: plans, called by address, its span and tolerances.
//
// An integration belongs to one thread at a time, which may have given up the GIL; any number of them run at once, also
// of the same plans. A plan that fails throws PlanFailed, which ends the run (integrate.cpp).
#pragma once

#include <chrono>
#include <cmath>
#include <vector>

#include "array/loop/fp_flags.h"
#include "array/loop/strided_loop.h"
#include "include/pyop/entry.h"
#include "ode/blas.h"
#include "runtime/interrupt.h"

namespace pyop::ode {

struct PlanFailed {
    const pyop_plan* plan;
    int status;
};
struct Interrupted {};
// A ValueError.
struct Refused {
    const char* message;
};

// A plan of f(t, y, *arguments), float64 all of them, whose results lie side by side.
class PlanCall {
  public:
    // From (plan, inputs, again): of each input "t", "y" or the bytes of an argument. Where the plan is of another path
    // of the function than these t and y need, again(t, y) is the same of the plan of that path. -1 with the error set.
    int read(PyObject* described, size_t n, size_t results);

    explicit operator bool() const { return plan_; }
    bool native() const { return native_; }
    const pyop_plan* plan() const { return plan_; }

    void operator()(double t, const double* y, double* result);

  private:
    bool take_path(double t, const double* y);

    Ref owner_, again_;
    const pyop_plan* plan_ = nullptr;
    size_t n_ = 0, results_ = 0;
    std::vector<Ref> arguments_;  // bytes
    std::vector<const void*> in_;
    std::vector<void*> out_;
    std::vector<size_t> sizes_;  // of results, in numbers
    std::vector<size_t> times_, states_;  // inputs that are t or y
    double t_ = 0;
    bool native_ = false;
};

struct Problem {
    int n = 0;
    double t0 = 0, t_bound = 0, direction = 1;
    std::vector<double> y0, rtol, atol;  // of each variable
    double rtol_of_all = 0;  // where it is one number
    double max_step = 0, first_step = 0;  // 0: to be selected
    Blas blas;
    PlanCall f, jac;
    std::vector<double> constant_jac;
    std::vector<PlanCall> events;
    std::vector<int> event_directions;
    bool native = false;  // all of them

    // NumPy's loops, which fuse a product and a sum where the processor can, or have powers of their own: np.multiply
    // of complex numbers, and np.power of arrays.
    StridedLoop multiply_complex, power_of_arrays;
    int find_loops();  // -1 with the error set
    // Over n elements; all but the first operand, which may be one number, lie side by side.
    static void loop(const StridedLoop& loop, const void* a, npy_intp stride, const void* b, void* result,
                     npy_intp size, npy_intp n) {
        char* const data[] = {static_cast<char*>(const_cast<void*>(a)), static_cast<char*>(const_cast<void*>(b)),
                              static_cast<char*>(result)};
        const npy_intp strides[] = {stride, size, size};
        loop(data, n, strides);
    }

    // What is counted, and seen.
    long long nfev = 0, njev = 0, nlu = 0;
    int fp_seen = 0, singular = 0;

    void derivative(double t, const double* y, double* dy) {
        ++nfev;
        evaluate(t, y, dy);
    }
    void evaluate(double t, const double* y, double* dy) {
        note_flags();
        f(t, y, dy);
    }

    // x / scale, and its root mean square.
    double rms(const double* x, int count) const { return norm(blas, x, count) / power(count, 0.5); }

    void multiply(const Matrix& a, const Matrix& b, double* result) {
        note_flags();
        dot(blas, a, b, result);
        drop_flags();
    }

    // The step that the first derivative, and the one after a small step, suggest for a method of that order.
    double initial_step(const double* dy, int order);

    // Floating-point errors of the arithmetic here; plans see to theirs themselves, and BLAS has none.
    void note_flags() {
        if (const int flags = fp_errors(); PYOP_UNLIKELY(flags != 0)) {
            fp_seen |= flags;
            clear_all_fp_errors();
        }
    }
    static void drop_flags() {
        if (PYOP_UNLIKELY(fp_errors() != 0)) clear_all_fp_errors();
    }

    // Called now and then. Signals are heard, where the GIL is held others get their turn, and at the end of Python
    // the thread stays where it is, as daemon threads do.
    void pause();
    Interrupts interrupts;
    std::chrono::steady_clock::time_point turn;
};

// As Python's min and max, and np.maximum, have NaN; to compare it is no floating-point error, as `<` has it.
inline bool less(double a, double b) { return std::isless(a, b); }
inline double smaller(double a, double b) { return less(b, a) ? b : a; }
inline double larger(double a, double b) { return less(a, b) ? b : a; }
inline double np_maximum(double a, double b) { return std::isgreaterequal(a, b) || a != a ? a : b; }

}  // namespace pyop::ode
