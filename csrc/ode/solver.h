// ode/solver.h: define a method of integration: steps, and what is between them (Solver).
//
// The control of steps, the norms of errors and the interpolation are those of scipy.integrate.solve_ivp, in the same
// order of operations, so that steps and results are the same. A segment is what is kept of a step to interpolate in
// it: kHead numbers, the state before the step, and what the method needs.
#pragma once

#include <memory>

#include "ode/problem.h"

namespace pyop::ode {

constexpr char kTooSmall[] = "Required step size is less than spacing between numbers.";

// Where SciPy would go on for ever.
constexpr char kNoFirstStep[] =
    "There is no first step: the derivatives at the start are not finite, or a tolerance is 0 where the state is.";

// What a step is multiplied by at least and at most to make the next.
constexpr double kLeastFactor = 0.2, kLargestFactor = 10;

class Solver {
  public:
    explicit Solver(Problem& problem)
        : p(problem), n(problem.n), size(static_cast<size_t>(n)), t(p.t0), t_old(p.t0), y(p.y0), y_old(p.y0) {}
    virtual ~Solver() = default;

    // What is evaluated before the first step.
    virtual void start() = 0;
    // Null, or why there can be none.
    virtual const char* step() = 0;
    // Writes the segment of the last step.
    virtual void segment(double* to) = 0;

    Problem& p;
    const int n;
    const size_t size;
    double t, t_old;
    std::vector<double> y, y_old;

  protected:
    double least_step() const { return 10 * std::fabs(std::nextafter(t, p.direction * HUGE_VAL) - t); }
    // h and the time to which it leads, not beyond the end.
    double step_to(double& h_abs, double& t_new) const {
        t_new = t + h_abs * p.direction;
        if (p.direction * (t_new - p.t_bound) > 0) t_new = p.t_bound;
        const double h = t_new - t;
        h_abs = std::fabs(h);
        return h;
    }
    void head(double* to, double h, int order) const {
        to[0] = t_old;
        to[1] = t;
        to[2] = h;
        to[3] = order;
    }
    void set_scale(const double* a, const double* b, double* scale) const {
        for (size_t i = 0; i < size; ++i)
            scale[i] = p.atol[i] + (b ? np_maximum(std::fabs(a[i]), std::fabs(b[i])) : std::fabs(a[i])) * p.rtol[i];
    }
};

enum class Method { RK, DOP853, Radau, BDF };

constexpr size_t kHead = 4;  // t_old, t, h, order
size_t segment_size(Method method, int n, int columns);

// The state at `m` times within a segment: n rows of m.
void interpolate(const Blas& blas, Method method, const double* segment, int n, int columns, const double* ts, int m,
                 double* result);

// Coefficients of a Runge-Kutta method, as SciPy's classes have them.
struct Tableau {
    int stages = 0, order = 0;         // of the estimate of the error
    std::vector<double> A, B, C, E;    // of DOP853 E is E5
    std::vector<double> E3, A_extra, C_extra;  // DOP853
    std::vector<double> P;             // of DOP853 D
    int columns = 0;                   // of P
};

std::unique_ptr<Solver> runge_kutta(Problem& problem, const Tableau& tableau);
std::unique_ptr<Solver> dop853(Problem& problem, const Tableau& tableau);
std::unique_ptr<Solver> radau(Problem& problem);
std::unique_ptr<Solver> bdf(Problem& problem);

}  // namespace pyop::ode
