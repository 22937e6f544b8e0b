// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace troupe::cpu {

/// An activation in a recurrent cell, in place.
struct gate_activation {
  std::string_view name;
  void (*apply)(float* x, std::int64_t n) = nullptr;
  /// d *= the derivative, computed from the activated `y`.
  void (*derive)(float* d, const float* y, std::int64_t n) = nullptr;
};

/// Finds identity, sigmoid, tanh or relu. Throws error(invalid_argument) that
/// lists them.
const gate_activation& find_gate_activation(std::string_view name);
/// The same by the number in gru_unit's attributes, 0 to 3.
const gate_activation& find_gate_activation(std::int64_t number);

} // namespace troupe::cpu
