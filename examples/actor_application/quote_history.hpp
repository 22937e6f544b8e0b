// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "order_book.hpp"

#include <troupe/actors/executor.hpp>

#include <cstdint>
#include <vector>

/// Quotes that a forecast sees, and numbers per quote: how far the sizes
/// differ, from -1 to 1, and how far the price has moved since the quote
/// before.
constexpr std::int64_t window = 8, features = window * 2;

/// Turns quotes into what the network learns from: feed "seen" [batch,
/// features], and feed "move" [batch, 1], how far the price moves next, in
/// ticks.
class quote_history {
public:
  void add(const quote& next);
  /// The move to the newest quote.
  float last_move() const { return last_move_; }
  /// Samples that have become known since the last call.
  troupe::feed_map take(troupe::arena& memory);
  /// Feed "seen" of the newest quotes, [1, features]: what moves next is not
  /// known yet. Needs `window` quotes.
  troupe::feed_map newest(troupe::arena& memory) const;

private:
  std::vector<float> recent_; ///< numbers of at most `window` quotes
  std::vector<float> seen_, moves_;
  float last_move_ = 0;
  int last_bid_ = 0;
};
