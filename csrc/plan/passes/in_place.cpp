// plan/passes/in_place.cpp: mark the instructions whose step may write over an input.
#include "plan/passes/in_place.h"

#include <algorithm>

namespace pyop {

void mark_in_place(Program& p, bool enabled) {
    for (Instruction& ins : p.instructions) {
        if (!ins.in_place) continue;
        const Operand* begin = p.operands.data() + ins.first_operand;
        const Operand* end = begin + ins.n_inputs;
        const auto reads_once = [&](const Operand* o) {
            return std::none_of(begin, o,
                                [&](Operand other) { return other.index() == o->index() && !other.constant(); });
        };
        const bool parts = ins.native && ins.native->parts().size() > 1;  // of which one runs, and looks for itself
        bool last = false, once = true;
        for (const Operand* o = begin; o != end; ++o) {
            if (o->constant()) continue;
            last = last || o->last_use() || p.concurrent;  // by several threads, the run itself counts the reads
            once = once && (parts || reads_once(o));
        }
        ins.in_place = enabled && last && once;
    }
}

}  // namespace pyop
