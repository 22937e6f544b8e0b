// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/stragglers/digest_windows.hpp>

#include <algorithm>
#include <bit>
#include <utility>

namespace troupe::apps {

bool is_told(std::uint64_t window, std::uint64_t ns) {
  constexpr std::uint64_t least_ns = 100'000'000;
  const auto per_time = least_ns / std::max<std::uint64_t>(ns, 1);
  return window % std::bit_ceil(std::max<std::uint64_t>(per_time, 1)) == 0;
}

std::optional<std::vector<op_digest>> digest_windows::add(std::size_t rank,
                                                          op_digest digest) {
  constexpr std::size_t most_waiting = 64;
  if (rank >= ranks_)
    return std::nullopt;
  const auto number = digest.window;
  auto& window = waiting_[number];
  window.insert_or_assign(rank, std::move(digest));
  if (window.size() < ranks_) {
    if (waiting_.size() > most_waiting)
      waiting_.erase(waiting_.begin());
    return std::nullopt;
  }
  std::vector<op_digest> all;
  for (auto& [r, of] : window)
    all.push_back(std::move(of));
  waiting_.erase(waiting_.begin(), waiting_.upper_bound(number));
  return all;
}

} // namespace troupe::apps
