// runtime/errors.h: declare pyop's exception classes and the few things every layer does with a pending error.
//
// Convention of the core: a function returns a new reference (or 0), and nullptr (or -1) with the Python
// error set. No C++ exception crosses a slot. Everything here needs an attached thread.
#pragma once

#include <exception>
#include <new>
#include <string>
#include <string_view>

#include "runtime/python.h"
#include "runtime/ref.h"

namespace pyop {

// PyopError(Exception); InputError and OutputError are both TypeError and ValueError, because a wrong
// array is wrong in its dtype or in its shape and callers catch either; GraphError is a RuntimeError.
struct ErrorTypes {
    PyObject* base = nullptr;
    PyObject* input = nullptr;
    PyObject* output = nullptr;
    PyObject* graph = nullptr;
};
extern ErrorTypes errors;

// Creates the classes and adds them to `module`.
int errors_init(PyObject* module);

// Puts a pending error aside and back again, for clean-up that may run Python code.
class SavedError {
  public:
    SavedError(const SavedError&) = delete;
    SavedError& operator=(const SavedError&) = delete;
#if PY_VERSION_HEX >= 0x030C0000
    SavedError() noexcept : error_(PyErr_GetRaisedException()) {}
    ~SavedError() { PyErr_SetRaisedException(error_); }

  private:
    PyObject* error_;
#else
    SavedError() noexcept { PyErr_Fetch(&type_, &value_, &traceback_); }
    ~SavedError() { PyErr_Restore(type_, value_, traceback_); }

  private:
    PyObject *type_, *value_, *traceback_;
#endif
};

// Takes the pending error, normalised, out of the thread state, and puts it back.
Ref take_pending();
void restore_pending(Ref exception);

// Raises `type(message)` with the pending error, if any, as its __cause__.
PYOP_COLD void raise_from_pending(PyObject* type, PyObject* message);

// Adds a note to the pending error, which stays the same object. Only ordinary exceptions get one:
// KeyboardInterrupt and SystemExit pass through untouched.
PYOP_COLD void note_pending(PyObject* note);

// str(pending error) as far as it can be had; the error stays pending. Empty text when it cannot.
PYOP_COLD Ref pending_text();

// Somebody else's text for a message, in which it must not speak to the terminal, or turn the direction of what
// follows: characters that cannot be printed are written as escapes.
PYOP_COLD std::string printable(std::string_view text);
PYOP_COLD std::string printable(PyObject* text);
// The name of an object's class, printable.
PYOP_COLD std::string type_name(PyObject* o);

// Runs f() for a slot: a C++ exception (memory ran out, a bug) becomes a Python error, and `failure` is returned.
// The ending of a thread by Python (forced_exit.h) is not one of these and passes.
template <typename F, typename Result>
Result guarded(F&& f, Result failure) {
    try {
        return f();
    } catch (const std::bad_alloc&) {
        PyErr_NoMemory();
    } catch (const std::exception& e) {
        PyErr_Format(PyExc_SystemError, "internal error of pyop: %s", e.what());
    }
    return failure;
}

}  // namespace pyop
