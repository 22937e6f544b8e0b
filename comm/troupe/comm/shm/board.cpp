// SPDX-License-Identifier: Apache-2.0
#include <troupe/comm/shm/board.hpp>

#include <troupe/base/failure_codec.hpp>

#include <algorithm>
#include <cstring>
#include <new>
#include <string>

namespace troupe::comm::shm {

namespace {

std::string encode_shortly(const error& why) {
  auto text = encode_failure(why);
  if (text.size() <= max_failure_bytes)
    return text;
  auto where = why.where();
  where.call_stack.clear();
  text = encode_failure({why.code(), why.message(), where});
  if (text.size() <= max_failure_bytes)
    return text;
  return encode_failure({why.code(), why.message().substr(0, 1000)});
}

} // namespace

bool call_progress::take_back(std::size_t rank, rank_mask everybody) noexcept {
  auto word = word_.load(std::memory_order_acquire);
  do
    if (split(word).ranks == everybody)
      return false;
  while (!word_.compare_exchange_weak(word, word & ~bit_of(rank),
                                      std::memory_order_acq_rel));
  return true;
}

bool call_progress::begin_failing(rank_mask everybody) noexcept {
  auto word = word_.load(std::memory_order_acquire);
  for (;;) {
    const auto [state, ranks] = split(word);
    if (state != call_state::gathering || ranks == everybody)
      return false;
    if (word_.compare_exchange_weak(word, join(call_state::failing, ranks),
                                    std::memory_order_acq_rel))
      return true;
  }
}

void call_progress::set(call_state next, rank_mask everybody) noexcept {
  auto word = word_.load(std::memory_order_relaxed);
  if (split(word).ranks == everybody) // nobody else writes any more
    return word_.store(join(next, everybody), std::memory_order_release);
  while (!word_.compare_exchange_weak(word, join(next, split(word).ranks),
                                      std::memory_order_acq_rel)) {
  }
}

void posted_error::post(const error& why) noexcept {
  bytes_ = 0; // without memory for the text, readers get a general error
  try {
    const auto text = encode_shortly(why);
    std::memcpy(text_.data(), text.data(), text.size());
    bytes_ = static_cast<std::uint32_t>(text.size());
  } catch (const std::bad_alloc&) {
  }
}

error posted_error::read() const {
  return decode_failure(
    {text_.data(), std::min<std::size_t>(bytes_, max_failure_bytes)});
}

board::board() noexcept {
  for (std::size_t i = 0; i < call_slots; ++i) // calls are numbered from 1
    calls[i].number.store(i == 0 ? call_slots : i, std::memory_order_relaxed);
}

} // namespace troupe::comm::shm
