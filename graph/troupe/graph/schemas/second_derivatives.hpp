// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/op_schema.hpp>

namespace troupe::graph {

/// The schemas of gradient ops that can be differentiated again: those of
/// products, sums, means and scaled terms, convolutions, and of relu,
/// leaky_relu, sigmoid, tanh and square. Their gradients are made of ops that
/// `op_schemas()` has.
op_schema_table second_derivatives();

} // namespace troupe::graph
