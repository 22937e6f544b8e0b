// SPDX-License-Identifier: Apache-2.0
#include <troupe/trace/trace_format.hpp>

#include <troupe/base/assert.hpp>
#include <troupe/base/fingerprint.hpp>

#include <cstring>

namespace troupe::trace {

std::string make_block(block_kind kind, std::string_view payload) {
  TROUPE_ASSERT(payload.size() <= most_block_bytes);
  fingerprint sum;
  sum.add(payload);
  const block_head head{kind, static_cast<std::uint32_t>(payload.size()),
                        sum.value()};
  std::string block(sizeof head + payload.size(), '\0');
  std::memcpy(block.data(), &head, sizeof head);
  if (!payload.empty())
    std::memcpy(block.data() + sizeof head, payload.data(), payload.size());
  return block;
}

} // namespace troupe::trace
