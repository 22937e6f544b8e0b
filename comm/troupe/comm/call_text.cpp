// SPDX-License-Identifier: Apache-2.0
#include <troupe/comm/call_text.hpp>

#include <vector>

namespace troupe::comm {

std::string number_of_rank(std::size_t rank) {
  return "rank " + std::to_string(rank);
}

std::string text_of(collective_kind kind, std::size_t root,
                    std::span<const std::string_view> names) {
  std::string text{to_string(kind)};
  for (auto& name : names)
    text.append(&name == names.data() ? " of " : ", ").append(name);
  if (kind == collective_kind::all_reduce)
    return text;
  return text + (kind == collective_kind::reduce ? " to " : " from ")
         + number_of_rank(root);
}

std::string text_of(const collective_call& call) {
  std::vector<std::string_view> names;
  for (auto& v : call.values)
    names.push_back(v.name);
  return text_of(call.kind, call.root, names);
}

error failed_error(std::size_t rank, const error& why) {
  return {why.code(), number_of_rank(rank) + " has failed: " + why.message(),
          why.where()};
}

error left_error(std::size_t rank, const error& why) {
  return {errc::peer_failure,
          number_of_rank(rank) + " has left the group: " + why.message(),
          why.where()};
}

error mismatch_error(ticket position, const call_of_rank& one,
                     const call_of_rank& other) {
  return {errc::order_mismatch, "call " + std::to_string(position) + ": "
                                  + number_of_rank(one.rank) + " makes "
                                  + one.text + ", " + number_of_rank(other.rank)
                                  + " " + other.text};
}

} // namespace troupe::comm
