// plan/machine_code/tape_code.h: hold the machine code of a tape, from the request for it to its end (TapeCode, a
// Python object).
//
//     cold ──► waiting ──► ready        python/pyop/machine_code/ makes it of `ir`, on a thread of its own
//       └─────────┴──────► refused      and says why it does not
//
// The tape owns it, and it owns the code: whatever keeps the tape alive during a run keeps the code. A function is
// installed once and never replaced. Threads: attached only.
#pragma once

#include <atomic>  // std::atomic
#include <string>

#include "plan/machine_code/write_ir.h"
#include "runtime/ref.h"

namespace pyop {

using TapeFunction = int32_t(TapeCell* cells, TapeJournal* journal, unsigned* until_look, const void* const* table);

// When machine code is made: never; for a tape that has done some work; for each, before it runs.
enum class MachineCodePolicy : uint8_t { Off, Hot, Now };

struct TapeCode {
    enum State : uint8_t { Cold, Waiting, Ready, Refused };
    std::atomic<State> state = Cold;  // Ready and Refused tell of what is below
    TapeIr ir;
    std::string why_not;  // if it is refused
    Ref owner;            // of the memory of `function`
    TapeFunction* function = nullptr;
    size_t n_operations = 0;
};

// Of a tape. Null with an error set.
Ref tape_code_new(TapeIr ir, size_t n_operations);
TapeCode& tape_code_of(PyObject* object);
// Asks Python for machine code; `now`: and waits for it. Sets no error: what goes wrong is a refusal.
void want_machine_code(PyObject* code, bool now);

// By its name. False: there is none of that name.
bool read_policy(const char* name, MachineCodePolicy& policy);
// PYOP_MACHINE_CODE.
MachineCodePolicy default_policy();

int tape_code_init(PyObject* module);

}  // namespace pyop
