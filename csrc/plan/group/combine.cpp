// plan/group/combine.cpp: lets one kernel do what several operations of a group did.
#include "plan/group/group_ir.h"

#include <array>

#include "kernels/sum.h"

namespace pyop {

namespace {

using Op = GroupIr::Operation;

class Combiner {
  public:
    explicit Combiner(GroupIr& ir) : ir_(ir), gone_(ir.operations.size()), made_(ir.operations.size()) {}

    void run() {
        // The last addition first: it begins the longest sum.
        for (size_t i = ir_.operations.size(); i-- > 0;)
            if (!gone_[i]) absorb_sum(ir_.operations[i]);
        for (size_t i = 0; i < ir_.operations.size(); ++i)
            if (!gone_[i] && ir_.operations[i].does != Operation::None && ir_.operations[i].n_inputs == 2)
                absorb(ir_.operations[i]);
        std::vector<Op> kept;
        for (size_t i = 0; i < ir_.operations.size(); ++i)
            if (!gone_[i]) kept.push_back(std::move(ir_.operations[i]));
        ir_.operations = std::move(kept);
    }

  private:
    // What an operation was made of two or three.
    struct Made {
        Operation outer = Operation::None, left = Operation::None, right = Operation::None;
    };
    size_t index_of(const Op& op) const { return static_cast<size_t>(&op - ir_.operations.data()); }

    // The operation that computes an operand, if nobody but the reader needs it and its elements are of one type.
    Op* only_read_by(const Op& reader, size_t operand) {
        const GroupIr::Value& value = ir_.values[reader.operands[operand]];
        if (value.producer < 0 || value.reads != 1 || value.output != GroupIr::kNoOutput) return nullptr;
        Op& op = ir_.operations[static_cast<size_t>(value.producer)];
        return op.element == reader.element ? &op : nullptr;
    }

    // ... and it can be part of one kernel with the reader.
    Op* producer(const Op& reader, size_t operand) {
        Op* op = only_read_by(reader, operand);
        return op && op->does != Operation::None && op->n_inputs == 2 ? op : nullptr;
    }

    // A sum of several terms, perhaps less a product. Terms that are an operation themselves are better off in other
    // kernels.
    void absorb_sum(Op& op) {
        const bool less_product = op.does == Operation::Subtract;
        if ((!less_product && op.does != Operation::Add) || op.n_inputs != 2) return;
        Op* const product = less_product ? producer(op, 1) : nullptr;
        Op* add = less_product ? producer(op, 0) : &op;
        if (!add || add->does != Operation::Add || (less_product && (!product || product->does != Operation::Multiply)))
            return;
        const size_t most = less_product ? 5 : 6;
        std::vector<uint16_t> terms;  // the last one first
        std::vector<Op*> adds;
        for (bool more = true; more; add = more ? producer(*add, 0) : nullptr) {
            if (producer(*add, 1)) return;
            adds.push_back(add);
            terms.push_back(add->operands[1]);
            const Op* const before = producer(*add, 0);
            if (before && before->does != Operation::Add) return;
            more = before && terms.size() + 1 < most;
            if (!more) terms.push_back(add->operands[0]);
        }
        const Kernel kernel = find_sum(static_cast<int>(terms.size()), less_product, op.element);
        if (!kernel) return;
        std::vector<uint16_t> operands(terms.rbegin(), terms.rend());
        std::string text;
        for (size_t k = adds.size(); k-- > 0;) {
            text += adds[k]->text + (k > 0 || less_product ? "+" : "");
            if (adds[k] != &op) gone_[index_of(*adds[k])] = true;
        }
        if (product) {
            operands.insert(operands.end(), product->operands.begin(), product->operands.begin() + 2);
            gone_[index_of(*product)] = true;
            text += product->text + "+" + op.text;
        }
        op.text = text;
        op.n_inputs = static_cast<uint16_t>(operands.size());
        operands.push_back(op.operands[2]);
        op.operands = std::move(operands);
        op.kernel = kernel;
        op.does = Operation::None;
    }

    void absorb(Op& op) {
        if (!absorb_plain(op)) absorb_made(op);
    }

    // An operation on the result of one that was made of several.
    void absorb_made(Op& op) {
        for (const bool first : {true, false}) {
            Op* inner = only_read_by(op, first ? 0 : 1);
            if (!inner) continue;
            const Made& made = made_[index_of(*inner)];
            if (made.outer == Operation::None) continue;
            const Kernel kernel = find_fused_tail(op.does, first, made.outer, made.left, made.right, op.element);
            if (!kernel) continue;
            replace(op, kernel, first ? inner : nullptr, first ? nullptr : inner);
            return;
        }
    }

    bool absorb_plain(Op& op) {
        Op *left = producer(op, 0), *right = producer(op, 1);
        const std::array<std::array<Op*, 2>, 3> ways{{{left, right}, {left, nullptr}, {nullptr, right}}};
        for (const auto& [l, r] : ways) {
            if (!l && !r) continue;
            const Kernel kernel =
                find_fused(op.does, l ? l->does : Operation::None, r ? r->does : Operation::None, op.element);
            if (!kernel) continue;
            made_[index_of(op)] = {op.does, l ? l->does : Operation::None, r ? r->does : Operation::None};
            replace(op, kernel, l, r);
            return true;
        }
        return false;
    }

    void replace(Op& op, Kernel kernel, Op* left, Op* right) {
        std::vector<uint16_t> operands;
        std::string text;
        const auto take = [&](Op* inner, uint16_t plain) {
            if (!inner) {
                operands.push_back(plain);
                return;
            }
            operands.insert(operands.end(), inner->operands.begin(), inner->operands.begin() + inner->n_inputs);
            text += inner->text + "+";
            gone_[index_of(*inner)] = true;
        };
        take(left, op.operands[0]);
        take(right, op.operands[1]);
        op.text = text + op.text;
        op.n_inputs = static_cast<uint16_t>(operands.size());
        operands.push_back(op.operands[2]);
        op.operands = std::move(operands);
        op.kernel = kernel;
        op.does = Operation::None;
    }

    GroupIr& ir_;
    std::vector<bool> gone_;
    std::vector<Made> made_;  // by operation
};

}  // namespace

void combine(GroupIr& ir) { Combiner(ir).run(); }

}  // namespace pyop
