// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/error.hpp>
#include <troupe/kernels/memory/arena.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

namespace troupe::comm {

/// Says what a parcel is. Only senders and receivers know what the words mean.
using parcel_label = std::array<std::uint64_t, 2>;

/// What one process of a group sends to another besides collectives, such as a
/// value that an op of the other process reads.
struct parcel {
  parcel_label label = {};
  buffer content = {};   ///< empty if `bytes` is 0
  std::size_t bytes = 0; ///< of `content`, from its beginning
};

/// Gets the parcels that other processes send to this one.
///
/// Thread rule: any thread, one call at a time. The functions may send parcels;
/// they must not wait for other processes, or call `close_parcels`.
class parcel_receiver {
public:
  virtual ~parcel_receiver() = default;
  /// Parcels of one rank come in the order in which it sent them.
  /// @param from the rank that sent it
  /// @param content valid until the function returns
  virtual void arrived(std::size_t from, const parcel_label& label,
                       std::span<const std::byte> content) noexcept = 0;
  /// A rank has sent something that is no parcel.
  virtual void malformed(std::size_t from, const error& why) noexcept = 0;
};

/// Where a group passes parcels to its receiver. Those that come before there
/// is one are kept; those that come after it has gone are dropped. Any thread.
class parcel_gate {
public:
  /// Parcels go to this receiver from now on, first those that were kept.
  void open(parcel_receiver& to);
  /// When it returns, the receiver is not called any more.
  void close() noexcept;
  /// If there is no memory to keep a parcel, the receiver is told later that
  /// one is malformed.
  void deliver(std::size_t from, const parcel_label& label,
               std::span<const std::byte> content) noexcept;
  /// Tells the receiver, now or when there is one, that a rank has sent
  /// something that is no parcel.
  void refuse(std::size_t from, const error& why) noexcept;

private:
  struct kept_parcel {
    std::size_t from;
    parcel_label label;
    std::vector<std::byte> content;
  };
  enum class state : std::uint8_t { keeps, passes, drops };

  std::mutex mutex_; // guards all members, also during calls
  state state_ = state::keeps;
  parcel_receiver* to_ = nullptr;
  std::deque<kept_parcel> kept_;
  std::optional<std::size_t> lost_; ///< a rank of which a parcel was not kept
};

} // namespace troupe::comm
