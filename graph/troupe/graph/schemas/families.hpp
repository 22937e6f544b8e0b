// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/op_schema.hpp>

#include <initializer_list>

/// The schemas of `op_schemas()`, one function per family and file.
namespace troupe::graph::schemas {

void add(op_schema_table& table, std::initializer_list<op_schema> family);

void add_activations(op_schema_table& table);
void add_arithmetic(op_schema_table& table);
void add_comparisons(op_schema_table& table);
void add_convolutions(op_schema_table& table);
void add_gradient_ops(op_schema_table& table);
void add_expansions(op_schema_table& table);
void add_indexing(op_schema_table& table);
void add_initializers(op_schema_table& table);
void add_joining(op_schema_table& table);
void add_losses(op_schema_table& table);
void add_movement(op_schema_table& table);
void add_normalizations(op_schema_table& table);
void add_optimizers(op_schema_table& table);
void add_products(op_schema_table& table);
void add_ranges(op_schema_table& table);
void add_rankings(op_schema_table& table);
void add_recurrent(op_schema_table& table);
void add_reductions(op_schema_table& table);
void add_sequences(op_schema_table& table);
void add_slices(op_schema_table& table);

/// True if two extents can be equal: they are, or one is unknown.
constexpr bool fits(std::int64_t a, std::int64_t b) noexcept {
  return a == b || a < 0 || b < 0;
}

/// True if two shapes can be equal.
bool fits(const shape& a, const shape& b) noexcept;

/// The extent to which two extents broadcast: the other one if one is 1. Of
/// equal ones, a known extent is preferred to an unknown one.
constexpr std::int64_t broadcast(std::int64_t a, std::int64_t b) noexcept {
  if (a == 1 || b == 1)
    return a == 1 ? b : a;
  return a < 0 ? b : a;
}

/// Product of the extents in [first, last), -1 if one is unknown.
std::int64_t product(const shape& dims, std::size_t first,
                     std::size_t last) noexcept;

/// A shape whose rank is known but whose extents are not.
shape unknown_extents(std::size_t rank);

shape to_shape(const std::vector<std::int64_t>& dims);

/// A schema without gradient; each slot takes one variable.
op_schema plain_schema(std::string_view type,
                       std::vector<std::string_view> inputs,
                       void (*infer)(shape_inference&));
/// The broadcast shape of X and Y. The operand of lower rank is aligned with
/// the other from attribute `axis` on; -1 aligns the last extents. Extents of 1
/// broadcast. Checks that the shapes match.
shape broadcast(const shape_inference& s);

/// Out has X's shape and dtype.
void same_as_x(shape_inference& s);

} // namespace troupe::graph::schemas
