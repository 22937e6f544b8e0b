// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/rnn/gate_activation.hpp>

#include <troupe/kernels/cpu/simd/simd.hpp>
#include <troupe/kernels/cpu/simd/vector_math.hpp>

#include <troupe/base/error.hpp>

#include <algorithm>
#include <array>
#include <string>

namespace troupe::cpu {

namespace {

void identity(float*, std::int64_t) {}
void identity_derive(float*, const float*, std::int64_t) {}

TROUPE_SIMD void sigmoid(float* x, std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i)
    x[i] = fast_sigmoid(x[i]);
}

TROUPE_SIMD void sigmoid_derive(float* d, const float* y, std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i)
    d[i] *= y[i] * (1.0f - y[i]);
}

TROUPE_SIMD void tanh(float* x, std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i)
    x[i] = fast_tanh(x[i]);
}

TROUPE_SIMD void tanh_derive(float* d, const float* y, std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i)
    d[i] *= 1.0f - y[i] * y[i];
}

TROUPE_SIMD void relu(float* x, std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i)
    x[i] = x[i] < 0.0f ? 0.0f : x[i];
}

TROUPE_SIMD void relu_derive(float* d, const float* y, std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i)
    d[i] = y[i] > 0.0f ? d[i] : 0.0f;
}

constexpr std::array<gate_activation, 4> activations = {{
  {"identity", identity, identity_derive},
  {"sigmoid", sigmoid, sigmoid_derive},
  {"tanh", tanh, tanh_derive},
  {"relu", relu, relu_derive},
}};

[[noreturn]] void unknown(const std::string& what) {
  throw error(errc::invalid_argument,
              "no activation " + what
                + " in a recurrent cell: identity, sigmoid, tanh, relu");
}

} // namespace

const gate_activation& find_gate_activation(std::string_view name) {
  const auto found =
    std::ranges::find(activations, name, &gate_activation::name);
  if (found == activations.end())
    unknown(std::string(name));
  return *found;
}

const gate_activation& find_gate_activation(std::int64_t number) {
  if (number < 0 || number >= static_cast<std::int64_t>(activations.size()))
    unknown(std::to_string(number));
  return activations[static_cast<std::size_t>(number)];
}

} // namespace troupe::cpu
