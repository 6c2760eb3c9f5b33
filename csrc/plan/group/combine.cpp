// plan/group/combine.cpp: let one kernel do what several operations of a group did.
//
// What two operations read is computed in the kernels of both where that costs a rounding, and saves a pass that stores
// it: gradients read what the function has computed again.
#include "plan/group/group_ir.h"

#include <array>

#include "kernels/sum.h"

namespace pyop {

namespace {

using Op = GroupIr::Operation;

bool is_cheap(Operation op) { return op == Operation::Add || op == Operation::Subtract || op == Operation::Multiply; }

// Makes two of a cheap operation that two others read, if both will take it into their kernels.
class Duplicator {
  public:
    explicit Duplicator(GroupIr& ir) : ir_(ir), readers_(ir.values.size()) {
        for (uint32_t i = 0; i < ir_.operations.size(); ++i) note(i);
    }

    void run() {
        std::vector<std::pair<uint32_t, Op>> copies;
        for (uint32_t i = 0; i < ir_.operations.size(); ++i)
            if (wanted(i)) copies.emplace_back(i, copy(i));
        if (copies.empty()) return;
        std::vector<Op> all;
        all.reserve(ir_.operations.size() + copies.size());
        size_t next = 0;
        for (uint32_t i = 0; i < ir_.operations.size(); ++i) {
            all.push_back(ir_.operations[i]);
            if (next < copies.size() && copies[next].first == i) all.push_back(copies[next++].second);
        }
        ir_.operations = std::move(all);
        for (size_t i = 0; i < ir_.operations.size(); ++i) {
            const Op& op = ir_.operations[i];
            for (size_t k = op.n_inputs; k < op.operands.size(); ++k)
                ir_.values[op.operands[k]].producer = static_cast<int>(i);
        }
    }

  private:
    struct Read {
        uint32_t operation;
        uint16_t operand;
    };
    // Who reads a value: the first two, for of more it is only asked how many they are.
    struct Reads {
        Read first[2];
        uint32_t n = 0;
        void push_back(Read read) {
            if (n < 2) first[n] = read;
            ++n;
        }
    };

    void note(uint32_t i) {
        const Op& op = ir_.operations[i];
        for (uint16_t k = 0; k < op.n_inputs; ++k) readers_[op.operands[k]].push_back({i, k});
    }

    static bool is_binary(const Op& op) { return op.n_inputs == 2 && op.does != Operation::None; }

    // Whether the only reader of a value may take the operation that computes it into its kernel.
    bool may_be_taken(uint16_t value) const {
        const GroupIr::Value& v = ir_.values[value];
        if (v.reads != 1 || v.output != GroupIr::kNoOutput || v.producer < 0 || readers_[value].n != 1) return false;
        const Op& op = ir_.operations[static_cast<size_t>(v.producer)];
        const Op& reader = ir_.operations[readers_[value].first[0].operation];
        return is_binary(op) && is_binary(reader) && op.element == reader.element;
    }

    bool wanted(uint32_t i) const {
        const Op& op = ir_.operations[i];
        if (!is_binary(op) || !is_cheap(op.does) || may_be_taken(op.operands[0]) || may_be_taken(op.operands[1]))
            return false;
        const uint16_t result = op.operands[2];
        const GroupIr::Value& value = ir_.values[result];
        if (value.output != GroupIr::kNoOutput || value.reads != 2 || readers_[result].n != 2) return false;
        for (const Read& read : readers_[result].first) {
            const Op& reader = ir_.operations[read.operation];
            // One that has another producer to take, or is itself taken, would leave that alone.
            if (!is_binary(reader) || reader.element != op.element || may_be_taken(reader.operands[2]) ||
                !find_fused(reader.does, op.does, Operation::None, op.element))
                return false;
        }
        return true;
    }

    Op copy(uint32_t i) {
        Op made = ir_.operations[i];
        const uint16_t result = made.operands[2];
        GroupIr::Value value = ir_.values[result];
        value.reads = ir_.values[result].reads = 1;
        const auto added = static_cast<uint16_t>(ir_.values.size());
        ir_.values.push_back(value);
        const Read second = readers_[result].first[1];
        readers_[result].n = 1;
        readers_.emplace_back().push_back(second);
        ir_.operations[second.operation].operands[second.operand] = added;
        made.operands[2] = added;
        for (uint16_t k = 0; k < 2; ++k) {
            ++ir_.values[made.operands[k]].reads;
            readers_[made.operands[k]].push_back({i, k});  // as often as it is read
        }
        return made;
    }

    GroupIr& ir_;
    std::vector<Reads> readers_;  // by value
};

class Combiner {
  public:
    explicit Combiner(GroupIr& ir) : ir_(ir), gone_(ir.operations.size()), made_(ir.operations.size()) {}

    void run() {
        // The last addition first: it begins the longest sum.
        for (size_t i = ir_.operations.size(); i-- > 0;)
            if (!gone_[i] && !absorb_scaled(ir_.operations[i])) absorb_sum(ir_.operations[i]);
        for (size_t i = 0; i < ir_.operations.size(); ++i)
            if (!gone_[i] && ir_.operations[i].does != Operation::None && ir_.operations[i].n_inputs == 2)
                absorb(ir_.operations[i]);
        for (size_t i = 0; i < ir_.operations.size(); ++i)
            if (!gone_[i]) take_number(ir_.operations[i]);
        size_t n = 0;
        for (size_t i = 0; i < ir_.operations.size(); ++i)
            if (!gone_[i]) ir_.operations[n++] = ir_.operations[i];
        ir_.operations.resize(n);
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

    // A number is not repeated for an operation that is left with it alone.
    void take_number(Op& op) {
        if (op.does == Operation::None || op.n_inputs != 2) return;
        const bool first = ir_.values[op.operands[0]].single;
        if (first == ir_.values[op.operands[1]].single) return;
        const Kernel kernel = find_with_number(op.does, first, op.element);
        if (!kernel) return;
        if (first) std::swap(op.operands[0], op.operands[1]);
        op.numbers = 2;
        op.kernel = kernel;
        op.does = Operation::None;
    }

    // A sum of several terms, perhaps less a product, that one kernel may compute.
    struct Sum {
        FixedVector<Op*, GroupIr::kMaxOperands> adds;  // the last one first
        Op* product = nullptr;
        GroupIr::Indices terms;
        int n_terms() const { return static_cast<int>(terms.size()); }
    };

    // Whether `op` is the last operation of one. Terms that are an operation themselves are better off in other
    // kernels.
    bool is_sum(Op& op, size_t most, Sum& sum) {
        const bool less_product = op.does == Operation::Subtract;
        if ((!less_product && op.does != Operation::Add) || op.n_inputs != 2) return false;
        sum.product = less_product ? producer(op, 1) : nullptr;
        Op* add = less_product ? producer(op, 0) : &op;
        if (!add || add->does != Operation::Add ||
            (less_product && (!sum.product || sum.product->does != Operation::Multiply)))
            return false;
        GroupIr::Indices terms;  // the last one first
        for (bool more = true; more; add = more ? producer(*add, 0) : nullptr) {
            if (producer(*add, 1)) return false;
            sum.adds.push_back(add);
            terms.push_back(add->operands[1]);
            const Op* const before = producer(*add, 0);
            if (before && before->does != Operation::Add) return false;
            more = before && terms.size() + 1 < most;
            if (!more) terms.push_back(add->operands[0]);
        }
        for (size_t k = terms.size(); k-- > 0;) sum.terms.push_back(terms[k]);
        return true;
    }

    void absorb_sum(Op& op) {
        const size_t most = op.does == Operation::Subtract ? 5 : 6;
        Sum sum;
        if (!is_sum(op, most, sum)) return;
        const Kernel kernel = find_sum(sum.n_terms(), sum.product != nullptr, SumTail::None, op.element);
        if (!kernel) return;
        GroupIr::Indices operands = sum.terms;
        if (sum.product) operands.append(sum.product->operands.begin(), sum.product->operands.begin() + 2);
        replace_sum(op, op, nullptr, sum, kernel, operands);
    }

    // A number times a sum, and perhaps that added to what the product in it is of.
    bool absorb_scaled(Op& op) {
        if (op.n_inputs != 2) return false;
        if (op.does == Operation::Multiply) return absorb_scaled(op, op, nullptr);
        if (op.does != Operation::Add) return false;
        for (const size_t side : {1, 0})
            if (Op* scaled = producer(op, side); scaled && scaled->does == Operation::Multiply)
                if (absorb_scaled(op, *scaled, &op.operands[1 - side])) return true;
        return false;
    }

    bool absorb_scaled(Op& op, Op& scaled, const uint16_t* added) {
        for (const size_t side : {0, 1}) {
            Op* last = producer(scaled, side);
            const uint16_t scale = scaled.operands[1 - side];
            Sum sum;
            if (!last || !ir_.values[scale].single || !is_sum(*last, 6, sum)) continue;
            const Kernel kernel = find_sum(sum.n_terms(), sum.product != nullptr,
                                           added ? SumTail::ScaledAdded : SumTail::Scaled, op.element);
            if (!kernel) continue;
            GroupIr::Indices operands = sum.terms;
            uint16_t numbers = 0;
            if (sum.product) {
                const bool first = ir_.values[sum.product->operands[0]].single;
                const uint16_t factor = sum.product->operands[first ? 0 : 1];
                const uint16_t z = sum.product->operands[first ? 1 : 0];
                if (!ir_.values[factor].single || (added && *added != z)) continue;
                numbers = static_cast<uint16_t>(1 << operands.size());
                operands.push_back(factor);
                operands.push_back(z);
            }
            numbers = static_cast<uint16_t>(numbers | 1 << operands.size());
            operands.push_back(scale);
            op.numbers = numbers;
            replace_sum(op, *last, added ? &scaled : nullptr, sum, kernel, operands);
            return true;
        }
        return false;
    }

    // Makes of `op` the kernel of a sum, whose last operation is `last`, and of what is done with it: `scaled`, if that
    // is another operation than `op`, and `op`.
    void replace_sum(Op& op, Op& last, Op* scaled, const Sum& sum, Kernel kernel, GroupIr::Indices operands) {
        GroupIr::Indices members;
        for (size_t k = sum.adds.size(); k-- > 0;)
            if (sum.adds[k] != &op) take_members(*sum.adds[k], members);
        if (sum.product) take_members(*sum.product, members);
        if (&last != &op && sum.product) take_members(last, members);
        if (scaled) take_members(*scaled, members);
        take_own(op, members);
        op.n_inputs = static_cast<uint16_t>(operands.size());
        operands.push_back(op.operands[2]);
        op.operands = operands;
        op.kernel = kernel;
        op.does = Operation::None;
    }

    // What `op` computed is computed by another operation, behind `members`.
    void take_members(const Op& op, GroupIr::Indices& members) {
        members.append(op.does_members.begin(), op.does_members.end());
        gone_[index_of(op)] = true;
    }

    static void take_own(Op& op, GroupIr::Indices& members) {
        members.append(op.does_members.begin(), op.does_members.end());
        op.does_members = members;
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
        GroupIr::Indices operands, members;
        const auto take = [&](Op* inner, uint16_t plain) {
            if (!inner) {
                operands.push_back(plain);
                return;
            }
            operands.append(inner->operands.begin(), inner->operands.begin() + inner->n_inputs);
            take_members(*inner, members);
        };
        take(left, op.operands[0]);
        take(right, op.operands[1]);
        take_own(op, members);
        op.n_inputs = static_cast<uint16_t>(operands.size());
        operands.push_back(op.operands[2]);
        op.operands = operands;
        op.kernel = kernel;
        op.does = Operation::None;
    }

    GroupIr& ir_;
    Flags gone_;
    std::vector<Made> made_;  // by operation
};

}  // namespace

void combine(GroupIr& ir) {
    Duplicator(ir).run();
    Combiner(ir).run();
}

}  // namespace pyop
