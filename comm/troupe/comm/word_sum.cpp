// SPDX-License-Identifier: Apache-2.0
#include <troupe/comm/word_sum.hpp>

#include <troupe/base/assert.hpp>

#include <cstring>

namespace troupe::comm {

tensor to_summand(std::span<const std::uint64_t> words, arena& memory) {
  auto made = tensor::make(
    memory,
    {static_cast<std::int64_t>(words.size_bytes() / sizeof(std::int32_t))},
    dtype::int32);
  std::memcpy(made.raw(), words.data(), words.size_bytes());
  return made;
}

void read_sum(const tensor& sum, std::span<std::uint64_t> words) {
  TROUPE_ASSERT(sum.bytes() == words.size_bytes());
  std::memcpy(words.data(), sum.raw(), words.size_bytes());
}

} // namespace troupe::comm
