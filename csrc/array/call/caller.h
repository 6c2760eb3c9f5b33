// array/call/caller.h: name the caller in words, for error texts (Caller).
#pragma once

#include <cstdint>
#include <string>

namespace pyop {

struct Contract;

// Implemented by whatever owns a call (an op, a node of a graph). Only asked on cold paths.
class Caller {
  public:
    virtual std::string name() const = 0;              // "dot", unique in its graph
    virtual std::string description() const = 0;       // "op 'dot' (declared at f.py:3)"
    virtual std::string argument_name(int64_t) const { return {}; }
    // Argument k as it was given, before it became an array: a PyObject*, borrowed, or null where that is not known.
    virtual void* given(int64_t) const { return nullptr; }
    // What it declares, borrowed; null where it declares nothing.
    virtual const Contract* declared() const { return nullptr; }

  protected:
    ~Caller() = default;
};

}  // namespace pyop
