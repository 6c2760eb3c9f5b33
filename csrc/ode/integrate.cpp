// ode/integrate.cpp: integrate step by step.
#include "ode/integrate.h"

#include <algorithm>
#include <cmath>

namespace pyop::ode {

void Integration::begin() {
    switch (method) {
        case Method::RK:
            solver_ = runge_kutta(p, tableau);
            break;
        case Method::DOP853:
            solver_ = dop853(p, tableau);
            break;
        case Method::Radau:
            solver_ = radau(p);
            break;
        case Method::BDF:
            solver_ = bdf(p);
            break;
    }
    segment_.resize(segment_numbers());
    p.drop_flags();
    solver_->start();
    if (!at_times) {
        ts.push_back(p.t0);
        ys.insert(ys.end(), p.y0.begin(), p.y0.end());
    } else if (dense) {
        ti.push_back(p.t0);
    }
    g_.resize(p.events.size());
    g_new_.resize(p.events.size());
    for (size_t k = 0; k < g_.size(); ++k) p.events[k](p.t0, p.y0.data(), &g_[k]);
}

const std::vector<double>& Integration::last_segment() {
    if (!has_segment_) {
        p.note_flags();
        solver_->segment(segment_.data());
    }
    has_segment_ = true;
    return segment_;
}

void Integration::find_active() {
    active.clear();
    for (size_t k = 0; k < g_.size(); ++k) {
        p.note_flags();
        p.events[k](solver_->t, solver_->y.data(), &g_new_[k]);
        const bool up = g_[k] <= 0 && g_new_[k] >= 0, down = g_[k] >= 0 && g_new_[k] <= 0;
        const int direction = p.event_directions[k];
        if ((up && direction >= 0) || (down && direction <= 0)) active.push_back(static_cast<int>(k));
    }
    g_.swap(g_new_);
}

Outcome Integration::advance() {
    Solver& s = *solver_;
    while (!ended_) {
        message = s.step();
        if (message) return ended_ = true, Outcome::failed;
        ended_ = p.direction * (s.t - p.t_bound) >= 0;
        has_segment_ = false;
        if (dense) last_segment();
        find_active();
        if (!active.empty()) {
            last_segment();
            return Outcome::events;
        }
        finish_step(s.t, s.y.data());
    }
    p.note_flags();
    return Outcome::finished;
}

void Integration::go_on(double t_end) {
    Solver& s = *solver_;
    if (!std::isfinite(t_end)) return finish_step(s.t, s.y.data());
    ended_ = true;
    std::vector<double> y(s.size);
    interpolate(p.blas, method, segment_.data(), p.n, tableau.columns, &t_end, 1, y.data());
    Problem::drop_flags();
    finish_step(t_end, y.data());
}

void Integration::finish_step(double t, const double* y) {
    bool keep = dense;
    if (!at_times) {
        if (dense && ts.size() > 1 && ts.back() == t) {
            keep = false;
        } else {
            ts.push_back(t);
            ys.insert(ys.end(), y, y + p.n);
        }
    } else {
        size_t end = evaluated_;
        while (end < t_eval.size() && p.direction * (t - t_eval[end]) >= 0) ++end;
        if (const size_t m = end - evaluated_; m > 0) {
            last_segment();
            const size_t n = static_cast<size_t>(p.n);
            chunk_.resize(m * n);
            p.note_flags();
            interpolate(p.blas, method, segment_.data(), p.n, tableau.columns, t_eval.data() + evaluated_,
                        static_cast<int>(m), chunk_.data());
            Problem::drop_flags();
            for (size_t j = 0; j < m; ++j) {
                ts.push_back(t_eval[evaluated_ + j]);
                for (size_t i = 0; i < n; ++i) ys.push_back(chunk_[i * m + j]);
            }
            evaluated_ = end;
        }
        if (dense) ti.push_back(t);
    }
    if (keep) segments.insert(segments.end(), segment_.begin(), segment_.end());
}

}  // namespace pyop::ode
