// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/passes/fuse_batch_norm.hpp>

#include <troupe/graph/argument.hpp>
#include <troupe/graph/variable_uses.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <initializer_list>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace troupe::graph {

namespace {

constexpr std::size_t nowhere = static_cast<std::size_t>(-1);

constexpr std::string_view synchronised_prefix = "sync_";

bool is_synchronised(const op_desc& norm) {
  return norm.type.starts_with(synchronised_prefix);
}

/// True if an op has this type or is its synchronised form.
bool is_norm_type(const op_desc& op, std::string_view type) {
  std::string_view found = op.type;
  if (is_synchronised(op))
    found.remove_prefix(synchronised_prefix.size());
  return found == type;
}

bool takes_batch_statistics(const op_desc& op) {
  const auto& a = op.attributes;
  return !a.get_bool("use_global_stats", false)
         && !a.get_bool("is_test", false);
}

/// Positions of the ops of one chain; `nowhere` for an op that is absent.
struct chain {
  std::size_t norm = nowhere;
  std::size_t add = nowhere; ///< absent if there is no sum
  std::size_t relu = nowhere;
  std::size_t norm_grad = nowhere;    ///< absent if there is no backward pass
  std::vector<std::size_t> add_grads; ///< one for both summands or one each
  std::size_t relu_grad = nowhere;
  std::string_view added; ///< Z

  bool adds() const { return add != nowhere; }
  bool trains() const { return norm_grad != nowhere; }
};

/// The slot of the sum that reads the batch norm's Y.
std::string slot_of(const block& b, const chain& c) {
  return only_variable(b.ops[c.add].input("X")) == c.added ? "Y" : "X";
}

/// The gradient of the summand in slot `slot`. Empty if no op writes it.
std::string_view summand_gradient(const block& b, const chain& c,
                                  std::string_view slot) {
  for (auto at : c.add_grads)
    if (auto name = only_variable(b.ops[at].output(gradient_name(slot)));
        !name.empty())
      return name;
  return {};
}

class chain_finder {
public:
  chain_finder(const block& b, const std::set<std::string>& kept)
    : block_(b), kept_(kept), uses_(find_uses(b)) {}

  std::vector<chain> find() const {
    std::vector<chain> found;
    for (std::size_t i = 0; i < block_.ops.size(); ++i)
      if (block_.ops[i].type == "relu")
        if (auto c = chain_before(i); c && add_gradients(*c) && can_move(*c))
          found.push_back(*c);
    return found;
  }

private:
  const op_desc& op(std::size_t at) const { return block_.ops[at]; }

  const variable_uses& uses_of(std::string_view name) const {
    static const variable_uses none;
    const auto found = uses_.find(name);
    return found == uses_.end() ? none : found->second;
  }

  /// The only writer of a temporary that is not in `kept`. `nowhere` for other
  /// variables.
  std::size_t writer_of_temporary(std::string_view name) const {
    const auto* var = name.empty() ? nullptr : block_.find_var(name);
    const auto& writers = uses_of(name).writers;
    if (!var || var->persistable || writers.size() != 1
        || kept_.contains(std::string{name}))
      return nowhere;
    return writers[0];
  }

  /// The only reader of such a temporary; otherwise `nowhere`.
  std::size_t only_reader(std::string_view name) const {
    const auto& readers = uses_of(name).readers;
    if (readers.size() != 1 || writer_of_temporary(name) == nowhere)
      return nowhere;
    return readers[0];
  }

  bool is_norm(std::size_t at, std::string_view y) const {
    return at != nowhere && is_norm_type(op(at), "batch_norm")
           && takes_batch_statistics(op(at))
           && only_variable(op(at).output("Y")) == y
           && !only_variable(op(at).output("SavedMean")).empty()
           && !only_variable(op(at).output("SavedVariance")).empty();
  }

  std::optional<chain> chain_before(std::size_t relu) const {
    const auto x = only_variable(op(relu).input("X"));
    const auto writer = writer_of_temporary(x);
    if (writer == nowhere || only_reader(x) != relu)
      return {};
    chain c;
    c.relu = relu;
    if (is_norm(writer, x)) {
      c.norm = writer;
      return c;
    }
    if (op(writer).type != "elementwise_add")
      return {};
    c.add = writer;
    for (auto [y, z] : {std::pair{"X", "Y"}, std::pair{"Y", "X"}})
      if (sums(c, only_variable(op(writer).input(y)),
               only_variable(op(writer).input(z))))
        return c;
    return {};
  }

  /// If a batch norm writes `y` and `z` has the same shape, adds them to the
  /// chain and returns true. The gradient of the sum may also read y.
  bool sums(chain& c, std::string_view y, std::string_view z) const {
    const auto writer = writer_of_temporary(y);
    const auto* var = block_.find_var(y);
    const auto* other = block_.find_var(z);
    if (!is_norm(writer, y) || y == z || !other || other->dims != var->dims)
      return false;
    for (auto reader : uses_of(y).readers)
      if (reader != c.add && op(reader).type != "elementwise_add_grad")
        return false;
    c.norm = writer;
    c.added = z;
    return true;
  }

  /// Adds the gradients of the chain. False if there are gradients that do not
  /// form a chain of their own.
  bool add_gradients(chain& c) const {
    const auto y = only_variable(op(c.relu).output("Out"));
    for (auto reader : uses_of(y).readers)
      if (op(reader).type == "relu_grad"
          && only_variable(op(reader).input("Out")) == y)
        c.relu_grad = reader;
    if (c.relu_grad == nowhere)
      return !is_differentiated(c);
    auto gradient = only_variable(op(c.relu_grad).output("X@GRAD"));
    if (c.adds()) {
      if (writer_of_temporary(gradient) == nowhere)
        return false;
      c.add_grads = uses_of(gradient).readers;
      for (auto at : c.add_grads)
        if (!is_gradient_of_sum(c, at))
          return false;
      gradient = summand_gradient(block_, c, slot_of(block_, c));
    }
    c.norm_grad = only_reader(gradient);
    return c.norm_grad != nowhere
           && is_norm_type(op(c.norm_grad), "batch_norm_grad")
           && is_synchronised(op(c.norm_grad)) == is_synchronised(op(c.norm))
           && takes_batch_statistics(op(c.norm_grad))
           && only_variable(op(c.norm_grad).input("Y@GRAD")) == gradient
           && op(c.norm_grad).input("X") == op(c.norm).input("X")
           && op(c.norm_grad).input("Scale") == op(c.norm).input("Scale")
           && op(c.norm_grad).input("SavedMean")
                == op(c.norm).output("SavedMean")
           && readers_are_of(c);
  }

  bool is_differentiated(const chain& c) const {
    const auto mean = only_variable(op(c.norm).output("SavedMean"));
    return !uses_of(mean).readers.empty();
  }

  /// True for a gradient of the chain's sum, unless it completes the gradient
  /// of a parameter: the fused op does not name that gradient in op_role_var.
  bool is_gradient_of_sum(const chain& c, std::size_t at) const {
    return op(at).type == "elementwise_add_grad"
           && op(at).input("X") == op(c.add).input("X")
           && op(at).input("Y") == op(c.add).input("Y")
           && op(at).role_vars().empty();
  }

  /// True if only ops of the chain read the batch norm's Y. Without a sum,
  /// `chain_before` has checked this.
  bool readers_are_of(const chain& c) const {
    const auto y = only_variable(op(c.norm).output("Y"));
    return !c.adds()
           || std::ranges::all_of(uses_of(y).readers, [&](std::size_t reader) {
                return reader == c.add
                       || std::ranges::find(c.add_grads, reader)
                            != c.add_grads.end();
              });
  }

  /// The fused op takes the position of the relu, and its gradient that of the
  /// relu's gradient. Ops in between must not access what the moved ops write,
  /// nor write what they read.
  bool can_move(const chain& c) const {
    if (c.norm > c.relu
        || !stays_between(op(c.norm), c.norm + 1, c.relu, {c.add}))
      return false;
    if (c.adds() && !stays_between(op(c.add), c.add + 1, c.relu, {}))
      return false;
    if (!c.trains())
      return true;
    const auto at = c.relu_grad;
    return at < c.norm_grad && (c.adds() || keeps_sign(c))
           && stays_between(op(c.norm_grad), at + 1, c.norm_grad, c.add_grads)
           && std::ranges::all_of(c.add_grads, [&](std::size_t add_grad) {
                return stays_between(op(add_grad), at + 1, add_grad, {});
              });
  }

  /// True if the inputs of the batch norm do not change before the gradient,
  /// which recomputes the sign of Y from them.
  bool keeps_sign(const chain& c) const {
    return std::ranges::all_of(
      std::array{"X", "Scale", "Bias"}, [&](const char* slot) {
        const auto name = only_variable(op(c.norm).input(slot));
        return std::ranges::none_of(uses_of(name).writers, [&](std::size_t at) {
          return at > c.norm && at < c.relu_grad;
        });
      });
  }

  /// True if the ops in [first, last), except those in `own`, do not write the
  /// inputs of `moved` and do not access its outputs.
  bool stays_between(const op_desc& moved, std::size_t first, std::size_t last,
                     const std::vector<std::size_t>& own) const {
    const auto others = [&](const std::vector<std::size_t>& positions) {
      return std::ranges::any_of(positions, [&](std::size_t p) {
        return p >= first && p < last && std::ranges::find(own, p) == own.end();
      });
    };
    for (auto& name : moved.input_names())
      if (others(uses_of(name).writers))
        return false;
    for (auto& name : moved.output_names())
      if (others(uses_of(name).writers) || others(uses_of(name).readers))
        return false;
    return true;
  }

  const block& block_;
  const std::set<std::string>& kept_;
  use_map uses_;
};

void take_inputs(op_desc& to, const op_desc& from,
                 std::initializer_list<const char*> slots) {
  for (auto slot : slots)
    if (const auto& names = from.input(slot); !names.empty())
      to.set_input(slot, names);
}

void take_outputs(op_desc& to, const op_desc& from,
                  std::initializer_list<const char*> slots) {
  for (auto slot : slots)
    if (const auto& names = from.output(slot); !names.empty())
      to.set_output(slot, names);
}

op_desc like(const op_desc& norm, std::string_view type) {
  op_desc fused;
  fused.type = type;
  fused.attributes = norm.attributes;
  fused.attributes.set("act_type", std::string{"relu"});
  if (is_synchronised(norm))
    fused.attributes.set(std::string{synchronised_attribute}, true);
  return fused;
}

op_desc fused_forward(const block& b, const chain& c) {
  const auto& norm = b.ops[c.norm];
  auto fused = like(norm, fused_batch_norm_types[c.adds() ? 2 : 0]);
  take_inputs(fused, norm, {"X", "Scale", "Bias", "Mean", "Variance"});
  if (c.adds())
    fused.set_input("Z", {std::string{c.added}});
  fused.set_output("Y", b.ops[c.relu].output("Out"));
  take_outputs(
    fused, norm,
    {"MeanOut", "VarianceOut", "SavedMean", "SavedVariance", "ReserveSpace"});
  return fused;
}

op_desc fused_gradient(const block& b, const chain& c) {
  const auto& norm = b.ops[c.norm_grad];
  auto fused = like(norm, fused_batch_norm_types[c.adds() ? 3 : 1]);
  take_inputs(fused, b.ops[c.norm], {"X", "Scale", "Bias"});
  take_inputs(fused, norm, {"SavedMean", "SavedVariance"});
  fused.set_input("Y@GRAD", b.ops[c.relu_grad].input("Out@GRAD"));
  take_outputs(fused, norm, {"X@GRAD", "Scale@GRAD", "Bias@GRAD"});
  if (!c.adds())
    return fused;
  fused.set_input("Y", b.ops[c.relu].output("Out"));
  const auto* z = slot_of(b, c) == "X" ? "Y" : "X";
  if (auto name = summand_gradient(b, c, z); !name.empty())
    fused.set_output("Z@GRAD", {std::string{name}});
  return fused;
}

} // namespace

bool has_batch_norms_to_fuse(const program& p) {
  const auto& ops = p.main().ops;
  return std::ranges::count(ops, "relu", &op_desc::type) > 0
         && std::ranges::any_of(ops, [](const op_desc& op) {
              return is_norm_type(op, "batch_norm");
            });
}

program fuse_batch_norms(program p, const std::set<std::string>& kept) {
  auto& b = p.main();
  std::vector<std::optional<op_desc>> fused(b.ops.size());
  std::vector<bool> gone(b.ops.size());
  for (auto& c : chain_finder{b, kept}.find()) {
    if (gone[c.norm] || (c.adds() && gone[c.add]))
      continue;
    fused[c.relu] = fused_forward(b, c);
    if (c.trains())
      fused[c.relu_grad] = fused_gradient(b, c);
    for (auto at : {c.norm, c.add, c.norm_grad})
      if (at != nowhere)
        gone[at] = true;
    for (auto at : c.add_grads)
      gone[at] = true;
  }
  std::vector<op_desc> ops;
  for (std::size_t i = 0; i < b.ops.size(); ++i)
    if (fused[i])
      ops.push_back(std::move(*fused[i]));
    else if (!gone[i])
      ops.push_back(std::move(b.ops[i]));
  b.ops = std::move(ops);
  return p;
}

} // namespace troupe::graph
