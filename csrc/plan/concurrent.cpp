// plan/concurrent.cpp: run one program on several threads.
//
// The calling thread works itself and engages helpers when more is ready than it can take, so a run never
// depends on a helper being free, and re-entry at any depth cannot deadlock. What threads of a run share is guarded by
// the GIL, which every thread holds except while it waits or runs a function that releases it, or where there is none
// by `state_`; `mutex_` only guards the sleeping of threads (C++ knows no way to wait on the GIL and a condition at
// once). An instruction reads slots that were filled before it became ready, and that stay until it has counted its
// uses down.
//
// Data order is by counting: an instruction is ready when its predecessors are done. Stateful instructions
// are chained. The first error stops the scheduling of new instructions; those under way are waited for, unless
// the waiting itself is interrupted (Ctrl-C): then they are left to finish, and the run belongs to them.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>

#include "graph/build.h"
#include "plan/execute.h"
#include "plan/python_threads.h"
#include "runtime/attach.h"
#include "runtime/errors.h"
#include "runtime/stack_array.h"
#include "runtime/without_gil.h"

namespace pyop {

namespace {

// Runs may be nested: a function that an instruction calls runs a plan. Each level multiplies the threads, so below
// some depth runs keep to the thread they are called on; an endless recursion then ends as it does in plain Python,
// on the stack of one thread.
constexpr int kHelpersToDepth = 4;
thread_local int depth_here = 0;

class ConcurrentRun final : public Job, public std::enable_shared_from_this<ConcurrentRun> {
  public:
    ConcurrentRun(const Program& p, PyObject* owner, PyObject* graph, int threads)
        : p_(p),
          owner_(Ref::borrow(owner)),
          graph_(Ref::borrow(graph)),
          threads_(threads),
          spare_threads_(threads - 1),
          slots_(p.n_slots),
          uses_(p.slot_uses),
          missing_(p.n_predecessors) {
        for (uint32_t i = 0; i < missing_.size(); ++i)
            if (missing_[i] == 0) ready_.push_back(i);
        left_ = missing_.size();
    }
    ~ConcurrentRun() override {  // attached: the last owner is the caller or a helper at work
        for (PyObject* value : slots_) Py_XDECREF(value);
    }

    int run(PyObject* const* feeds, PyObject* const* targets, PyObject** outputs) {
        targets_ = targets;
        caller_ = PyThread_get_thread_ident();
        if (load_feeds(p_, feeds, slots_.data()) < 0) return -1;
        context_ = Ref::steal(PyContext_CopyCurrent());
        if (!context_) return -1;
        while (!finished()) {
            if (work()) continue;
            if (wait() < 0) {
                const BriefLock lock(state_);
                stopped_ = true;
                return -1;
            }
        }
        if (error_) {  // nobody changes anything any more
            restore_pending(std::exchange(error_, {}));
            return -1;
        }
        return store_outputs(p_, feeds, slots_.data(), outputs);
    }

    void help() override {
        count_helpers(-1, 0);
        // Context variables (np.errstate is one) are those of the caller; each thread enters a copy of its own.
        Ref context = Ref::steal(PyContext_Copy(context_.get()));
        if (!context || PyContext_Enter(context.get()) < 0) {
            PyErr_Clear();
            return;
        }
        count_helpers(0, 1);
        while (work()) {
        }
        count_helpers(0, -1);
        if (PyContext_Exit(context.get()) < 0) PyErr_Clear();
        wake_caller();
    }

  private:
    bool is_finished() const { return under_way_ == 0 && (left_ == 0 || stopped_); }
    bool finished() {
        const BriefLock lock(state_);
        return is_finished();
    }
    void count_helpers(int engaged, int at_work) {
        const BriefLock lock(state_);
        engaged_ += engaged;
        helpers_ += at_work;
    }

    // Executes one ready instruction; false if there is none, or no more are begun.
    bool work() {
        uint32_t i;
        {
            const BriefLock lock(state_);
            if (stopped_ || ready_.empty()) return false;
            i = take_ready();
            ++under_way_;
        }
        const int outer_depth = std::exchange(depth_here, depth_ + 1);
        const int status = guarded([&] { return step(i); }, -1);
        depth_here = outer_depth;
        Ref error = status < 0 ? take_pending() : Ref();
        bool news;
        {
            const BriefLock lock(state_);
            --under_way_;
            if (status < 0) {
                if (!stopped_) std::swap(error_, error);
                stopped_ = true;
            } else {
                complete(i);
            }
            news = is_finished() || !ready_.empty();
        }
        if (news) wake_caller();
        return true;
    }

    int step(uint32_t i) {
        const Instruction& ins = p_.instructions[i];
        const Operand* operands = &p_.operands[ins.first_operand];
        std::vector<PyObject*> arguments(ins.n_inputs + 1), results(static_cast<size_t>(ins.callee.n_out) + 1);
        for (uint32_t k = 0; k < ins.n_inputs; ++k)
            arguments[k] =
                operands[k].constant() ? p_.constants[operands[k].index()].get() : slots_[operands[k].index()];
        if (PyErr_CheckSignals() < 0) return -1;  // heard on Python's main thread alone
        if (engage() < 0) return -1;
        StepContext context;
        context.threads = threads_;
        // A helper may go on when the caller has been interrupted, and must not write into his memory then.
        const bool may_aim = targets_ && caller_ == PyThread_get_thread_ident();
        std::vector<PyObject*> wanted(may_aim ? results.size() : 0);
        if (may_aim) {
            context.in_callers_memory = targets_of(p_, i, targets_, wanted.data());
            context.targets = wanted.data();
        }
        if (ins.in_place) {
            const BriefLock lock(state_);
            for (uint32_t k = 0; k < ins.n_inputs && k < 64; ++k)
                if (!operands[k].constant() && uses_[operands[k].index()] == 1 && holds_own_memory(arguments[k]))
                    context.dying |= uint64_t{1} << k;
        }
        if (run_instruction(p_, i, graph_of(graph_.get()), arguments.data(), context, results.data()) < 0) return -1;
        StackRefs<16> unused(results.size() + ins.n_inputs);
        size_t n_unused = 0;
        const BriefLock lock(state_);  // given up before what nobody reads any more is dropped
        for (uint32_t k = 0; k < static_cast<uint32_t>(ins.callee.n_out); ++k) {
            const uint32_t slot = p_.results[ins.first_result + k];
            (uses_[slot] == 0 ? unused[n_unused++] : slots_[slot]) = results[k];
        }
        for (uint32_t k = 0; k < ins.n_inputs; ++k)
            if (!operands[k].constant() && --uses_[operands[k].index()] == 0)
                unused[n_unused++] = std::exchange(slots_[operands[k].index()], nullptr);
        return 0;
    }

    // Helpers for what is ready beyond what this thread has just taken.
    int engage() {
        int wanted;
        {
            const BriefLock lock(state_);
            if (ready_.empty() || depth_ >= kHelpersToDepth) return 0;
            wanted = std::min<int>(spare_threads_ - helpers_ - engaged_, static_cast<int>(ready_.size()));
            if (wanted <= 0) return 0;
            engaged_ += wanted;
        }
        return engage_threads(wanted, shared_from_this());
    }

    void complete(uint32_t i) {
        --left_;
        for (uint32_t s = p_.first_successor[i]; s < p_.first_successor[i + 1]; ++s)
            if (--missing_[p_.successors[s]] == 0) add_ready(p_.successors[s]);
    }

    // The earliest of the program first: its order is one that holds little memory at once.
    uint32_t take_ready() {
        std::pop_heap(ready_.begin(), ready_.end(), std::greater{});
        const uint32_t i = ready_.back();
        ready_.pop_back();
        return i;
    }
    void add_ready(uint32_t i) {
        ready_.push_back(i);
        std::push_heap(ready_.begin(), ready_.end(), std::greater{});
    }

    void wake_caller() {
        {
            const std::lock_guard lock(mutex_);
            ++events_;
        }
        changed_.notify_all();
    }

    // Until something happens on another thread, or a signal arrives.
    int wait() {
        const uint64_t seen = events_seen_;
        {
            const DetachScope detached;
            std::unique_lock lock(mutex_);
            changed_.wait_for(lock, std::chrono::milliseconds(50), [&] { return events_ != seen; });
            events_seen_ = events_;
        }
        return PyErr_CheckSignals();
    }

    const Program& p_;
    Ref owner_;  // of the program: an abandoned run outlives the call
    Ref graph_, context_, error_;
    const int threads_;
    int spare_threads_, engaged_ = 0, helpers_ = 0;
    const int depth_ = depth_here;  // of runs around this one, on whatever threads
    PyObject* const* targets_ = nullptr;  // for the calling thread alone
    unsigned long caller_ = 0;
    std::vector<PyObject*> slots_;
    std::vector<uint32_t> uses_, missing_;
    std::vector<uint32_t> ready_;  // a heap, the lowest on top
    size_t left_ = 0, under_way_ = 0;
    bool stopped_ = false;
    BriefMutex state_;
    std::mutex mutex_;
    std::condition_variable changed_;
    uint64_t events_ = 0;       // guarded by mutex_
    uint64_t events_seen_ = 0;  // the caller's own
};

}  // namespace

int execute_concurrently(const Program& p, PyObject* owner, PyObject* graph, int threads, PyObject* const* feeds,
                         PyObject* const* targets, PyObject** outputs) {
    const auto run = std::make_shared<ConcurrentRun>(p, owner, graph, threads);
    return run->run(feeds, targets, outputs);
}

}  // namespace pyop
