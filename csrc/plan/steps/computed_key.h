// plan/steps/computed_key.h: handle indices in which integers stand that the graph computes.
#pragma once

#include <vector>

#include "plan/steps/node_call.h"
#include "plan/steps/view_reading.h"

namespace pyop {

// An object with the integers that are computed taken out: in their places stand objects that are sizes to a reader of
// indices (read_key). A run has the numbers of these sizes: the symbolic ones of the call first, then the integers.
class ComputedKey {
  public:
    explicit ComputedKey(const TreeCallObject::Layout* sizes);

    // The static object, or the container without its integers; null, without an error, if something else is computed.
    // Borrowed: it lives as long as this.
    PyObject* object(const Rewrite& r, const PyNode& node, const NodeArgument& argument);
    const TreeCallObject::Layout* sizes() const { return &all_; }
    // Of the call, if it has symbolic sizes; the integers are numbered behind them, and are these inputs.
    const TreeCallObject::Layout* own() const { return own_; }
    const std::vector<uint32_t>& inputs() const { return inputs_; }

    size_t count() const { return all_.sizes.size(); }
    bool any() const { return !inputs_.empty(); }
    // False if one of them is no such integer after all.
    bool read(PyObject* const* inputs, npy_intp* numbers) const;

  private:
    Ref object_of(const Rewrite& r, const PyNode& node, const TreeItem& item);
    Ref integer(const Rewrite& r, const PyNode& node, uint32_t input);

    const TreeCallObject::Layout* own_;  // of the call; may be null
    TreeCallObject::Layout all_;
    std::vector<uint32_t> inputs_;
    std::vector<Ref> objects_;
};

// ((start, stop, step), (integer,), …) as the index it spells (getitem_with_bounds); null, without an error, if it is
// no such.
Ref spelled_key(PyObject* key);

}  // namespace pyop
