// SPDX-License-Identifier: Apache-2.0
#include <kernels/cases/cases.hpp>

#include <iterator>

namespace troupe::test {

std::vector<op_case> all_cases() {
  std::vector<op_case> all;
  for (auto family :
       {activation_cases, arithmetic_cases, concat_cases, conv2d_cases,
        dropout_cases, elementwise_cases, embedding_cases, initializer_cases,
        matmul_cases, metric_cases, movement_cases, normalization_cases,
        optimizer_cases, pool2d_cases, reduce_cases, softmax_cases}) {
    auto some = family();
    std::move(some.begin(), some.end(), std::back_inserter(all));
  }
  return all;
}

} // namespace troupe::test
