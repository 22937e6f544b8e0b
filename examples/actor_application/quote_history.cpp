// SPDX-License-Identifier: Apache-2.0
#include "quote_history.hpp"

#include <algorithm>

using namespace troupe;

namespace {

/// A tensor [rows, width] of these values.
tensor make_rows(arena& memory, const std::vector<float>& values,
                 std::int64_t width) {
  const auto rows = static_cast<std::int64_t>(values.size()) / width;
  auto made = tensor::make(memory, {rows, width}, dtype::float32);
  std::ranges::copy(values, made.data<float>());
  return made;
}

} // namespace

void quote_history::add(const quote& next) {
  last_move_ = last_bid_ == 0 ? 0.0f : static_cast<float>(next.bid - last_bid_);
  last_bid_ = next.bid;
  if (recent_.size() == features) { // a whole window, and what came after it
    seen_.insert(seen_.end(), recent_.begin(), recent_.end());
    moves_.push_back(last_move_);
    recent_.erase(recent_.begin(), recent_.begin() + 2);
  }
  recent_.push_back(static_cast<float>((next.bid_size - next.ask_size)
                                       / (next.bid_size + next.ask_size)));
  recent_.push_back(last_move_);
}

feed_map quote_history::take(arena& memory) {
  feed_map batch{{"seen", make_rows(memory, seen_, features)},
                 {"move", make_rows(memory, moves_, 1)}};
  seen_.clear();
  moves_.clear();
  return batch;
}

feed_map quote_history::newest(arena& memory) const {
  return {{"seen", make_rows(memory, recent_, features)}};
}
