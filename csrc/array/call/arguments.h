// array/call/arguments.h: prepare the arguments of a call: conversion, fresh outputs, and errors for arguments that do
// not fit. See checked_call.h for argument_new, wrong_input and note_call.
#pragma once

#include "array/call/caller.h"
#include "array/contract/match.h"

namespace pyop {

// `value` as an exact ndarray in native byte order. Python numbers and lists of them, which have no dtype of
// their own, take `want` (may be null) if every value survives. `utf8`: text becomes objects (text.h). New
// reference; nullptr with whatever error NumPy raised.
PyObject* convert_argument_new(PyObject* value, PyArray_Descr* want, bool utf8);

// Whether an argument of dtype `have` is cast for this input: numbers and truths alone, as Signature.cast_to
// (python/pyop/declare/signature.py) has it. NumPy would also make text of numbers, and dates.
bool is_cast(const ArraySpec& spec, PyArray_Descr* have, NPY_CASTING casting);

// The array as what input `spec` declares, cast if the contract says it may be; else as it is. Steals the reference;
// null with the error set.
PyObject* cast_declared_steal(PyObject* array, const Contract& c, const ArraySpec& spec);

// A fresh array for output k, where its spec and the inputs determine it. New reference; nullptr with the
// error set.
PyObject* allocate_output_new(const Contract& c, Py_ssize_t k, const Bindings& b, const Caller& caller);

}  // namespace pyop
