// ode/radau.cpp: implement Radau, the implicit Runge-Kutta method Radau IIA of order 5.
//
// E. Hairer, G. Wanner, Solving Ordinary Differential Equations II, IV.8: the stages are transformed into one real and
// one complex system, which are solved by simplified Newton iterations.
#include <algorithm>
#include <cmath>

#include "ode/implicit.h"

namespace pyop::ode {

namespace {

constexpr int kRadauIterations = 6;

// Eigenvalues of the inverse of the method's matrix, and the matrices that transform by its eigenvectors.
struct Constants {
    double root6 = power(6, 0.5), third = 1.0 / 3, c[3] = {(4 - root6) / 10, (4 + root6) / 10, 1};
    double e[3] = {(-13 - 7 * root6) / 3, (-13 + 7 * root6) / 3, -1.0 / 3};
    double real = 3 + power(3, 2.0 / 3) - power(3, third);
    double re = 3 + 0.5 * (power(3, third) - power(3, 2.0 / 3));
    double im = -(0.5 * (power(3, 5.0 / 6) + power(3, 7.0 / 6)));
    double t[9] = {0.09443876248897524,
                   -0.14125529502095421,
                   0.03002919410514742,
                   0.25021312296533332,
                   0.20412935229379994,
                   -0.38294211275726192,
                   1,
                   1,
                   0};
    double inverse[9] = {4.17871859155190428,  0.32768282076106237,  0.52337644549944951,
                         -4.17871859155190428, -0.32768282076106237, 0.47662355450055044,
                         0.50287263494578682,  -2.57192694985560522, 0.59603920482822492};
    double p[9] = {13.0 / 3 + 7 * root6 / 3,
                   -23.0 / 3 - 22 * root6 / 3,
                   10.0 / 3 + 5 * root6,
                   13.0 / 3 - 7 * root6 / 3,
                   -23.0 / 3 + 22 * root6 / 3,
                   10.0 / 3 - 5 * root6,
                   1.0 / 3,
                   -8.0 / 3,
                   10.0 / 3};
};

class Radau final : public Implicit {
  public:
    explicit Radau(Problem& problem)
        : Implicit(problem),
          real_(size),
          complex_(size),
          f_(size),
          f_new_(size),
          y_new_(size),
          scale_(size),
          error_(size),
          ze_(size),
          Z0_(3 * size),
          Z_(3 * size),
          W_(3 * size),
          dW_(3 * size),
          F_(3 * size),
          scaled_(3 * size),
          Q_(3 * size),
          b_real_(size),
          F_complex_(3 * size),
          b_complex_(size),
          w_complex_(size) {}

    void start() override {
        p.derivative(t, y.data(), f_.data());
        h_abs_ = p.first_step > 0 ? p.first_step : p.initial_step(f_.data(), 3);
        if (!constant()) jacobian(t, y.data(), f_.data());
    }

    const char* step() override;

    void segment(double* to) override {
        head(to, t - t_old, 0);
        std::copy(Q_.begin(), Q_.end(), std::copy(y_old.begin(), y_old.end(), to + kHead));
    }

  private:
    void factorise(double h);
    bool solve_stages(double h, bool guessed);
    double error_norm(double* error) {
        real_.solve(p, error);
        for (size_t i = 0; i < size; ++i) scaled_[i] = error[i] / scale_[i];
        return p.rms(scaled_.data(), n);
    }
    double predicted(double h_abs, double before, double error, double error_before) const {
        double multiplier = 1;
        if (before > 0 && error_before >= 0 && error != 0)
            multiplier = h_abs / before * power(error_before / error, 0.25);
        return smaller(1, multiplier) * power(error, -0.25);
    }

    const Constants k_;
    Factors<double> real_;
    Factors<Complex> complex_;
    std::vector<double> f_, f_new_, y_new_, scale_, error_, ze_, Z0_, Z_, W_, dW_, F_, scaled_, Q_, b_real_;
    std::vector<Complex> F_complex_, b_complex_, w_complex_;
    double h_abs_ = 0, h_abs_old_ = -1, error_old_ = -1, rate_ = -1;
    int iterations_ = 0;
    bool current_ = true, first_ = true;
};

void Radau::factorise(double h) {
    const double m = k_.real / h;
    const Complex mc(k_.re / h, k_.im / h);
    for (size_t j = 0; j < size; ++j)
        for (size_t i = 0; i < size; ++i) {
            real_.a[j * size + i] = (i == j ? m : 0) - J[i * size + j];
            complex_.a[j * size + i] = Complex((i == j ? mc.real() : 0) - J[i * size + j], i == j ? mc.imag() : 0);
        }
    real_.factorise(p);
    complex_.factorise(p);
}

// Newton iterations for the stages, from Z0. Whether they converge.
bool Radau::solve_stages(double h, bool guessed) {
    const double m = k_.real / h, tolerance = newton_tolerance;
    const Complex mc(k_.re / h, k_.im / h);
    // The guess is by columns where there is one.
    p.multiply({k_.inverse, 3, 3}, {Z0_.data(), 3, n, guessed}, W_.data());
    for (size_t i = 0; i < size; ++i)
        for (size_t s = 0; s < 3; ++s) Z_[s * size + i] = guessed ? Z0_[i * 3 + s] : Z0_[s * size + i];
    double norm_old = -1;
    rate_ = -1;
    for (int k = 0; k < kRadauIterations; ++k) {
        iterations_ = k + 1;
        for (size_t s = 0; s < 3; ++s) {
            for (size_t i = 0; i < size; ++i) y_new_[i] = y[i] + Z_[s * size + i];
            p.derivative(t + h * k_.c[s], y_new_.data(), F_.data() + s * size);
        }
        if (!std::all_of(F_.begin(), F_.end(), [](double v) { return std::isfinite(v); })) return false;
        p.multiply({F_.data(), n, 3, true}, vector(k_.inverse, 3), b_real_.data());
        std::copy(F_.begin(), F_.end(), F_complex_.begin());
        const Complex combine[3] = {
            {k_.inverse[3], k_.inverse[6]}, {k_.inverse[4], k_.inverse[7]}, {k_.inverse[5], k_.inverse[8]}};
        const Complex one = 1, zero = 0;
        const int step = 1, three = 3;
        if (n == 1)
            b_complex_[0] = p.blas.zdotu(&three, F_complex_.data(), &step, combine, &step);
        else
            p.blas.zgemv("N", &n, &three, &one, F_complex_.data(), &n, combine, &step, &zero, b_complex_.data(), &step);
        Problem::drop_flags();
        for (size_t i = 0; i < size; ++i) {
            b_real_[i] = b_real_[i] - m * W_[i];
            w_complex_[i] = {W_[size + i], W_[2 * size + i]};
        }
        Problem::loop(p.multiply_complex, &mc, 0, w_complex_.data(), w_complex_.data(), sizeof(Complex), n);
        for (size_t i = 0; i < size; ++i) b_complex_[i] -= w_complex_[i];
        p.note_flags();
        real_.solve(p, b_real_.data());
        complex_.solve(p, b_complex_.data());
        for (size_t i = 0; i < size; ++i) {
            dW_[i] = b_real_[i];
            dW_[size + i] = b_complex_[i].real();
            dW_[2 * size + i] = b_complex_[i].imag();
        }
        for (size_t s = 0; s < 3; ++s)
            for (size_t i = 0; i < size; ++i) scaled_[s * size + i] = dW_[s * size + i] / scale_[i];
        const double norm = p.rms(scaled_.data(), 3 * n);
        if (norm_old >= 0) {
            rate_ = norm / norm_old;
            if (std::isgreaterequal(rate_, 1.0) ||
                less(tolerance, power(rate_, kRadauIterations - k) / (1 - rate_) * norm))
                return false;
        }
        for (size_t i = 0; i < 3 * size; ++i) W_[i] += dW_[i];
        p.multiply({k_.t, 3, 3}, {W_.data(), 3, n}, Z_.data());
        if (norm == 0 || (norm_old >= 0 && less(rate_ / (1 - rate_) * norm, tolerance))) return true;
        norm_old = norm;
    }
    return false;
}

const char* Radau::step() {
    if (h_abs_ != h_abs_) return kNoFirstStep;
    const double least = least_step();
    double h_abs = h_abs_, before = h_abs_old_, error_before = error_old_, error, t_new, h, safety;
    if (h_abs_ > p.max_step || h_abs_ < least) {
        h_abs = h_abs_ > p.max_step ? p.max_step : least;
        before = error_before = -1;
    }
    for (bool rejected = false;;) {
        p.pause();
        if (h_abs < least) return kTooSmall;
        h = step_to(h_abs, t_new);
        const bool guessed = !first_;
        if (guessed) {
            double segment_head[kHead] = {t_old, t, t - t_old, 0}, times[3];
            std::vector<double> last(kHead + 4 * size);
            std::copy_n(segment_head, kHead, last.begin());
            std::copy(Q_.begin(), Q_.end(),
                      std::copy(y_old.begin(), y_old.end(), last.begin() + static_cast<ptrdiff_t>(kHead)));
            for (int s = 0; s < 3; ++s) times[s] = t + h * k_.c[s];
            p.note_flags();
            interpolate(p.blas, Method::Radau, last.data(), n, 3, times, 3, Z0_.data());
            Problem::drop_flags();
            for (size_t i = 0; i < size; ++i)
                for (size_t s = 0; s < 3; ++s) Z0_[i * 3 + s] -= y[i];
        } else {
            std::fill(Z0_.begin(), Z0_.end(), 0.0);
        }
        set_scale(y.data(), nullptr, scale_.data());
        bool converged = false;
        while (!converged) {
            if (!real_.known || !complex_.known) factorise(h);
            converged = solve_stages(h, guessed);
            if (converged) break;
            if (current_) break;
            jacobian(t, y.data(), f_.data());
            current_ = true;
            real_.known = complex_.known = false;
        }
        if (!converged) {
            h_abs *= 0.5;
            real_.known = complex_.known = false;
            continue;
        }
        for (size_t i = 0; i < size; ++i) y_new_[i] = y[i] + Z_[2 * size + i];
        p.multiply({Z_.data(), n, 3, true}, vector(k_.e, 3), ze_.data());
        for (size_t i = 0; i < size; ++i) {
            ze_[i] /= h;
            error_[i] = f_[i] + ze_[i];
        }
        set_scale(y.data(), y_new_.data(), scale_.data());
        p.note_flags();
        error = error_norm(error_.data());
        safety = 0.9 * (2 * kRadauIterations + 1) / (2 * kRadauIterations + iterations_);
        if (rejected && less(1, error)) {
            for (size_t i = 0; i < size; ++i) error_[i] = y[i] + error_[i];
            p.derivative(t, error_.data(), b_real_.data());
            for (size_t i = 0; i < size; ++i) error_[i] = b_real_[i] + ze_[i];
            error = error_norm(error_.data());
        }
        if (!less(1, error)) break;
        h_abs *= larger(kLeastFactor, safety * predicted(h_abs, before, error, error_before));
        real_.known = complex_.known = false;
        rejected = true;
    }
    const bool anew = !constant() && iterations_ > 2 && rate_ > 1e-3;
    p.note_flags();
    double factor = smaller(kLargestFactor, safety * predicted(h_abs, before, error, error_before));
    Problem::drop_flags();  // an error of nothing is none to divide by
    if (!anew && factor < 1.2)
        factor = 1;
    else
        real_.known = complex_.known = false;
    p.derivative(t_new, y_new_.data(), f_new_.data());
    if (anew) {
        jacobian(t_new, y_new_.data(), f_new_.data());
        current_ = true;
    } else if (!constant()) {
        current_ = false;
    }
    h_abs_old_ = h_abs_;
    error_old_ = error;
    h_abs_ = h_abs * factor;
    t_old = t;
    t = t_new;
    y_old.swap(y);
    y.swap(y_new_);
    f_.swap(f_new_);
    p.multiply({Z_.data(), n, 3, true}, {k_.p, 3, 3}, Q_.data());
    first_ = false;
    return nullptr;
}

}  // namespace

std::unique_ptr<Solver> radau(Problem& problem) { return std::make_unique<Radau>(problem); }

}  // namespace pyop::ode
