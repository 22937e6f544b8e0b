// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/merging/gathered_product.hpp>

#include <troupe/graph/argument.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace troupe::graph {

namespace {

constexpr std::string_view matrix_gradient = "Y@GRAD";
constexpr std::string_view input_gradient = "X@GRAD";

constexpr std::int64_t usual_batch = 128;
// The smallest break-even, in samples, for which gathering saves enough.
constexpr std::int64_t least_break_even = 64;

bool multiplies_samples(const op_desc& product) {
  return product.attributes.get_int("x_num_col_dims", 1) == 1;
}

/// The number of samples whose factors have as many elements as the gradient.
std::int64_t break_even(std::int64_t rows, std::int64_t columns) {
  return rows * columns / std::max<std::int64_t>(1, rows + columns);
}

std::vector<std::string> repeated(const std::string& name, std::size_t times) {
  return std::vector<std::string>(times, name);
}

bool overwrites_an_input(const op_desc& op) {
  return std::ranges::any_of(op.output_names(), [&](const std::string& name) {
    return std::ranges::count(op.input_names(), name) > 0;
  });
}

} // namespace

bool is_worth_gathering(const block& b, const op_desc& product,
                        const std::string& parameter,
                        const std::string& gradient, std::int64_t batch) {
  if (product.type != "mul_grad" || !multiplies_samples(product)
      || product.output(matrix_gradient) != std::vector{gradient}
      || product.only_input("Y") != parameter || overwrites_an_input(product))
    return false;
  const auto* matrix = b.find_var(parameter);
  if (matrix == nullptr || matrix->dims.has_unknown()
      || matrix->dims.rank() < 2)
    return false;
  const auto split =
    static_cast<std::size_t>(product.attributes.get_int("y_num_col_dims", 1));
  if (split >= matrix->dims.rank())
    return false;
  const auto worth_up_to =
    break_even(matrix->dims.numel(0, split),
               matrix->dims.numel(split, matrix->dims.rank()));
  return worth_up_to >= least_break_even
         && worth_up_to >= (batch > 0 ? batch : usual_batch);
}

op_desc gathered_product(const op_desc& product, std::size_t num_devices,
                         std::size_t receivers) {
  op_desc op;
  op.type = gathered_product_type;
  op.attributes = product.attributes;
  op.attributes.set("op_role", std::int32_t{role_optimize});
  op.set_input("X", repeated(product.only_input("X"), num_devices));
  op.set_input("Y", product.input("Y"));
  op.set_input("Out@GRAD",
               repeated(product.only_input("Out@GRAD"), num_devices));
  op.set_output(std::string{matrix_gradient},
                repeated(product.only_output(matrix_gradient), receivers));
  return op;
}

std::optional<op_desc> without_gathered(const op_desc& product) {
  const auto& input = product.output(input_gradient);
  if (!std::ranges::any_of(input, names_variable))
    return std::nullopt;
  auto op = product;
  std::erase_if(op.outputs, [](const op_slot& slot) {
    return slot.name == matrix_gradient;
  });
  return op;
}

} // namespace troupe::graph
