// plan/group/ir_builder.h: translate the members of a fused group to operations on values.
#pragma once

#include <map>
#include <unordered_set>

#include "plan/group/edge_values.h"
#include "plan/group/fuse.h"
#include "plan/group/group_ir.h"
#include "plan/native_step.h"

namespace pyop {

// Which results of fused nodes somebody outside their group reads.
class OutsideReads {
  public:
    OutsideReads(const Rewrite& r, const std::vector<uint32_t>& schedule, const Fusion& fusion);
    bool contains(Edge e) const { return edges_.count(Rewrite::key(e)) != 0; }

  private:
    std::unordered_set<uint64_t> edges_;
};

class IrBuilder {
  public:
    IrBuilder(const Rewrite& r, const Fusion& fusion, const std::vector<uint32_t>& members,
              const OutsideReads& outside);

    // False if a Python number does not fit the dtype its loop wants: then the ufunc must say so.
    bool possible() const { return possible_; }
    GroupIr& ir() { return ir_; }
    Fallback& fallback() { return fallback_; }
    std::vector<Ref>& numbers() { return numbers_; }  // rank-0 arrays
    const std::vector<Edge>& externals() const { return externals_; }
    const std::vector<Edge>& outputs() const { return outputs_; }

  private:
    bool add_member(uint32_t node, const OutsideReads& outside);
    void add_reduction(uint32_t node, const OutsideReads& outside);
    void note_sources(const PyNode& node);
    void add_output(Edge e, int& output);
    void order_outputs();
    bool add_operand(const PyNode& node, const ElementwiseCall& call, size_t position, GroupIr::Operation& op);
    uint16_t number(PyObject* object, PyArray_Descr* want);
    uint16_t value_of(Edge e, bool strict = false);
    uint16_t converted(uint16_t value, PyArray_Descr* want);
    uint16_t new_value(GroupIr::Value value);

    const Rewrite& r_;
    const Fusion& fusion_;
    bool possible_ = true;
    GroupIr ir_;
    Fallback fallback_;
    std::vector<Ref> numbers_;
    std::vector<Edge> externals_, outputs_;
    struct NumberValue {
        PyObject* object;  // what the number was made of; borrowed from a node
        uint16_t value;
    };
    std::vector<NumberValue> number_values_;  // by number
    EdgeValues values_of_;
    std::map<std::pair<uint16_t, PyArray_Descr*>, uint16_t> converted_;
};

}  // namespace pyop
