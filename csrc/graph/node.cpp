// graph/node.cpp: visit what a node refers to, for the cycle collector.
#include "graph/node.h"

#include "array/protocol/scalar_operator.h"

namespace pyop {

int PyNode::visit(visitproc visitor, void* arg) const {
    if (const int r = fn_.visit(visitor, arg)) return r;
    if (const int r = contract_.visit(visitor, arg)) return r;
    return form_ ? form_->statics.visit(visitor, arg) : 0;
}

PyObject* PyNode::scalar_callee() const {
    PyObject* const found = scalar_operator(fn_.get());
    return found ? found : fn_.get();  // dropped
}

void PyNode::drop() {
    // Not the form: its objects are constants, and its order describes the node.
    fn_.reset();
    contract_.reset();
}

}  // namespace pyop
