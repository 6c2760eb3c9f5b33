// plan/native_step.h: compute a part of a program in C++ without calling Python (NativeStep).
//
// Whatever the arrays of one run turn out to be, a step may answer "not this way": then the functions of its nodes
// are called one by one, with the results, warnings and errors they have anyway. So a step never needs to handle what
// is rare, and a wrong guess at compile time costs time, not correctness.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "graph/graph.h"

namespace pyop {

// The fallback of a step: the nodes it stands for, its members, in the order of the schedule, and how their calls hang
// together.
struct Fallback {
    struct Source {
        bool external;    // input `index` of the step; else result `output` of member `index`
        uint32_t index;
        uint32_t output = 0;
    };
    std::vector<uint32_t> nodes;
    std::vector<std::vector<Source>> sources;            // by member, in the order of the node's inputs
    std::vector<std::pair<uint32_t, uint32_t>> outputs;  // by result of the step: member and its output

    // A step of one node whose inputs and outputs are the step's.
    static Fallback of_node(const Graph& g, uint32_t node);

    // The plain way: calls the functions. 0, or -1 with the error set and nothing stored.
    int call(const Graph& g, PyObject* const* inputs, PyObject** results) const;
};

// What a step may use in one run, beside its inputs.
struct StepContext {
    uint64_t dying = 0;                   // inputs that nobody else holds and nobody reads later
    PyObject* const* targets = nullptr;   // by result: an array of the caller to write into if it fits, or null;
                                         // or part of an array, where the step says so
    int threads = 1;
    bool in_callers_memory = false;  // some target is the caller's, to be written once and for all: no stop half-way
    PyObject** const* holders = nullptr;  // by input: where a dying one may be taken from, by a step that `takes()`
};

class HotTape;
class LoopGroup;
class TapeBuilder;
struct TapeValue;

struct Program;

class NativeStep {
  public:
    NativeStep() = default;
    explicit NativeStep(Fallback fallback) : fallback_(std::move(fallback)) {}
    virtual ~NativeStep() = default;
    NativeStep(const NativeStep&) = delete;
    NativeStep& operator=(const NativeStep&) = delete;

    const Fallback& fallback() const { return fallback_; }

    // `inputs` are borrowed and may be anything; `results` receives new references. Attached threads; reentrant.
    // 1: done; 0: not this way, nothing stored and no error set; -1: error set, nothing stored.
    virtual int run(PyObject* const* inputs, PyObject** results, const StepContext& context) const = 0;

    // What is done where that is not this way. 0, or -1 with the error set and nothing stored.
    virtual int call(const Graph& g, PyObject* const* inputs, PyObject** results) const {
        return fallback_.call(g, inputs, results);
    }

    // Writes down what `run` does for single numbers and elements of arrays (plan/tape/), if it is that. False: it is
    // not, and what was written down is to be thrown away.
    virtual bool record(TapeBuilder& tape, const TapeValue* inputs, TapeValue* results) const;

    // For Plan.explain(): what runs for member `i`, in a few words ("kernel multiply+add of float64").
    virtual std::string describe(size_t member) const = 0;
    // The input of which it writes a part, -1 if it writes none: into the memory of that, where it is dying.
    virtual int written_input() const { return -1; }
    // The input that it writes there, as it is; -1 if it does another thing.
    virtual int stored_input() const { return -1; }
    // That part, in the memory of `inputs[written_input()]`, which the caller must keep; the input that is written is
    // not looked at. New reference, or null: with the error set, or not if it is not worth it or not to be told.
    virtual PyObject* part_new(PyObject* const*) const { return nullptr; }
    // Whether `run` would write that part in place, whole, if the array that is written were dying.
    virtual bool would_write(PyObject* const*) const { return false; }
    // Whether its results show memory of what it is given.
    virtual bool shows_inputs() const { return false; }
    // Itself, if it is a group of elementwise operations.
    virtual const LoopGroup* as_group() const { return nullptr; }
    // Whether it takes parts of arrays as StepContext::targets: it looks whether they lie where it reads.
    virtual bool takes_part_targets() const { return false; }
    // The programs that it runs, each with how many of its feeds behind the first are its own, to be written into.
    virtual std::vector<std::pair<const Program*, size_t>> parts() const { return {}; }
    // What it runs as a tape; null: nothing.
    virtual const HotTape* hot() const { return nullptr; }
    // Whether it writes over an input that is dying (StepContext).
    virtual bool may_overwrite() const { return false; }
    // Whether it keeps inputs that are dying, and empties where they were held.
    virtual bool takes() const { return false; }
    // Bytes of scratch one run uses at most.
    virtual size_t scratch_bytes() const { return 0; }

  protected:
    Fallback fallback_;
};

}  // namespace pyop
