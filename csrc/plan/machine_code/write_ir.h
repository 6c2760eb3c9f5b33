// plan/machine_code/write_ir.h: write a tape as a function in LLVM's textual IR.
//
//     i32 @tape(ptr cells, ptr journal, ptr until_look, ptr table)
//
// It does what interpret() does (plan/tape/tape.h) and returns a TapeEnd. The text has no addresses in it, so that
// equal tapes have equal text: what it calls is in a table. Without a journal nothing is noted, and whoever calls puts
// arrays back himself.
#pragma once

#include <string>
#include <vector>

#include "plan/tape/tape.h"

namespace pyop {

struct TapeIr {
    std::string text;          // empty: there is none
    std::string why_not;       // in words
    std::vector<const void*> table;
};

// `kept`: the cells that are read behind a run, or by the next one.
TapeIr write_ir(const Tape& tape, const std::vector<uint16_t>& kept);

}  // namespace pyop
