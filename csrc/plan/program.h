// plan/program.h: define Program, a graph lowered to a flat list of instructions over numbered slots.
//
// It is immutable (but for its number in a profile), so any number of threads may execute it at once, each with its own
// frame of slots. The functions and contracts it points to are owned by the nodes of the graph, which the plan keeps
// alive.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "array/call/checked_call.h"
#include "graph/passes/rewrite.h"
#include "plan/native_step.h"
#include "profile/events.h"

namespace pyop {

class StraightTape;

// Where an instruction finds an argument: a slot of the frame, or a constant of the program.
struct Operand {
    static constexpr uint32_t kConstant = 1u << 31;
    static constexpr uint32_t kLastUse = 1u << 30;  // the slot is released after the instruction
    static constexpr uint32_t kAnew = 1u << 29;  // lent to functions in a view that none of them can spoil for others
    static constexpr uint32_t kIndex = kAnew - 1;

    uint32_t code;
    bool constant() const { return code & kConstant; }
    bool last_use() const { return code & kLastUse; }
    bool anew() const { return code & kAnew; }
    uint32_t index() const { return code & kIndex; }
};

inline constexpr uint32_t kNoSlot = UINT32_MAX;  // a result nobody reads

struct Instruction {
    Callee callee;
    uint32_t node;  // of the graph, for error texts
    uint32_t first_operand;  // into Program::operands
    uint32_t n_inputs;
    uint32_t first_result;  // into Program::results
    bool plain;  // may take checked_call_plain
    bool mutates;  // some input is written to
    bool in_place = false;  // a native step that may write over inputs nobody reads any more
    bool takes = false;  // a native step that may keep inputs nobody reads any more
    bool anew = false;  // some operand is
    bool anew_constant = false;  // some constant is
    bool releases = false;  // some operand is read for the last time
    bool leaves = false;  // its first result is an output of the plan and nothing else
    const NativeStep* native = nullptr;  // the callee then only tells the number of results
    const StraightTape* tape = nullptr;  // of this one and those behind it; may be null
    uint32_t first_part_target = 0, n_part_targets = 0;  // into Program::part_targets
};

// A result that a later instruction writes into part of an array, where it may be computed at once.
struct PartTarget {
    uint32_t result;  // of the instruction
    uint32_t instruction;  // that writes
    uint32_t base;  // the slot of the array
};

// An argument of the plan: what it must fit, and where it goes.
struct Feed {
    PyArray_Descr* dtype = nullptr;  // borrowed from the graph's spec table; null: any
    int ndim = -1;
    char text = 0;  // 'U' or 'S': str or bytes of any length, where no dtype says it
    std::vector<npy_intp> dims;  // >= 0 a size, -1 anything, -2 - k the k-th symbolic size
    uint32_t slot = kNoSlot;  // kNoSlot: nothing reads it
    uint32_t lent_slot = kNoSlot;  // a read-only view for the functions it is lent to
    bool lent_anew = false;  // several functions are lent it: in one thread, the slot behind has the argument itself
    Ref name;
};

// A size of a feed that is an expression of symbolic sizes ("n+1").
struct FeedExpr {
    size_t feed;
    int dim;
    Ref expr;  // a Dim
};

// A program that is one native step on feeds and constants.
struct DirectCall {
    const NativeStep* step;
    std::vector<Operand> inputs;  // not constant: the index of a feed
};

// An argument that the function writes into: the output behind its results that it holds in the end.
struct WriteBack {
    uint32_t feed, output;
    // A write by slices, of a node, that is made into the argument itself then (plan/passes/last_stores.h): `output` is
    // what it writes, and its inputs are the feed, that, and constants.
    const NativeStep* store = nullptr;
    uint32_t node = 0;
    std::vector<Operand> inputs;
    bool by_last = false;  // the last instruction may compute the output where it goes
};

struct Program {
    std::vector<Instruction> instructions;
    std::vector<Operand> operands;
    std::vector<std::unique_ptr<NativeStep>> steps;
    std::vector<std::shared_ptr<const StraightTape>> tapes;  // for execution by one thread
    std::vector<uint32_t> results;
    std::vector<PartTarget> part_targets;  // for execution by one thread
    std::vector<Ref> constants;
    std::vector<Feed> feeds;
    std::vector<Ref> feed_symbols;  // the symbolic sizes by number: Dims that are plain names
    std::vector<FeedExpr> feed_exprs;
    std::vector<Operand> outputs;  // one a fetch, and one a write
    std::vector<WriteBack> writes;
    bool writes_at_once = false;  // some write is `by_last`
    bool effects = false;  // some instruction is stateful
    size_t n_results() const { return outputs.size() - writes.size(); }
    uint32_t n_slots = 0;
    std::unique_ptr<DirectCall> direct;  // null: it is more than that
    // By result of an instruction: the output of the plan that it is and that nothing else reads, or -1.
    std::vector<int32_t> output_of_result;

    // Outputs that show memory of one value only because equal nodes are one: by that value, each with whose it is as
    // the graph was written. Those of different owners get memory of their own.
    struct SharedOutput {
        uint32_t output;
        uint64_t owner;
    };
    std::vector<std::vector<SharedOutput>> shared_outputs;

    // For execution by several threads (then every value has a slot of its own): how often each slot is
    // read, and the order that data and effects impose on the instructions.
    bool concurrent = false;
    std::vector<uint32_t> slot_uses;
    std::vector<uint32_t> n_predecessors;
    std::vector<uint32_t> first_successor;  // into successors; one more than instructions
    std::vector<uint32_t> successors;

    PyObject* plan = nullptr;  // borrowed: the Plan this belongs to
    mutable SourceId profile_id;

    // What became of the graph's nodes.
    size_t n_nodes = 0, merged = 0, folded = 0, pruned = 0, native = 0, groups = 0;

    int traverse(visitproc visit, void* arg) const {
        for (const Ref& constant : constants) Py_VISIT(constant.get());
        return 0;
    }
};

// The value whose memory a value shows: its own, unless it was made by views. `merged`: where equal nodes are one.
Edge owner_of(const Rewrite& r, Edge e, bool merged);

// Runs the passes and lays the result out. 0, or -1 with the error set (folding runs user functions).
int lower(PyObject* graph, const Request& request, bool concurrent, Program& program);

}  // namespace pyop
