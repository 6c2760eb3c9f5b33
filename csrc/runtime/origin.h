// runtime/origin.h: find where in the user's source something was created.
#pragma once

#include "runtime/python.h"
#include "runtime/ref.h"

namespace pyop {

// A code object and an instruction in it. The line is looked up only when somebody asks, since capturing
// happens for every node and asking only for errors.
struct Origin {
    PyCodeObject* code = nullptr;  // borrowed or owned: the holder's business
    int instruction = 0;
    PyObject* text = nullptr;  // instead of them, of what another process or a copy has made: an interned str, alike

    bool operator==(const Origin&) const = default;
};

// The innermost running frame that is not pyop's own code. The code is borrowed from the frame: take a
// reference to keep it. Empty when no Python frame runs.
Origin current_origin();

// "file.py:12", or "an unknown place".
Ref origin_text(const Origin& origin);

}  // namespace pyop
