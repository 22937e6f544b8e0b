// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/program_cost.hpp>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <set>
#include <span>

namespace troupe::graph {

namespace {

constexpr std::string_view gradient_mark = "@GRAD";
constexpr std::string_view gradient_type = "_grad";

/// "x" of "x", "x@GRAD" and "x@GRAD@RENAME@block0@0".
std::string_view forward_name(std::string_view variable) {
  return variable.substr(0, variable.find(gradient_mark));
}

bool is_gradient(std::string_view type) {
  return type.ends_with(gradient_type);
}

/// "mul" of "mul" and "mul_grad".
std::string_view forward_type(std::string_view type) {
  return is_gradient(type) ? type.substr(0, type.size() - gradient_type.size())
                           : type;
}

template <std::size_t N>
bool contains(const std::array<std::string_view, N>& names,
              std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

// Shapes.

void resolve(shape& dims, std::int64_t batch) {
  for (std::size_t axis = 0; axis < dims.rank(); ++axis)
    if (dims[axis] < 0)
      dims[axis] = batch;
}

/// The main block with the shapes for a given batch size.
block with_batch(const program& p, std::int64_t batch,
                 const op_schema_table& schemas) {
  block b = p.main();
  for (const auto& name : feed_names(p))
    resolve(b.find_var(name)->dims, batch);
  for (const op_desc& op : b.ops)
    if (!(op.role() & (role_backward | role_optimize))
        && schemas.contains(op.type))
      infer_shapes(op, b, schemas);
  for (auto& [name, var] : b.vars)
    resolve(var.dims, batch);
  return b;
}

/// An op and the shapes of its variables. A gradient has the shape of its
/// variable.
class sized_op {
public:
  sized_op(const op_desc& op, const block& vars) : op_(op), vars_(vars) {}

  const op_desc& desc() const { return op_; }

  const var_desc* forward_var(std::string_view name) const {
    return vars_.find_var(forward_name(name));
  }
  const var_desc* var(std::string_view name) const {
    return vars_.find_var(name);
  }

  /// Shape of a slot of the forward op. A gradient op may have only the slot's
  /// gradient. Rank 0 if it has neither.
  shape dims(const std::string& slot) const {
    const auto gradient = gradient_name(slot);
    for (const auto* arguments : {&op_.input(slot), &op_.output(slot),
                                  &op_.input(gradient), &op_.output(gradient)})
      if (!arguments->empty())
        if (const auto* found = forward_var(arguments->front()))
          return found->dims;
    return {};
  }

private:
  const op_desc& op_;
  const block& vars_;
};

// FLOPs.

double numel(const shape& dims) {
  return std::accumulate(
    dims.begin(), dims.end(), 1.0,
    [](double n, auto extent) { return n * static_cast<double>(extent); });
}

/// Each output element is a sum over a filter.
double conv_flops(const sized_op& op) {
  const auto filter = op.dims("Filter");
  return filter.rank() == 0 ? 0
                            : 2 * numel(op.dims("Output")) * numel(filter)
                                / static_cast<double>(filter[0]);
}

/// Each input element is multiplied by a filter and added to the output.
double transposed_conv_flops(const sized_op& op) {
  const auto filter = op.dims("Filter");
  return filter.rank() == 0 ? 0
                            : 2 * numel(op.dims("Input")) * numel(filter)
                                / static_cast<double>(filter[0]);
}

double mul_flops(const sized_op& op) {
  const auto x = op.dims("X");
  const auto split =
    static_cast<std::size_t>(op.desc().attributes.get_int("x_num_col_dims", 1));
  double columns = 1;
  for (auto axis = split; axis < x.rank(); ++axis)
    columns *= static_cast<double>(x[axis]);
  return 2 * numel(op.dims("Out")) * columns;
}

double matmul_flops(const sized_op& op) {
  const auto x = op.dims("X");
  if (x.rank() == 0)
    return 0;
  const auto& attributes = op.desc().attributes;
  const bool transposed = attributes.get_bool("trans_x", false)
                          || attributes.get_bool("transpose_X", false);
  const auto inner = x.rank() - (transposed && x.rank() > 1 ? 2 : 1);
  return 2 * numel(op.dims("Out")) * static_cast<double>(x[inner]);
}

struct product {
  std::string_view type;
  double (*flops)(const sized_op&);
};

constexpr std::array<product, 8> products = {{
  {"conv2d", conv_flops},
  {"depthwise_conv2d", conv_flops},
  {"conv2d_transpose", transposed_conv_flops},
  {"depthwise_conv2d_transpose", transposed_conv_flops},
  {"mul", mul_flops},
  {"matmul", matmul_flops},
  {"matmul_v2", matmul_flops},
  {"bmm", matmul_flops},
}};

/// Each gradient takes a product as large as the forward op's.
double count_flops(const sized_op& op) {
  const auto found =
    std::ranges::find(products, forward_type(op.desc().type), &product::type);
  if (found == products.end())
    return 0;
  const double made = is_gradient(op.desc().type)
                        ? static_cast<double>(op.desc().output_names().size())
                        : 1.0;
  return made * found->flops(op);
}

// Bytes.

/// Ops, without "_grad", whose output is a view of their input in another
/// shape.
constexpr std::array<std::string_view, 8> views = {
  "reshape",
  "reshape2",
  "flatten",
  "flatten2",
  "flatten_contiguous_range",
  "squeeze2",
  "unsqueeze2",
  "share_data",
};

/// Ops, without "_grad", that work element by element.
constexpr std::array<std::string_view, 17> elementwise = {
  "relu",
  "sigmoid",
  "tanh",
  "gelu",
  "square",
  "scale",
  "elementwise_add",
  "elementwise_sub",
  "elementwise_mul",
  "elementwise_div",
  "dropout",
  "cast",
  "clip",
  "leaky_relu",
  "sgd",
  "momentum",
  "adam",
};

/// Slots of which gradient ops read only the shape.
struct unread_slots {
  std::string_view type;
  std::array<std::string_view, 2> slots;
};

constexpr std::array<unread_slots, 10> unread = {{
  {"elementwise_add_grad", {"X", "Y"}},
  {"elementwise_sub_grad", {"X", "Y"}},
  {"mean_grad", {"X", ""}},
  {"reduce_mean_grad", {"X", ""}},
  {"reduce_sum_grad", {"X", ""}},
  {"concat_grad", {"X", ""}},
  {"slice_grad", {"Input", ""}},
  {"lookup_table_grad", {"W", ""}},
  {"lookup_table_v2_grad", {"W", ""}},
  {"transpose2_grad", {"XShape", ""}},
}};

bool reads(const op_desc& op, std::string_view slot) {
  const auto found = std::ranges::find(unread, op.type, &unread_slots::type);
  return found == unread.end() || !contains(found->slots, slot);
}

bool is_lookup(std::string_view type) {
  return type.starts_with("lookup_table");
}

/// Counts the producers and readers of each value of a block, and the bytes
/// that each op moves.
class traffic {
public:
  explicit traffic(const block& vars) : vars_(vars) {
    for (const op_desc& op : vars.ops)
      note(op);
  }

  double bytes(const op_desc& op) const {
    double sum = 0;
    if (view_of(op).empty())
      for_each_value(op, [&](const std::string& slot, const std::string& name) {
        sum += moved(op, slot, name);
      });
    return sum;
  }

private:
  struct uses {
    int makers = 0, readers = 0;
    bool elementwise = false; ///< at least one of these ops is
  };

  /// Calls `visit(slot, variable)` for each value that the op reads or writes.
  template <class Visit>
  static void for_each_value(const op_desc& op, Visit&& visit) {
    for (const op_slot& slot : op.inputs)
      if (reads(op, slot.name))
        for (const auto& name : slot.arguments)
          visit(slot.name, name);
    for (const op_slot& slot : op.outputs)
      for (const auto& name : slot.arguments)
        visit(slot.name, name);
  }

  double size(std::string_view name) const {
    const auto* own = vars_.find_var(name);
    const auto* shaped = vars_.find_var(forward_name(name));
    if (!shaped
        || (own && own->kind != var_kind::dense
            && own->kind != var_kind::selected_rows))
      return 0;
    const auto type = own ? own->type : shaped->type;
    return numel(shaped->dims) * static_cast<double>(size_of(type));
  }

  /// The variable that the op's output is a view of. Empty if the output is a
  /// new value.
  std::string view_of(const op_desc& op) const {
    const bool looks = contains(views, forward_type(op.type));
    if (!looks && op.type != "elementwise_add_grad")
      return "";
    const auto& viewed = op.input(is_gradient(op.type) ? "Out@GRAD" : "X");
    if (viewed.size() != 1)
      return "";
    const auto outputs = op.output_names();
    const bool equal =
      outputs.size() == 1 && size(outputs.front()) == size(viewed.front());
    return looks || equal ? viewed.front() : "";
  }

  const std::string& root(const std::string& name) const {
    const auto found = roots_.find(name);
    return found == roots_.end() ? name : found->second;
  }

  void note(const op_desc& op) {
    if (const auto viewed = view_of(op); !viewed.empty()) {
      for (const auto& name : op.output_names())
        roots_[name] = root(viewed);
      return;
    }
    for (const auto& name : op.output_names())
      if (is_sparse(name))
        rows_[name] = sparse_bytes(op);
    note_uses(op);
  }

  /// Bytes of the rows in a sparse result: all rows that were looked up, or all
  /// rows of the sparse inputs.
  double sparse_bytes(const op_desc& op) const {
    double sum = 0;
    for (const auto& name : op.input_names())
      if (is_sparse(name) || (is_lookup(op.type) && name.ends_with("@GRAD")))
        sum += is_sparse(name) ? rows_of(name) : size(root(name));
    return sum;
  }

  void note_uses(const op_desc& op) {
    const bool simple = contains(elementwise, forward_type(op.type));
    for (const op_slot& slot : op.inputs)
      if (reads(op, slot.name))
        for (const auto& name : slot.arguments) {
          ++uses_[root(name)].readers;
          uses_[root(name)].elementwise |= simple;
        }
    for (const auto& name : op.output_names()) {
      ++uses_[root(name)].makers;
      uses_[root(name)].elementwise |= simple;
    }
  }

  bool stays_in_registers(const std::string& name) const {
    const auto* var = vars_.find_var(name);
    const auto found = uses_.find(root(name));
    return found != uses_.end() && found->second.makers == 1
           && found->second.readers == 1 && found->second.elementwise
           && !(var && var->persistable);
  }

  bool is_sparse(const std::string& name) const {
    const auto* var = vars_.find_var(name);
    return var && var->kind == var_kind::selected_rows;
  }

  double moved(const op_desc& op, const std::string& slot,
               const std::string& name) const {
    if (stays_in_registers(name))
      return 0;
    if (is_lookup(op.type) && slot == "W")
      return size(op.only_output("Out"));
    if (is_sparse(name))
      return rows_of(name);
    if (op.type == "sgd" && slot.starts_with("Param")
        && is_sparse(op.only_input("Grad")))
      return rows_of(op.only_input("Grad"));
    return size(root(name));
  }

  /// Bytes of the rows of a sparse gradient.
  double rows_of(const std::string& name) const {
    const auto found = rows_.find(name);
    return found == rows_.end() ? size(name) : found->second;
  }

  const block& vars_;
  std::map<std::string, std::string, std::less<>> roots_;
  std::map<std::string, uses, std::less<>> uses_;
  std::map<std::string, double, std::less<>> rows_;
};

} // namespace

work program_cost::total() const {
  return std::accumulate(ops.begin(), ops.end(), work{});
}

double roofline::seconds(const work& w) const {
  return std::max(w.flops / flops_per_s, w.bytes / bytes_per_s);
}

double roofline::seconds(const program_cost& cost) const {
  return std::accumulate(
    cost.ops.begin(), cost.ops.end(), 0.0,
    [this](double sum, const work& w) { return sum + seconds(w); });
}

program_cost count_cost(const program& p, std::int64_t batch,
                        const op_schema_table& schemas) {
  const block b = with_batch(p, batch, schemas);
  const traffic moving(b);
  program_cost cost;
  for (const op_desc& op : b.ops)
    cost.ops.push_back({count_flops({op, b}), moving.bytes(op)});
  return cost;
}

} // namespace troupe::graph
