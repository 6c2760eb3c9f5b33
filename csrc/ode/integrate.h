// ode/integrate.h: solve an initial value problem, and keep its results (Integration).
//
//     advance   steps until the end, a failure, or a step in which events happen; the GIL is given up for it where no
//               plan needs Python
//     go_on     after such a step, when Python has found where they happened and whether that is the end
//
// One thread at a time.
#pragma once

#include "ode/solver.h"

namespace pyop::ode {

enum class Outcome { running, finished, failed, events };

class Integration {
  public:
    Problem p;
    Method method = Method::RK;
    Tableau tableau;
    std::vector<double> t_eval;  // in the order of time
    bool at_times = false;       // only those are asked for
    bool dense = false;

    // What has been found.
    std::vector<double> ts, ys;       // times, and states one behind the other: of each step, or of t_eval
    std::vector<double> ti, segments;  // where segments begin and end
    const char* message = nullptr;
    std::vector<int> active;  // events of the last step

    void begin();
    Outcome advance();
    // Ends the step, at `t_end` with the integration if that is finite.
    void go_on(double t_end);
    // The last segment, for a while: where events are looked for.
    const std::vector<double>& last_segment();
    const Solver& solver() const { return *solver_; }
    size_t segment_numbers() const { return segment_size(method, p.n, tableau.columns); }

  private:
    void finish_step(double t, const double* y);
    void find_active();

    std::unique_ptr<Solver> solver_;
    std::vector<double> g_, g_new_, segment_, chunk_;
    bool has_segment_ = false, ended_ = false;
    size_t evaluated_ = 0;  // of t_eval
};

// Adds the type `_Integration` to the module.
int ode_init(PyObject* module);

}  // namespace pyop::ode

namespace pyop {
using ode::ode_init;
}
