// plan/machine_code/ir_arithmetic.cpp: write, operation for operation, what plan/tape/interpret.cpp does.
#include "plan/machine_code/ir_arithmetic.h"

#include <limits>

namespace pyop {

namespace {

constexpr char kSeldom[] = ", !prof !0";  // write_ir.cpp defines it

std::string both(const IrType& t, const std::string& x, const std::string& y) {
    return std::string(t.name) + " " + x + ", " + t.name + " " + y;
}

std::string smallest_of(const IrType& t) {
    return std::to_string(t.bits == 64 ? INT64_MIN : -(int64_t{1} << (t.bits - 1)));
}

// Which of two NaN the interpreter keeps goes by the compiler that it was made with, as it does in NumPy.
bool is_second_kept(TapeOp does) {
    const bool is_double = does == TapeOp::AddF64 || does == TapeOp::MultiplyF64;
    const TapeInstruction code[] = {{does, 2, 0, 1, {}}, {TapeOp::Stop, 0, 0, 0, {}}};
    TapeCell cells[3]{};
    if (is_double) {
        cells[0].F64 = std::numeric_limits<double>::quiet_NaN();
        cells[1].F64 = -cells[0].F64;
    } else {
        cells[0].F32 = std::numeric_limits<float>::quiet_NaN();
        cells[1].F32 = -cells[0].F32;
    }
    TapeJournal journal;
    unsigned until_look = kUntilLook;
    interpret(code, cells, journal, until_look);
    return is_double ? cells[2].U64 == cells[1].U64 : cells[2].U32 == cells[1].U32;
}

const char* letters_of(const IrType& t) { return t.bits == 64 ? "f64" : "f32"; }

}  // namespace

bool IrArithmetic::write(const TapeInstruction& i) {
    switch (i.op) {
#define X(name, element)                                                                               \
    case TapeOp::name##element:                                                                        \
        cells_.write(i.a, ir::element,                                                                 \
                     name(ir::element, cells_.read(i.b, ir::element), cells_.read(i.c, ir::element))); \
        return true;
        PYOP_TAPE_BINARY(X)
        PYOP_TAPE_LOGIC(X)
        PYOP_TAPE_WATCHED(X)
        PYOP_TAPE_CHECKED(X)
#undef X
#define X(name, element)                                                                                     \
    case TapeOp::name##element:                                                                              \
        cells_.write(i.a, ir::Bool,                                                                          \
                     byte(name(ir::element, cells_.read(i.b, ir::element), cells_.read(i.c, ir::element)))); \
        return true;
        PYOP_TAPE_COMPARISON(X)
#undef X
#define X(name, element)                                                                  \
    case TapeOp::name##element:                                                           \
        cells_.write(i.a, ir::element, name(ir::element, cells_.read(i.b, ir::element))); \
        return true;
        PYOP_TAPE_UNARY(X)
#undef X
#define X(from, to)                                                                         \
    case TapeOp::From##from##To##to:                                                        \
        cells_.write(i.a, ir::to, converted(ir::from, ir::to, cells_.read(i.b, ir::from))); \
        return true;
        PYOP_TAPE_CASTS(X)
#undef X
        case TapeOp::Not:
            cells_.write(i.a, ir::Bool, byte(text_.define("icmp eq i8 " + cells_.read(i.b, ir::Bool) + ", 0")));
            return true;
        case TapeOp::Select: {
            const IrType& t = cells_.moved_as(i.a);
            const Value yes = cells_.read(i.b, t), no = cells_.read(i.c, t);
            cells_.write(i.a, t, chosen(t, truth(i.more.d), yes, no));
            return true;
        }
        default:
            return false;
    }
}

void IrArithmetic::leave_if(const std::string& truth) {
    const std::string on = text_.label_new("on");
    text_.branch(truth, "leave", on, kSeldom);
    text_.block(on);
}

std::string IrArithmetic::step_along(const std::string& position, uint16_t size_and_stride) {
    const Value size = cells_.read(size_and_stride, ir::I64);
    const Value from_behind = integer("add", position, size);
    const Value at = chosen(ir::I64, text_.define("icmp slt i64 " + position + ", 0"), from_behind, position);
    leave_if(text_.define("icmp uge i64 " + at + ", " + size));
    return integer("mul", at, cells_.read(static_cast<uint16_t>(size_and_stride + 1), ir::I64));
}

// --- what the operations are made of

IrArithmetic::Value IrArithmetic::compared(const char* how, const IrType& t, const Value& x, const Value& y) {
    return text_.define("call i1 @llvm.experimental.constrained.fcmp." + std::string(letters_of(t)) + "(" +
                        both(t, x, y) + ", metadata !\"" + how + "\", metadata !\"fpexcept.strict\") strictfp");
}

// Quiet about NaN.
IrArithmetic::Value IrArithmetic::compare(const char* ordered, const char* is_signed, const char* is_unsigned,
                                          const IrType& t, const Value& x, const Value& y) {
    if (t.floats) return compared(ordered, t, x, y);
    return of((std::string("icmp ") + (t.is_signed ? is_signed : is_unsigned)).c_str(), t, x, y);
}

IrArithmetic::Value IrArithmetic::strict(const char* op, const IrType& t, const Value& x, const Value& y) {
    return text_.define("call " + std::string(t.name) + " @llvm.experimental.constrained." + op + "." + letters_of(t) +
                        "(" + both(t, x, y) +
                        ", metadata !\"round.tonearest\", metadata !\"fpexcept.strict\") strictfp");
}

// "sideeffect": it raises flags, and stays where it is. Its operands stand as in Intel's manuals, not as in AT&T's
// text.
IrArithmetic::Value IrArithmetic::instruction(const char* op, const IrType& t, const Value& x, const Value& y,
                                              TapeOp does) {
    static const bool three_operands = __builtin_cpu_supports("avx");
    const std::string name = op + std::string(t.bits == 64 ? "sd" : "ss");
    const std::string text = three_operands ? "v" + name + " $2, $1, $0\", \"=x,x,x\"" : name + " $2, $0\", \"=x,0,x\"";
    return text_.define("call " + std::string(t.name) + " asm sideeffect \"" + text + "(" +
                        (is_second_kept(does) ? both(t, y, x) : both(t, x, y)) + ") strictfp");
}

IrArithmetic::Value IrArithmetic::overflowing(const char* op, const IrType& t, const Value& x, const Value& y,
                                              Value& overflows) {
    const std::string pair = "{ " + std::string(t.name) + ", i1 }";
    const Value both_of = text_.define("call " + pair + " @llvm." + (t.is_signed ? "s" : "u") + op + ".with.overflow." +
                                       t.name + "(" + both(t, x, y) + ")");
    overflows = text_.define("extractvalue " + pair + " " + both_of + ", 1");
    return text_.define("extractvalue " + pair + " " + both_of + ", 0");
}

IrArithmetic::Value IrArithmetic::watched(const char* op, const IrType& t, const Value& x, const Value& y) {
    Value overflows;
    const Value result = overflowing(op, t, x, y, overflows);
    const std::string raise = text_.label_new("raise"), on = text_.label_new("on");
    text_.branch(overflows, raise, on, kSeldom);
    text_.block(raise);
    text_.line("call void %raise_overflow() strictfp");
    text_.jump(on);
    text_.block(on);
    return result;
}

IrArithmetic::Value IrArithmetic::checked(const char* op, const IrType& t, const Value& x, const Value& y) {
    Value overflows;
    const Value result = overflowing(op, t, x, y, overflows);
    leave_if(overflows);
    return result;
}

IrArithmetic::Value IrArithmetic::shifted(const char* op, const IrType& t, const Value& x, const Value& y,
                                          const Value& beyond) {
    const Value may = of("icmp ult", t, y, std::to_string(t.bits));
    const Value count = of("and", t, y, std::to_string(t.bits - 1));
    return chosen(t, may, of(op, t, x, count), beyond);
}

void IrArithmetic::leave_unless_divides(const IrType& t, const Value& x, const Value& y) {
    leave_if(of("icmp eq", t, y, "0"));
    if (!t.is_signed) return;
    const Value last = of("icmp eq", t, y, "-1"), first = of("icmp eq", t, x, smallest_of(t));
    leave_if(text_.define("and i1 " + last + ", " + first));
}

IrArithmetic::Value IrArithmetic::converted(const IrType& from, const IrType& to, const Value& x) {
    const std::string text = std::string(from.name) + " " + x + " to " + to.name;
    if (from.floats && to.floats) {
        const bool wider = to.bits > from.bits;
        const std::string rounding = wider ? "" : ", metadata !\"round.tonearest\"";
        return text_.define("call " + std::string(to.name) + " @llvm.experimental.constrained." +
                            (wider ? "fpext.f64.f32(" : "fptrunc.f32.f64(") + from.name + " " + x + rounding +
                            ", metadata !\"fpexcept.strict\") strictfp");
    }
    if (to.floats) return text_.define((from.is_signed ? "sitofp " : "uitofp ") + text);
    if (to.bits < from.bits) return text_.define("trunc " + text);
    return text_.define((from.is_signed ? "sext " : "zext ") + text);
}

// --- the operations

IrArithmetic::Value IrArithmetic::Add(const IrType& t, const Value& x, const Value& y) {
    if (!t.floats) return of("add", t, x, y);
    return instruction("add", t, x, y, t.bits == 64 ? TapeOp::AddF64 : TapeOp::AddF32);
}

IrArithmetic::Value IrArithmetic::Subtract(const IrType& t, const Value& x, const Value& y) {
    return t.floats ? strict("fsub", t, x, y) : of("sub", t, x, y);
}

IrArithmetic::Value IrArithmetic::Multiply(const IrType& t, const Value& x, const Value& y) {
    if (!t.floats) return of("mul", t, x, y);
    return instruction("mul", t, x, y, t.bits == 64 ? TapeOp::MultiplyF64 : TapeOp::MultiplyF32);
}

// A NaN wins, the first before the second; of equal numbers the second is taken.
IrArithmetic::Value IrArithmetic::Minimum(const IrType& t, const Value& x, const Value& y) {
    Value first = Less(t, x, y);
    if (t.floats) first = text_.define("or i1 " + first + ", " + NotEqual(t, x, x));
    return chosen(t, first, x, y);
}

IrArithmetic::Value IrArithmetic::Maximum(const IrType& t, const Value& x, const Value& y) {
    Value first = Less(t, y, x);
    if (t.floats) first = text_.define("or i1 " + first + ", " + NotEqual(t, x, x));
    return chosen(t, first, x, y);
}

IrArithmetic::Value IrArithmetic::Divide(const IrType& t, const Value& x, const Value& y) {
    return strict("fdiv", t, x, y);
}

IrArithmetic::Value IrArithmetic::LeftShift(const IrType& t, const Value& x, const Value& y) {
    return shifted("shl", t, x, y, "0");
}

IrArithmetic::Value IrArithmetic::RightShift(const IrType& t, const Value& x, const Value& y) {
    if (!t.is_signed) return shifted("lshr", t, x, y, "0");
    return shifted("ashr", t, x, y, of("ashr", t, x, std::to_string(t.bits - 1)));
}

IrArithmetic::Value IrArithmetic::Negative(const IrType& t, const Value& x) {
    if (t.floats) return text_.define("fneg " + std::string(t.name) + " " + x);
    return of("sub", t, "0", x);
}

IrArithmetic::Value IrArithmetic::Absolute(const IrType& t, const Value& x) {
    if (t.floats)
        return text_.define("call " + std::string(t.name) + " @llvm.fabs." + letters_of(t) + "(" + t.name + " " + x +
                            ")");
    if (!t.is_signed) return x;
    return chosen(t, of("icmp slt", t, x, "0"), Negative(t, x), x);
}

IrArithmetic::Value IrArithmetic::Sqrt(const IrType& t, const Value& x) {
    return text_.define("call " + std::string(t.name) + " @llvm.experimental.constrained.sqrt." + letters_of(t) + "(" +
                        t.name + " " + x + ", metadata !\"round.tonearest\", metadata !\"fpexcept.strict\") strictfp");
}

IrArithmetic::Value IrArithmetic::logic(const char* op, const Value& x, const Value& y) {
    return byte(text_.define(std::string(op) + " i1 " + is_true(x) + ", " + is_true(y)));
}

IrArithmetic::Value IrArithmetic::FloorDivide(const IrType& t, const Value& x, const Value& y) {
    leave_unless_divides(t, x, y);
    if (!t.is_signed) return of("udiv", t, x, y);
    const Value quotient = of("sdiv", t, x, y), rest = of("srem", t, x, y);
    const Value apart = of("icmp slt", t, of("xor", t, x, y), "0");
    const Value below = text_.define("and i1 " + of("icmp ne", t, rest, "0") + ", " + apart);
    return of("add", t, quotient, text_.define("sext i1 " + below + " to " + t.name));
}

IrArithmetic::Value IrArithmetic::Remainder(const IrType& t, const Value& x, const Value& y) {
    leave_unless_divides(t, x, y);
    if (!t.is_signed) return of("urem", t, x, y);
    const Value rest = of("srem", t, x, y);
    const Value apart = of("icmp slt", t, of("xor", t, rest, y), "0");
    const Value below = text_.define("and i1 " + of("icmp ne", t, rest, "0") + ", " + apart);
    return of("add", t, rest, chosen(t, below, y, "0"));
}

IrArithmetic::Value IrArithmetic::DivideChecked(const IrType& t, const Value& x, const Value& y) {
    leave_if(compared("oeq", t, y, "0.0"));
    return strict("fdiv", t, x, y);
}

}  // namespace pyop
