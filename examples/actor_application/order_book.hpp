// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <random>

/// The best prices of an instrument, as a market-data feed sends them. Prices
/// are in ticks: the smallest step of a price.
struct quote {
  int bid = 0, ask = 0;
  double bid_size = 0, ask_size = 0;
};

/// Stands in for an exchange. Buyers and sellers press the price up or down for
/// a while; one sees it from the sizes that they offer, through noise.
class simulated_book {
public:
  explicit simulated_book(unsigned seed) : random_(seed) {}

  quote next() {
    pressure_ = 0.9 * pressure_ + 0.5 * noise_(random_);
    value_ += pressure_ + 0.5 * noise_(random_);
    const auto bid = static_cast<int>(std::floor(value_));
    return {bid, bid + 1, 100 * std::exp(pressure_ / 2 + 0.3 * noise_(random_)),
            100 * std::exp(-pressure_ / 2 + 0.3 * noise_(random_))};
  }

private:
  std::mt19937 random_;
  std::normal_distribution<double> noise_;
  double pressure_ = 0, value_ = 10'000;
};
