// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/comm/communicator.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace troupe::comm {

// Texts of errors that all groups have in common.

/// "rank 1".
std::string number_of_rank(std::size_t rank);

/// "reduce of a, b to rank 1".
std::string text_of(collective_kind kind, std::size_t root,
                    std::span<const std::string_view> names);
std::string text_of(const collective_call& call);

/// What the other ranks get if `rank` took part by `fail` or has left.
error failed_error(std::size_t rank, const error& why);
error left_error(std::size_t rank, const error& why);

/// One rank's call and its text.
struct call_of_rank {
  std::size_t rank;
  std::string text;
};
/// "call 3: rank 1 makes all_reduce of b, rank 0 all_reduce of a".
error mismatch_error(ticket position, const call_of_rank& one,
                     const call_of_rank& other);

} // namespace troupe::comm
