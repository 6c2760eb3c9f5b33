// ode/explicit.cpp: implement explicit Runge-Kutta methods: RK23, RK45 and DOP853, of which only the coefficients
// differ, the estimate of the error and what is between steps.
//
// E. Hairer, S. P. Nørsett, G. Wanner, Solving Ordinary Differential Equations I, II.4 and II.6.
#include <algorithm>
#include <cmath>

#include "ode/solver.h"

namespace pyop::ode {

namespace {

constexpr double kSafety = 0.9;

class Explicit : public Solver {
  public:
    Explicit(Problem& problem, const Tableau& tableau, int rows)
        : Solver(problem),
          c(tableau),
          K(size * static_cast<size_t>(rows)),
          dy_(size),
          y_new_(size),
          f_(size),
          scale_(size),
          error_(size) {}

    void start() override {
        p.derivative(t, y.data(), f_.data());
        h_abs_ = p.first_step > 0 ? p.first_step : p.initial_step(f_.data(), c.order);
    }

    const char* step() override {
        if (h_abs_ != h_abs_) return kNoFirstStep;
        const double least = least_step();
        double h_abs = h_abs_ > p.max_step ? p.max_step : h_abs_ < least ? least : h_abs_, t_new;
        for (bool rejected = false;; rejected = true) {
            p.pause();
            if (h_abs < least) return kTooSmall;
            const double h = step_to(h_abs, t_new);
            stages(h, t_new);
            set_scale(y.data(), y_new_.data(), scale_.data());
            const double error = error_norm(h);
            if (less(error, 1)) {
                double factor =
                    error == 0 ? kLargestFactor : smaller(kLargestFactor, kSafety * power(error, -1.0 / (c.order + 1)));
                if (rejected) factor = smaller(1, factor);
                h_abs_ = h_abs * factor;
                h_ = h;
                break;
            }
            h_abs *= larger(kLeastFactor, kSafety * power(error, -1.0 / (c.order + 1)));
        }
        t_old = t;
        t = t_new;
        y_old.swap(y);
        y.swap(y_new_);
        std::copy_n(row(c.stages), size, f_.begin());
        return nullptr;
    }

    void segment(double* to) override {
        head(to, t - t_old, 0);
        std::copy(y_old.begin(), y_old.end(), to + kHead);
        p.multiply(derivatives(c.stages + 1), {c.P.data(), c.stages + 1, c.columns}, to + kHead + size);
    }

  protected:
    double* row(int s) { return K.data() + static_cast<size_t>(s) * size; }
    // The first `s` rows of K, transposed.
    Matrix derivatives(int s) const { return {K.data(), n, s, true}; }

    // One more derivative, of the state y plus a combination of those before.
    void stage(int s, const double* a, double time, const double* from, double h) {
        p.multiply(derivatives(s), vector(a, s), dy_.data());
        for (size_t i = 0; i < size; ++i) dy_[i] = from[i] + dy_[i] * h;
        p.derivative(time, dy_.data(), row(s));
    }

    virtual double error_norm(double h) {
        p.multiply(derivatives(c.stages + 1), vector(c.E.data(), c.stages + 1), error_.data());
        for (size_t i = 0; i < size; ++i) error_[i] = error_[i] * h / scale_[i];
        return p.rms(error_.data(), n);
    }

    const Tableau& c;
    std::vector<double> K, dy_, y_new_, f_, scale_, error_;
    double h_abs_ = 0, h_ = 0;

  private:
    void stages(double h, double) {
        std::copy(f_.begin(), f_.end(), K.begin());
        for (int s = 1; s < c.stages; ++s)
            stage(s, c.A.data() + static_cast<ptrdiff_t>(s) * c.stages, t + c.C[static_cast<size_t>(s)] * h, y.data(),
                  h);
        p.multiply(derivatives(c.stages), vector(c.B.data(), c.stages), dy_.data());
        for (size_t i = 0; i < size; ++i) y_new_[i] = y[i] + h * dy_[i];
        p.derivative(t + h, y_new_.data(), row(c.stages));
    }
};

class Dop853 final : public Explicit {
  public:
    Dop853(Problem& problem, const Tableau& tableau)
        : Explicit(problem, tableau, tableau.stages + 1 + static_cast<int>(tableau.C_extra.size())), error3_(size) {}

    void segment(double* to) override {
        const int extra = static_cast<int>(c.C_extra.size()), rows = c.stages + 1 + extra;
        for (int k = 0; k < extra; ++k)
            stage(c.stages + 1 + k, c.A_extra.data() + static_cast<ptrdiff_t>(k) * rows,
                  t_old + c.C_extra[static_cast<size_t>(k)] * h_, y_old.data(), h_);
        head(to, t - t_old, 0);
        double* F = std::copy(y_old.begin(), y_old.end(), to + kHead);
        for (size_t i = 0; i < size; ++i) {
            const double delta = y[i] - y_old[i];
            F[i] = delta;
            F[size + i] = h_ * K[i] - delta;
            F[2 * size + i] = 2 * delta - h_ * (f_[i] + K[i]);
        }
        F += 3 * size;
        p.multiply({c.P.data(), c.columns, rows}, {K.data(), rows, n}, F);
        for (size_t i = 0; i < size * static_cast<size_t>(c.columns); ++i) F[i] = h_ * F[i];
    }

  protected:
    double error_norm(double h) override {
        p.multiply(derivatives(c.stages + 1), vector(c.E.data(), c.stages + 1), error_.data());
        p.multiply(derivatives(c.stages + 1), vector(c.E3.data(), c.stages + 1), error3_.data());
        for (size_t i = 0; i < size; ++i) {
            error_[i] /= scale_[i];
            error3_[i] /= scale_[i];
        }
        const double five = power(norm(p.blas, error_.data(), n), 2), three = power(norm(p.blas, error3_.data(), n), 2);
        if (five == 0 && three == 0) return 0;
        return std::fabs(h) * five / std::sqrt((five + 0.01 * three) * n);
    }

  private:
    std::vector<double> error3_;
};

}  // namespace

std::unique_ptr<Solver> runge_kutta(Problem& problem, const Tableau& tableau) {
    return std::make_unique<Explicit>(problem, tableau, tableau.stages + 1);
}
std::unique_ptr<Solver> dop853(Problem& problem, const Tableau& tableau) {
    return std::make_unique<Dop853>(problem, tableau);
}

}  // namespace pyop::ode
