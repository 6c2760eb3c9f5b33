// plan/group/group_ir.h: represent a fused group while it is being compiled (GroupIr).
//
//     IrBuilder (nodes → operations on values)  →  combine (superinstructions)  →  LoopGroup (values → streams)
//
// A value is written once: an array from outside, a number, or a result. Operations stand in an order that computes
// every value before it is read.
#pragma once

#include <memory>
#include <vector>

#include "plan/group/fuse.h"

namespace pyop {

struct GroupIr {
    static constexpr int kNoOutput = -1;

    struct Value {
        enum Kind : uint8_t { External, Number, Result } kind;
        uint16_t index;               // of the external or number
        PyArray_Descr* dtype;         // borrowed; lives for ever
        bool strict = false;          // an external that NumPy's loops read: with its own strides
        uint32_t reads = 0;           // by operations of the group
        int output = kNoOutput;       // which result of the step it is
        int producer = -1;            // operation
        bool single = false;          // a number, or an external of no dimension
    };
    static constexpr size_t kMaxOperands = 10;
    using Indices = FixedVector<uint16_t, kMaxOperands>;

    // May be copied as bytes, for that is done several times to each.
    struct Operation {
        Kernel kernel = nullptr;      // own kernel, or the loop of
        const ElementwiseCall* call = nullptr;  // borrowed from Fusion; null: a conversion that a member needs
        pyop::Operation does = pyop::Operation::None;  // if it may be part of a superinstruction
        Element element = Element::None;
        bool quiet = false;                            // its kernel leaves the floating-point flags alone
        Indices operands;                              // inputs, then outputs
        uint16_t n_inputs = 0;
        uint16_t numbers = 0;                          // operands, by bit, of which the kernel reads one element
        uint16_t member = 0;
        Indices does_members;                          // what it computes; empty: that conversion

        const StridedLoop* loop() const { return call ? call->loop.get() : nullptr; }
        bool is_cast() const { return !call || call->name == "cast"; }
    };
    static_assert(std::is_trivially_copyable_v<Operation>);

    // The rows of a value reduced to an element each, block by block.
    struct Reduction {
        std::shared_ptr<const RowsReduced> what;
        uint16_t value;
        uint16_t member;
        int output;
    };

    std::vector<Value> values;
    std::vector<Operation> operations;
    std::vector<Reduction> reductions;
    size_t n_externals = 0, n_outputs = 0;
};

// Lets one kernel do what two or three operations did, where nobody else reads what lies between.
void combine(GroupIr& ir);

}  // namespace pyop
