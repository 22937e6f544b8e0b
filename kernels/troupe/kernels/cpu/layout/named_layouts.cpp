// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/layout/named_layouts.hpp>

#include <troupe/kernels/cpu/conv/filter_blocks.hpp>
#include <troupe/kernels/cpu/layout/channel_blocks.hpp>

#include <charconv>
#include <cstdint>

namespace troupe::cpu {

namespace {

/// The number in "nChw16c" and "nChw16c bf16"; 0 in other names.
std::int64_t block_in(std::string_view name) {
  constexpr std::string_view begin = "nChw";
  std::int64_t block = 0;
  if (name.starts_with(begin))
    std::from_chars(name.data() + begin.size(), name.data() + name.size(),
                    block);
  return block;
}

} // namespace

std::shared_ptr<const layout> find_layout(std::string_view name,
                                          const shape& dims) {
  if (const auto block = block_in(name); fits_blocks(dims, block))
    for (auto numbers : {precision::float32, precision::bfloat16})
      if (auto found = channel_blocks(dims, {block, numbers});
          found->name() == name)
        return found;
  if (fits_filter_blocks(dims))
    if (auto found = filter_blocks(dims); found->name() == name)
      return found;
  return nullptr;
}

} // namespace troupe::cpu
