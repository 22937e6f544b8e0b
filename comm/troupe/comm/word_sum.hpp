// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/tensor.hpp>

#include <cstdint>
#include <span>

namespace troupe::comm {

// A way to tell all ranks words of each of them: an all_reduce in which each
// rank gives its own words, and zeros in place of those of others. Integers are
// summed exactly, so any 64 bits arrive as they are.

/// The words as a tensor of int32, of which an all_reduce makes a sum.
tensor to_summand(std::span<const std::uint64_t> words, arena& memory);

/// The words of such a sum, of the same size.
void read_sum(const tensor& sum, std::span<std::uint64_t> words);

} // namespace troupe::comm
