// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/passes/sync_batch_norm.hpp>

#include <troupe/base/error.hpp>
#include <troupe/graph/argument.hpp>
#include <troupe/graph/passes/fuse_batch_norm.hpp>
#include <troupe/graph/ssa_graph.hpp>

#include <algorithm>
#include <utility>

namespace troupe::graph {

namespace {

bool is_fused(const op_desc& op) {
  return op.type == fused_batch_norm_types[0]
         || op.type == fused_batch_norm_types[2];
}

bool is_behind_sum(const op_desc& gradient) {
  return gradient.type == fused_batch_norm_types[3];
}

bool is_fused_gradient(const op_desc& op) {
  return op.type == fused_batch_norm_types[1] || is_behind_sum(op);
}

bool is_single(const op_desc& op, std::string_view type,
               sync_batch_norm which) {
  return op.type == "sync_" + std::string{type}
         || (which == sync_batch_norm::all && op.type == type);
}

bool is_fused_to_split(const op_desc& op, sync_batch_norm which) {
  return which == sync_batch_norm::all
         || op.attributes.get_bool(synchronised_attribute, false);
}

bool normalizes_by_batch(const op_desc& op) {
  const auto& a = op.attributes;
  return !a.get_bool("use_global_stats", false)
         && (!a.get_bool("is_test", false)
             || a.get_bool("trainable_statistics", false));
}

bool is_forward(const op_desc& op, sync_batch_norm which) {
  return normalizes_by_batch(op)
         && (is_fused(op) ? is_fused_to_split(op, which)
                          : is_single(op, "batch_norm", which));
}

bool is_gradient(const op_desc& op, sync_batch_norm which) {
  return normalizes_by_batch(op)
         && (is_fused_gradient(op) ? is_fused_to_split(op, which)
                                   : is_single(op, "batch_norm_grad", which));
}

const std::string& saved_mean(const op_desc& op,
                              const std::vector<std::string>& slot) {
  if (slot.size() == 1 && names_variable(slot[0]))
    return slot[0];
  error_context where;
  where.op_type = op.type;
  where.call_stack = op.call_stack();
  throw error{errc::graph_invalid,
              "op " + op.type
                + " has no SavedMean, which synchronised statistics need",
              std::move(where)};
}

bool writes(const op_desc& op, std::string_view slot) {
  return std::ranges::any_of(op.output(slot), names_variable);
}

/// An op with the attributes of `from`, without op_role_var: the op completes
/// no gradient of a parameter.
op_desc part_of(const op_desc& from, std::string type) {
  op_desc op;
  op.type = std::move(type);
  op.attributes = from.attributes;
  op.attributes.erase("op_role_var");
  return op;
}

void read(op_desc& op, const op_desc& from,
          std::initializer_list<const char*> slots) {
  for (auto slot : slots)
    if (const auto& names = from.input(slot); !names.empty())
      op.set_input(slot, names);
}

void write(op_desc& op, const op_desc& from,
           std::initializer_list<const char*> slots) {
  for (auto slot : slots)
    if (const auto& names = from.output(slot); !names.empty())
      op.set_output(slot, names);
}

op_desc all_reduce_of(const op_desc& from, const std::string& name) {
  auto op = part_of(from, std::string{to_string(op_kind::all_reduce)});
  op.set_input("X", {name});
  op.set_output("Out", {name});
  return op;
}

class splitter {
public:
  explicit splitter(block& b) : block_(b) {}

  void split_forward(const op_desc& op, std::vector<op_desc>& out) {
    const auto moments = saved_mean(op, op.output("SavedMean")) + "@MOMENTS";
    declare(moments, {-1, 1 + 2 * channels(op)});
    auto local = part_of(op, "sync_batch_norm_moments");
    read(local, op, {"X"});
    local.set_output("Moments", {moments});
    out.push_back(std::move(local));
    out.push_back(all_reduce_of(op, moments));
    auto normalize = part_of(op, "sync_batch_norm_normalize");
    read(normalize, op, {"X", "Z", "Scale", "Bias"});
    normalize.set_input("Moments", {moments});
    write(normalize, op, {"Y", "SavedMean", "SavedVariance"});
    out.push_back(std::move(normalize));
    auto running = part_of(op, std::string{running_statistics_type});
    running.attributes.set("op_role", std::int32_t{role_optimize});
    read(running, op, {"Mean", "Variance"});
    running.set_input("Moments", {moments});
    write(running, op, {"MeanOut", "VarianceOut"});
    out.push_back(std::move(running));
  }

  void split_gradient(const op_desc& op, std::vector<op_desc>& out) {
    const auto& mean = saved_mean(op, op.input("SavedMean"));
    const auto sums = mean + "@SUMS";
    declare(sums, {2 * channels(op)});
    auto local = part_of(op, "sync_batch_norm_grad_sums");
    local.attributes = op.attributes;
    read(local, op, {"X", "Y@GRAD", "SavedMean", "SavedVariance"});
    local.set_input("Moments", {mean + "@MOMENTS"});
    local.set_output("Sums", {sums});
    write(local, op, {"Scale@GRAD", "Bias@GRAD"});
    auto apply = part_of(op, "sync_batch_norm_grad_apply");
    read(apply, op, {"X", "Y@GRAD", "Scale", "SavedMean", "SavedVariance"});
    if (is_behind_sum(op))
      share_gradient_of_sum(op, local, apply);
    else if (is_fused_gradient(op))
      read_what_gives_sign(op, local, apply);
    out.push_back(std::move(local));
    if (!writes(op, "X@GRAD"))
      return;
    out.push_back(all_reduce_of(op, sums));
    apply.set_input("Moments", {mean + "@MOMENTS"});
    apply.set_input("Sums", {sums});
    write(apply, op, {"X@GRAD"});
    out.push_back(std::move(apply));
  }

private:
  /// `sums` writes the gradient of the sum, dY where Y is positive, to Z@GRAD.
  /// `apply` reads it as its Y@GRAD and so needs no relu.
  void share_gradient_of_sum(const op_desc& op, op_desc& sums, op_desc& apply) {
    read(sums, op, {"Y"});
    if (writes(op, "Z@GRAD")) {
      write(sums, op, {"Z@GRAD"});
    } else {
      const auto name = op.only_input("SavedMean") + "@SUM@GRAD";
      declare(name, block_.var(op.only_input("X")).dims);
      sums.set_output("Z@GRAD", {name});
    }
    apply.set_input("Y@GRAD", sums.output("Z@GRAD"));
    apply.attributes.erase("act_type");
  }

  /// Both parts recompute where Y is positive.
  static void read_what_gives_sign(const op_desc& op, op_desc& sums,
                                   op_desc& apply) {
    read(sums, op, {"Scale", "Bias"});
    read(apply, op, {"Bias"});
  }

  std::int64_t channels(const op_desc& op) const {
    return block_.var(op.only_input("Scale")).dims.numel();
  }

  void declare(const std::string& name, const shape& dims) {
    var_desc var;
    var.name = name;
    var.dims = dims;
    block_.add_var(std::move(var));
  }

  block& block_;
};

} // namespace

bool has_batch_norms_to_split(const program& p, sync_batch_norm which) {
  return std::ranges::any_of(p.main().ops, [which](const op_desc& op) {
    return is_forward(op, which) || is_gradient(op, which);
  });
}

program split_batch_norms(program p, sync_batch_norm which) {
  splitter split{p.main()};
  std::vector<op_desc> ops;
  for (auto& op : p.main().ops)
    if (is_forward(op, which))
      split.split_forward(op, ops);
    else if (is_gradient(op, which))
      split.split_gradient(op, ops);
    else
      ops.push_back(std::move(op));
  p.main().ops = std::move(ops);
  return p;
}

} // namespace troupe::graph
