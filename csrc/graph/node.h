// graph/node.h: define Node and its kinds: one application of an operation inside a graph.
//
// A Graph owns its nodes and only ever appends; a node never changes after it was added (but for `absorb`), so an index
// is a lasting name for it and plans may point into it. What a node owns of Python it owns through SharedRef,
// since the last owner of a graph's nodes may be a C++ thread (runtime/shared_ref.h).
#pragma once

#include <cstdint>
#include <memory>

#include "array/call/call_form.h"
#include "array/contract/contract.h"
#include "graph/small_array.h"
#include "runtime/shared_ref.h"

namespace pyop {

enum class NodeKind : uint8_t { Input, Constant, Py };

// Output `output` of node `node`.
struct Edge {
    uint32_t node;
    uint32_t output;

    bool operator==(const Edge&) const = default;
};

class Node {
  public:
    virtual ~Node() = default;
    Node(const Node&) = delete;
    Node& operator=(const Node&) = delete;

    NodeKind kind() const { return kind_; }
    bool stateful() const { return stateful_; }
    // It has become part of a loop, and has effects there.
    void absorb() { stateful_ = false; }
    std::span<const Edge> inputs() const { return inputs_.span(); }
    // One id of the graph's spec table for each output.
    std::span<const uint32_t> output_specs() const { return output_specs_.span(); }
    uint32_t n_outputs() const { return output_specs_.size(); }

    // For the graph's tp_traverse: the objects that only this node owns.
    virtual int visit(visitproc, void*) const { return 0; }
    // For its tp_clear: lets go of them. The node stays, empty, so that indices stay valid.
    virtual void drop() {}

    // Set by Graph::add: the name (text number `name` of the graph, plus an ordinal) and the creation site.
    uint32_t name = 0;
    uint32_t ordinal = 0;
    uint32_t site = 0;

  protected:
    Node(NodeKind kind, std::span<const Edge> inputs, std::span<const uint32_t> output_specs, bool stateful)
        : kind_(kind), stateful_(stateful), inputs_(inputs), output_specs_(output_specs) {}

  private:
    NodeKind kind_;
    bool stateful_;
    SmallArray<Edge, 2> inputs_;
    SmallArray<uint32_t, 2> output_specs_;
};

class InputNode final : public Node {
  public:
    explicit InputNode(uint32_t spec) : Node(NodeKind::Input, {}, {&spec, 1}, false) {}
};

class ConstantNode final : public Node {
  public:
    // `array` is read-only and nobody else's to change.
    ConstantNode(SharedRef array, uint32_t spec)
        : Node(NodeKind::Constant, {}, {&spec, 1}, false), array_(std::move(array)) {}
    PyObject* array() const { return array_.get(); }
    int visit(visitproc visitor, void* arg) const override { return array_.visit(visitor, arg); }
    void drop() override { array_.reset(); }

  private:
    SharedRef array_;
};

// Owns a Python callable.
class PyNode final : public Node {
  public:
    struct Call {
        SharedRef fn;
        SharedRef contract;  // empty: undeclared
        std::unique_ptr<CallForm> form;  // null: the inputs are the positional arguments
        bool lends = true;  // arguments go out read-only
        // fn is a ufunc that was written as an operator between NumPy's scalars; called is that (scalar_operator.h).
        bool of_scalars = false;
    };

    PyNode(Call call, std::span<const Edge> inputs, std::span<const uint32_t> output_specs, bool stateful)
        : Node(NodeKind::Py, inputs, output_specs, stateful),
          fn_(std::move(call.fn)),
          contract_(std::move(call.contract)),
          form_(std::move(call.form)),
          lends_(call.lends),
          of_scalars_(call.of_scalars) {}
    // A node of no graph that just owns `fn`.
    explicit PyNode(SharedRef fn) : Node(NodeKind::Py, {}, {}, true), fn_(std::move(fn)) {}

    PyObject* fn() const { return fn_.get(); }
    const Contract* contract() const { return reinterpret_cast<const Contract*>(contract_.get()); }
    const CallForm* form() const { return form_.get(); }
    bool lends() const { return lends_; }
    bool of_scalars() const { return of_scalars_; }
    // What is called. Borrowed.
    PyObject* callee() const { return PYOP_UNLIKELY(of_scalars_) ? scalar_callee() : fn_.get(); }

    int visit(visitproc visitor, void* arg) const override;
    void drop() override;

  private:
    SharedRef fn_;
    SharedRef contract_;
    std::unique_ptr<CallForm> form_;
    bool lends_ = true;
    bool of_scalars_ = false;

    PyObject* scalar_callee() const;
};

}  // namespace pyop
