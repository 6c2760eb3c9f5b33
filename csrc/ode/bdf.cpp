// ode/bdf.cpp: implement BDF, backward differentiation formulas of order 1 to 5, with quasi-constant steps.
//
// L. F. Shampine, M. W. Reichelt, The MATLAB ODE suite, SIAM J. Sci. Comput. 18 (1997): the modified formulas (NDF) on
// backward differences, which are transformed when the size of the step changes.
#include <algorithm>
#include <cmath>

#include "ode/implicit.h"

namespace pyop::ode {

namespace {

constexpr int kLargestOrder = 5, kBdfIterations = 4;

struct Coefficients {
    double gamma[6], alpha[6], error[6];

    Coefficients() {
        const double kappa[6] = {0, -0.1850, -1.0 / 9, -0.0823, -0.0415, 0};
        gamma[0] = 0;
        for (int k = 1; k < 6; ++k) gamma[k] = (k > 1 ? gamma[k - 1] : 0) + 1.0 / k;
        for (int k = 0; k < 6; ++k) {
            alpha[k] = (1 - kappa[k]) * gamma[k];
            error[k] = kappa[k] * gamma[k] + 1.0 / (k + 1);
        }
    }
};

// The matrix that interpolates differences at steps of another size.
void interpolation(int order, double factor, double* R) {
    const int k = order + 1;
    for (int j = 0; j < k; ++j) R[j] = 1;
    for (int i = 1; i < k; ++i)
        for (int j = 0; j < k; ++j) R[i * k + j] = j ? R[(i - 1) * k + j] * ((i - 1 - factor * j) / i) : 0;
}

class Bdf final : public Implicit {
  public:
    explicit Bdf(Problem& problem)
        : Implicit(problem),
          lu_(size),
          D_(size * (kLargestOrder + 3)),
          f_(size),
          y_new_(size),
          predicted_(size),
          psi_(size),
          scale_(size),
          scaled_(size),
          d_(size),
          dy_(size),
          changed_(size * (kLargestOrder + 1)) {}

    void start() override {
        p.derivative(t, y.data(), f_.data());
        h_abs_ = p.first_step > 0 ? p.first_step : p.initial_step(f_.data(), 1);
        for (size_t i = 0; i < size; ++i) {
            D_[i] = y[i];
            D_[size + i] = f_[i] * h_abs_ * p.direction;
        }
        if (!constant()) anew(t, y.data());
    }

    const char* step() override;

    void segment(double* to) override {
        head(to, h_abs_ * p.direction, order_);
        std::copy_n(D_.begin(), size * (kLargestOrder + 1), std::copy(y_old.begin(), y_old.end(), to + kHead));
    }

  private:
    double* row(int k) { return D_.data() + static_cast<size_t>(k) * size; }
    void anew(double time, const double* state) {
        if (!p.jac) p.evaluate(time, state, f_.data());
        jacobian(time, state, f_.data());
    }
    void change(double factor) {
        const int k = order_ + 1;
        double R[36], U[36], RU[36];
        interpolation(order_, factor, R);
        interpolation(order_, 1, U);
        p.multiply({R, k, k}, {U, k, k}, RU);
        p.multiply({RU, k, k, true}, {D_.data(), k, n}, changed_.data());
        std::copy_n(changed_.begin(), static_cast<size_t>(k) * size, D_.begin());
        equal_steps_ = 0;
    }
    double scaled_norm(double constant, const double* x) {
        for (size_t i = 0; i < size; ++i) scaled_[i] = constant * x[i] / scale_[i];
        return p.rms(scaled_.data(), n);
    }
    bool solve_step(double c);
    void choose_order(double error, double safety);

    const Coefficients k_;
    Factors<double> lu_;
    std::vector<double> D_, f_, y_new_, predicted_, psi_, scale_, scaled_, d_, dy_, changed_;
    double h_abs_ = 0, t_new_ = 0;
    int order_ = 1, equal_steps_ = 0, iterations_ = 0;
};

// Newton iterations from the predicted state. Whether they converge.
bool Bdf::solve_step(double c) {
    std::fill(d_.begin(), d_.end(), 0.0);
    y_new_ = predicted_;
    double norm_old = -1;
    for (int k = 0; k < kBdfIterations; ++k) {
        iterations_ = k + 1;
        p.derivative(t_new_, y_new_.data(), f_.data());
        if (!std::all_of(f_.begin(), f_.end(), [](double v) { return std::isfinite(v); })) return false;
        for (size_t i = 0; i < size; ++i) dy_[i] = c * f_[i] - psi_[i] - d_[i];
        p.note_flags();
        lu_.solve(p, dy_.data());
        for (size_t i = 0; i < size; ++i) scaled_[i] = dy_[i] / scale_[i];
        const double norm = p.rms(scaled_.data(), n), rate = norm_old >= 0 ? norm / norm_old : -1;
        if (norm_old >= 0 && (rate >= 1 || power(rate, kBdfIterations - k) / (1 - rate) * norm > newton_tolerance))
            return false;
        for (size_t i = 0; i < size; ++i) {
            y_new_[i] += dy_[i];
            d_[i] += dy_[i];
        }
        if (norm == 0 || (norm_old >= 0 && rate / (1 - rate) * norm < newton_tolerance)) return true;
        norm_old = norm;
    }
    return false;
}

const char* Bdf::step() {
    if (h_abs_ != h_abs_) return kNoFirstStep;
    const double least = least_step();
    double h_abs = h_abs_, error, safety;
    if (h_abs_ > p.max_step || h_abs_ < least) {
        h_abs = h_abs_ > p.max_step ? p.max_step : least;
        change(h_abs / h_abs_);
    }
    bool current = constant();
    for (;;) {
        p.pause();
        if (h_abs < least) return kTooSmall;
        t_new_ = t + h_abs * p.direction;
        if (p.direction * (t_new_ - p.t_bound) > 0) {
            t_new_ = p.t_bound;
            change(std::fabs(t_new_ - t) / h_abs);
            lu_.known = false;
        }
        const double h = t_new_ - t;
        h_abs = std::fabs(h);
        for (size_t i = 0; i < size; ++i) {
            predicted_[i] = D_[i];
            for (int k = 1; k <= order_; ++k) predicted_[i] += row(k)[i];
        }
        set_scale(predicted_.data(), nullptr, scale_.data());
        p.multiply({row(1), n, order_, true}, vector(k_.gamma + 1, order_), psi_.data());
        for (size_t i = 0; i < size; ++i) psi_[i] /= k_.alpha[order_];
        const double c = h / k_.alpha[order_];
        bool converged = false;
        while (!converged) {
            if (!lu_.known) {
                for (size_t j = 0; j < size; ++j)
                    for (size_t i = 0; i < size; ++i) lu_.a[j * size + i] = (i == j ? 1 : 0) - c * J[i * size + j];
                lu_.factorise(p);
            }
            converged = solve_step(c);
            if (converged || current) break;
            anew(t_new_, predicted_.data());
            lu_.known = false;
            current = true;
        }
        if (!converged) {
            h_abs *= 0.5;
            change(0.5);
            lu_.known = false;
            continue;
        }
        safety = 0.9 * (2 * kBdfIterations + 1) / (2 * kBdfIterations + iterations_);
        set_scale(y_new_.data(), nullptr, scale_.data());
        error = scaled_norm(k_.error[order_], d_.data());
        if (!less(1, error)) break;
        const double factor = larger(kLeastFactor, safety * power(error, -1.0 / (order_ + 1)));
        h_abs *= factor;
        change(factor);
    }
    ++equal_steps_;
    t_old = t;
    t = t_new_;
    y_old.swap(y);
    y = y_new_;
    h_abs_ = h_abs;
    // D^{j+1} y_n = D^j y_n - D^j y_{n-1}, of which D still has those at n-1 and d is the one of the highest order.
    for (size_t i = 0; i < size; ++i) {
        row(order_ + 2)[i] = d_[i] - row(order_ + 1)[i];
        row(order_ + 1)[i] = d_[i];
        for (int k = order_; k >= 0; --k) row(k)[i] += row(k + 1)[i];
    }
    if (equal_steps_ > order_) choose_order(error, safety);
    return nullptr;
}

// The order, of this and its neighbours, that allows for the largest step, and that step.
void Bdf::choose_order(double error, double safety) {
    const double below = order_ > 1 ? scaled_norm(k_.error[order_ - 1], row(order_)) : HUGE_VAL;
    const double above = order_ < kLargestOrder ? scaled_norm(k_.error[order_ + 1], row(order_ + 2)) : HUGE_VAL;
    const double errors[3] = {below, error, above};
    const double exponents[3] = {-1.0 / order_, -1.0 / (order_ + 1), -1.0 / (order_ + 2)};
    double factors[3];
    int best = 0;
    p.note_flags();
    p.loop(p.power_of_arrays, errors, sizeof(double), exponents, factors, sizeof(double), 3);
    for (int k = 0; k < 3; ++k) {
        if (factors[best] == factors[best] && !(factors[k] <= factors[best])) best = k;  // as np.argmax has NaN
    }
    Problem::drop_flags();
    order_ += best - 1;
    const double factor = smaller(kLargestFactor, safety * factors[best]);
    h_abs_ *= factor;
    change(factor);
    lu_.known = false;
}

}  // namespace

std::unique_ptr<Solver> bdf(Problem& problem) { return std::make_unique<Bdf>(problem); }

}  // namespace pyop::ode
