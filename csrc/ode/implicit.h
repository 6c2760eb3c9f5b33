// ode/implicit.h: share what methods that solve equations in each step need: the Jacobian, derived or by differences,
// and matrices in factors (Implicit).
#pragma once

#include <limits>

#include "ode/solver.h"

namespace pyop::ode {

constexpr double kEps = std::numeric_limits<double>::epsilon();

// A matrix in factors by LAPACK, of numbers column by column.
template <typename T>
struct Factors {
    std::vector<T> a;
    std::vector<int> pivots;
    bool known = false;

    explicit Factors(size_t n) : a(n * n), pivots(n) {}
    void factorise(Problem& p);
    // b becomes the solution.
    void solve(const Problem& p, T* b) const;
};

// Throws Refused where SciPy refuses the numbers.
void check_finite(const double* x, size_t n);

class Implicit : public Solver {
  public:
    explicit Implicit(Problem& problem);

  protected:
    // J at (t, y), where the derivative is `f`; by differences unless the problem has one.
    void jacobian(double time, const double* state, const double* f);
    bool constant() const { return !p.constant_jac.empty(); }

    std::vector<double> J;  // row by row
    double newton_tolerance;

  private:
    void differences(double time, const double* state, const double* f);
    void columns(double time, const double* state, const std::vector<size_t>& which, const std::vector<double>& h,
                 const double* f, double* diff, std::vector<double>& largest, std::vector<double>& scale);
    std::vector<double> factor_;  // by which differences are widened
};

}  // namespace pyop::ode
