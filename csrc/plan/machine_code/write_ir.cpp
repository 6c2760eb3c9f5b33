// plan/machine_code/write_ir.cpp: write the instructions of a tape, one after the other.
#include "plan/machine_code/write_ir.h"

#include <algorithm>
#include <set>

#include "array/loop/fp_flags.h"
#include "plan/machine_code/ir_arithmetic.h"
#include "plan/machine_code/ir_cells.h"

namespace pyop {

namespace {

void raise_overflow() { raise_fp_errors(FE_OVERFLOW); }
void grow_journal(TapeJournal* journal) { journal->grow(); }
bool call_one_loop(const TapeCall* call, TapeCell* cells) { return call_for_one(*call, cells); }

// The functions that any tape may call, at the beginning of its table.
struct TableEntry {
    const char* name;
    const void* address;
};
const TableEntry kTableEntries[] = {
    {"look", reinterpret_cast<const void*>(look_around)},
    {"raise_overflow", reinterpret_cast<const void*>(raise_overflow)},
    {"grow", reinterpret_cast<const void*>(grow_journal)},
    {"call_loop", reinterpret_cast<const void*>(call_one_loop)},
};

// TapeJournal::note.
std::string note_of(unsigned bytes) {
    const std::string type = "i" + std::to_string(8 * bytes), n = std::to_string(bytes);
    const std::string top = std::to_string(TapeJournal::offset_of_top()),
                      limit = std::to_string(TapeJournal::offset_of_limit());
    std::string text = "define internal void @note" + n +
                       "(ptr %journal, ptr %grow, ptr %at) alwaysinline strictfp {\n" +
                       "  %none = icmp eq ptr %journal, null\n  br i1 %none, label %end, label %look\n" +
                       "look:\n  %p = getelementptr i8, ptr %journal, i64 " + top +
                       "\n  %q = getelementptr i8, ptr %journal, i64 " + limit +
                       "\n  %first = load ptr, ptr %p\n  %limit = load ptr, ptr %q\n"
                       "  %full = icmp eq ptr %first, %limit\n  br i1 %full, label %more, label %write, !prof !0\n"
                       "more:\n  call void %grow(ptr %journal) strictfp\n  br label %write\n"
                       "write:\n  %top = load ptr, ptr %p\n  %old = load " +
                       type + ", ptr %at, align 1\n";
    text += bytes == 8 ? "  %wide = add i64 %old, 0\n" : "  %wide = zext " + type + " %old to i64\n";
    return text +
           "  store ptr %at, ptr %top\n  %r = getelementptr i64, ptr %top, i64 1\n  store i64 %wide, ptr %r\n"
           "  %s = getelementptr i64, ptr %top, i64 2\n  store i64 " +
           n +
           ", ptr %s\n  %next = getelementptr i64, ptr %top, i64 3\n  store ptr %next, ptr %p\n  br label %end\n"
           "end:\n  ret void\n}\n";
}

std::string declarations() {
    std::string text;
    const std::string both = ", metadata, metadata)\n", one = ", metadata)\n";
    for (const auto& [type, letters] : {std::pair<std::string, std::string>{"double", "f64"}, {"float", "f32"}}) {
        const std::string constrained = "declare " + type + " @llvm.experimental.constrained.";
        for (const char* op : {"fsub", "fdiv"})
            text += constrained + op + "." + letters + "(" + type + ", " + type + both;
        text += constrained + "sqrt." + letters + "(" + type + both;
        text += "declare i1 @llvm.experimental.constrained.fcmp." + letters + "(" + type + ", " + type + both;
        text += "declare " + type + " @llvm.fabs." + letters + "(" + type + ")\n";
    }
    text += "declare double @llvm.experimental.constrained.fpext.f64.f32(float" + one;
    text += "declare float @llvm.experimental.constrained.fptrunc.f32.f64(double" + both;
    for (const char* op : {"add", "sub", "mul"})
        for (const char* sign : {"s", "u"})
            for (const char* type : {"i8", "i16", "i32", "i64"})
                text += "declare { " + std::string(type) + ", i1 } @llvm." + sign + op + ".with.overflow." + type +
                        "(" + type + ", " + type + ")\n";
    for (const unsigned bytes : {1u, 2u, 4u, 8u}) text += note_of(bytes);
    return text;
}

size_t bytes_moved(TapeOp op) {
    switch (op) {
        case TapeOp::Load1:
        case TapeOp::Fetch1:
        case TapeOp::Put1:
            return 1;
        case TapeOp::Load2:
        case TapeOp::Fetch2:
        case TapeOp::Put2:
            return 2;
        case TapeOp::Load4:
        case TapeOp::Fetch4:
        case TapeOp::Put4:
            return 4;
        default:
            return 8;
    }
}

class IrWriter {
  public:
    IrWriter(const Tape& tape, const std::vector<uint16_t>& kept, TapeIr& made)
        : tape_(tape), kept_(kept), made_(made), cells_(tape, text_, unknown_), arithmetic_(text_, cells_) {}

    void write() {
        if (unknown_ || !tape_.addresses.empty() || !tape_.ahead.empty()) {
            made_.why_not = "it computes with short arrays";
            return;
        }
        for (const TapeInstruction& i : tape_.code)
            if (const size_t to = target(i); to != SIZE_MAX) targets_.insert(to);
        for (const TableEntry& entry : kTableEntries) table(entry.address, entry.name);
        text_.line_at_entry("%countdown = alloca i32");
        text_.line_at_entry("%given = load i32, ptr %until_look");
        text_.line_at_entry("store i32 %given, ptr %countdown");
        for (at_ = 0; at_ < tape_.code.size(); ++at_) {
            if (targets_.contains(at_)) {
                if (!ended_) text_.jump(place(at_));
                text_.block(place(at_));
                ended_ = false;
            }
            // What stands behind a jump and is no target is never reached.
            if (!ended_) instruction(tape_.code[at_]);
        }
        if (!ended_) text_.line("unreachable");
        end("done", TapeEnd::Done, true);
        end("stopped", TapeEnd::Stopped, true);
        end("leave", TapeEnd::Left, false);
        end("failed", TapeEnd::Failed, false);
        // "uwtable": what it calls may throw, and a thread may end in it when Python shuts down.
        made_.text = declarations() +
                     "define i32 @tape(ptr %cells, ptr %journal, ptr %until_look, ptr %table) strictfp uwtable {\n" +
                     text_.text() + "}\n!0 = !{!\"branch_weights\", i32 1, i32 4096}\n";
    }

  private:
    static size_t target(const TapeInstruction& i) {
        switch (i.op) {
            case TapeOp::Jump:
            case TapeOp::JumpIfFalse:
                return static_cast<size_t>(i.number);
            case TapeOp::Repeat:
                return static_cast<size_t>(i.more.f);
            case TapeOp::Next:
                return 0;
            default:
                return SIZE_MAX;
        }
    }
    static std::string place(size_t instruction) { return "i" + std::to_string(instruction); }

    // What is called, by its place in the table. `name`: where it is more than a number.
    std::string table(const void* address, const std::string& name = "") {
        const std::string at =
            text_.define_at_entry("getelementptr ptr, ptr %table, i64 " + std::to_string(made_.table.size()));
        made_.table.push_back(address);
        if (name.empty()) return text_.define_at_entry("load ptr, ptr " + at);
        text_.line_at_entry("%" + name + " = load ptr, ptr " + at);
        return "%" + name;
    }

    void end(const char* label, TapeEnd how, bool stores) {
        text_.block(label);
        for (const uint16_t cell : kept_)
            if (stores) cells_.store_back(cell);
        text_.line("store i32 " + text_.define("load i32, ptr %countdown") + ", ptr %until_look");
        text_.line("ret i32 " + std::to_string(static_cast<int>(how)));
    }

    std::string position(uint16_t cell, int64_t by) {
        const std::string from = cells_.read(cell, ir::I64);
        return by == 0 ? from : arithmetic_.integer("add", from, std::to_string(by));
    }
    std::string moved(const std::string& pointer, const std::string& bytes) {
        return text_.define("getelementptr i8, ptr " + pointer + ", i64 " + bytes);
    }
    // The element of an array of one axis, or of two.
    std::string element(const TapeInstruction& i) {
        return moved(cells_.pointer(i.b),
                     arithmetic_.step_along(position(i.c, i.number), static_cast<uint16_t>(i.b + 1)));
    }
    std::string element_at_2(const TapeInstruction& i) {
        const std::string row = arithmetic_.step_along(position(i.c, i.more.e), static_cast<uint16_t>(i.b + 1));
        const std::string column = arithmetic_.step_along(position(i.more.d, i.more.f), static_cast<uint16_t>(i.b + 3));
        return moved(moved(cells_.pointer(i.b), row), column);
    }
    void load(const TapeInstruction& i, const std::string& from) {
        const IrType& type = cells_.moved_as(i.a, bytes_moved(i.op));
        cells_.write(i.a, type, text_.define("load " + std::string(type.name) + ", ptr " + from + ", align 1"));
    }
    void store(const TapeInstruction& i, const std::string& to) {
        const size_t bytes = bytes_moved(i.op);
        const IrType& type = cells_.moved_as(i.a, bytes);
        text_.line("call void @note" + std::to_string(bytes) + "(ptr %journal, ptr %grow, ptr " + to + ") strictfp");
        text_.line("store " + std::string(type.name) + " " + cells_.read(i.a, type) + ", ptr " + to + ", align 1");
    }
    // Two cells, or an element of that size.
    void move_16(const std::string& to, const std::string& from) {
        const std::string low = text_.define("load i64, ptr " + from + ", align 1");
        const std::string high = text_.define("load i64, ptr " + moved(from, "8") + ", align 1");
        text_.line("store i64 " + low + ", ptr " + to + ", align 1");
        text_.line("store i64 " + high + ", ptr " + moved(to, "8") + ", align 1");
    }

    void leave_unless_true(const std::string& call) { arithmetic_.leave_if(text_.define("xor i1 " + call + ", true")); }

    void compute(const TapeInstruction& i) {
        const std::string function = table(reinterpret_cast<const void*>(i.call->function)), self = table(i.call->self);
        leave_unless_true(text_.define("call zeroext i1 " + function + "(ptr " + self + ", ptr " + cells_.address(i.b) +
                                       ", ptr " + cells_.address(i.c) + ", ptr " + cells_.address(i.a) + ") strictfp"));
    }

    void trips(const TapeInstruction& i) {
        const std::string first = cells_.read(i.b, ir::I64), end = cells_.read(i.c, ir::I64);
        const int64_t step = i.number;
        const std::string &from = step > 0 ? first : end, &to = step > 0 ? end : first;
        const uint64_t by = step > 0 ? static_cast<uint64_t>(step) : 0 - static_cast<uint64_t>(step);
        const std::string any = text_.define("icmp slt i64 " + from + ", " + to);
        const std::string distance = arithmetic_.integer("sub", arithmetic_.integer("sub", to, from), "1");
        const std::string n =
            arithmetic_.integer("add", arithmetic_.integer("udiv", distance, std::to_string(by)), "1");
        cells_.write(i.a, ir::I64, text_.define("select i1 " + any + ", i64 " + n + ", i64 0"));
        cells_.write(static_cast<uint16_t>(i.a + 1), ir::Bool, text_.define("zext i1 " + any + " to i8"));
    }

    // Counts, and begins anew as long as there is something left: signals are looked at on the way. What is counted
    // never overflows before the last iteration is over, and behind that nobody reads it.
    void again(const TapeInstruction& i, const std::string& by, const std::string& head, const std::string& behind) {
        const std::string step = text_.label_new("again"), look = text_.label_new("look");
        cells_.write(i.a, ir::I64, arithmetic_.integer("add nsw", cells_.read(i.a, ir::I64), by));
        const std::string left = arithmetic_.integer("sub", cells_.read(i.b, ir::I64), "1");
        cells_.write(i.b, ir::I64, left);
        text_.branch(text_.define("icmp eq i64 " + left + ", 0"), behind, step);
        text_.block(step);
        const std::string count = text_.define("load i32, ptr %countdown");
        const std::string next = text_.define("sub i32 " + count + ", 1");
        text_.line("store i32 " + next + ", ptr %countdown");
        text_.branch(text_.define("icmp eq i32 " + next + ", 0"), look, head, ", !prof !0");
        text_.block(look);
        text_.line("store i32 " + std::to_string(kUntilLook) + ", ptr %countdown");
        const std::string status = text_.define("call i32 %look() strictfp");
        text_.branch(text_.define("icmp slt i32 " + status + ", 0"), "failed", head);
    }

    void instruction(const TapeInstruction& i) {
        if (arithmetic_.write(i)) return;
        switch (i.op) {
            case TapeOp::Move: {
                const IrType& type = cells_.moved_as(i.a);
                return cells_.write(i.a, type, cells_.read(i.b, type));
            }
            case TapeOp::Move16:
                return move_16(cells_.address(i.a), cells_.address(i.b));
            case TapeOp::Load1:
            case TapeOp::Load2:
            case TapeOp::Load4:
            case TapeOp::Load8:
                return load(i, element(i));
            case TapeOp::Load8At2:
                return load(i, element_at_2(i));
            case TapeOp::Store8:
                return store(i, element(i));
            case TapeOp::Store8At2:
                return store(i, element_at_2(i));
            case TapeOp::Element: {
                const std::string bytes = arithmetic_.step_along(position(i.c, i.more.f), i.more.d);
                cells_.write(i.a, ir::I64, arithmetic_.integer("add", cells_.read(i.b, ir::I64), bytes));
                return;
            }
            case TapeOp::Fetch1:
            case TapeOp::Fetch2:
            case TapeOp::Fetch4:
            case TapeOp::Fetch8:
                return load(i, cells_.pointer(i.b));
            case TapeOp::Fetch16:
                return move_16(cells_.address(i.a), cells_.pointer(i.b));
            case TapeOp::Put1:
            case TapeOp::Put2:
            case TapeOp::Put4:
            case TapeOp::Put8:
                return store(i, cells_.pointer(i.b));
            case TapeOp::Put16: {
                const std::string to = cells_.pointer(i.b);
                for (const std::string& half : {to, moved(to, "8")})
                    text_.line("call void @note8(ptr %journal, ptr %grow, ptr " + half + ") strictfp");
                return move_16(to, cells_.address(i.a));
            }
            case TapeOp::CallKernel:
            case TapeOp::CallLoop:
                return leave_unless_true(
                    text_.define("call zeroext i1 %call_loop(ptr " + table(i.call) + ", ptr %cells) strictfp"));
            case TapeOp::Compute:
                return compute(i);
            case TapeOp::Jump:
                text_.jump(place(target(i)));
                ended_ = true;
                return;
            case TapeOp::JumpIfFalse: {
                const std::string on = text_.label_new("on");
                text_.branch(arithmetic_.truth(i.a), on, place(target(i)));
                text_.block(on);
                return;
            }
            case TapeOp::Trips:
                return trips(i);
            case TapeOp::Repeat: {
                const std::string on = text_.label_new("on");
                again(i, cells_.read(i.c, ir::I64), place(target(i)), on);
                text_.block(on);
                return;
            }
            case TapeOp::Next:
                again(i, std::to_string(i.number), place(0), "done");
                ended_ = true;
                return;
            case TapeOp::LeaveUnless: {
                const std::string truth = arithmetic_.truth(i.a);
                arithmetic_.leave_if(i.number ? text_.define("xor i1 " + truth + ", true") : truth);
                return;
            }
            default:  // Stop
                text_.jump("stopped");
                ended_ = true;
        }
    }

    const Tape& tape_;
    const std::vector<uint16_t>& kept_;
    TapeIr& made_;
    const TapeInstruction* unknown_ = nullptr;
    IrText text_;
    IrCells cells_;
    IrArithmetic arithmetic_;
    std::set<size_t> targets_;
    size_t at_ = 0;
    bool ended_ = false;  // what comes next is not reached from what stands before it
};

}  // namespace

TapeIr write_ir(const Tape& tape, const std::vector<uint16_t>& kept) {
    TapeIr made;
    IrWriter(tape, kept, made).write();
    return made;
}

}  // namespace pyop
