// array/protocol/containers.h: describe containers of other libraries, and what they would lose as plain arrays.
//
// A pandas Series aligns by its index, a masked array leaves elements out, a torch tensor may have a gradient. NumPy
// makes a plain array of each of them without a word. Where the user has declared an array, that is what is meant, but
// for masks and gradients; where a function's own operators would have met the container, it is refused.
#pragma once

#include "array/numpy.h"

namespace pyop {

enum class Rules {
    None,  // memory, and nothing else: plain arrays, memmaps, numbers, lists, what only offers to become an array
    Sequences,  // of Python's sequences: array.array, bytearray, memoryview, whose + and == are not NumPy's
    Own,  // operators, methods or hooks of its own: pandas, xarray, torch, JAX, sparse, other subclasses of ndarray
    Masked,  // some of its elements are masked
    Recorded,  // it requires a gradient of another library
    Tangent,  // it has a tangent of torch's forward-mode differentiation
};

// Cold but for what is no container. Runs Python code of the object's class; errors in that are dropped.
Rules rules_of(PyObject* o);

// Whether NumPy's arithmetic with it raises a TypeError, as Python does: a function may catch that.
inline bool has_no_arithmetic(PyObject* o) { return o == Py_None || PyUnicode_Check(o) || PyBytes_Check(o); }

// Whether an operator is left to the other object where `check_no_rules` has let it pass: it joins NumPy's protocols
// (`__array_ufunc__ = None`), or stands in for something in a graph, as its class is pyop's own.
bool has_its_say(PyObject* o);

// For where an array is declared: 0, or -1 with a TypeError if a mask or a gradient would be lost, also that of an item
// of a list; with a ValueError if a list contains itself, of which NumPy would make arrays without end.
int check_nothing_lost(PyObject* o);

// Whether tensors of torch may have tangents now: a dual level is open.
bool in_dual_level();

// What is lost and what to write instead: "a pandas Series ...: pass x.to_numpy()". New reference or null.
PyObject* rules_text_new(PyObject* o, Rules rules);

// For where the object meets an array in an operator or a function: 0, or -1 with a noted TypeError if it has rules of
// its own. `what` begins the text ("an operand of np.add").
int check_no_rules(PyObject* o, const char* what);

}  // namespace pyop
