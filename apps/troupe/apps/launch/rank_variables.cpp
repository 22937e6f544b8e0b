// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/launch/rank_variables.hpp>

#include <algorithm>
#include <array>
#include <string_view>

#include <unistd.h>

namespace troupe::apps {

namespace {

constexpr std::array<std::string_view, 11> names_of_places{
  "TROUPE_RANK=",       "TROUPE_SIZE=",    "TROUPE_LOCAL_RANK=",
  "TROUPE_LOCAL_SIZE=", "TROUPE_JOB=",     "TROUPE_RENDEZVOUS=",
  "TROUPE_MEMBER=",     "TROUPE_ADDRESS=", "TROUPE_CREDENTIALS=",
  "TROUPE_INTERFACE=",  "TROUPE_ELASTIC="};

bool tells_a_place(std::string_view variable) {
  return std::ranges::any_of(names_of_places, [variable](auto name) {
    return variable.starts_with(name);
  });
}

} // namespace

std::vector<std::string> variables_with(const std::vector<std::string>& own) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry; ++entry)
    if (!tells_a_place(*entry))
      all.emplace_back(*entry);
  all.insert(all.end(), own.begin(), own.end());
  return all;
}

std::vector<std::string> variables_of(const comm::rank_environment& place) {
  std::vector<std::string> own{
    "TROUPE_RANK=" + std::to_string(place.rank),
    "TROUPE_SIZE=" + std::to_string(place.size),
    "TROUPE_LOCAL_RANK=" + std::to_string(place.local_rank),
    "TROUPE_LOCAL_SIZE=" + std::to_string(place.local_size),
    "TROUPE_JOB=" + place.job};
  if (!place.rendezvous.empty())
    own.push_back("TROUPE_RENDEZVOUS=" + place.rendezvous);
  if (place.member)
    own.push_back("TROUPE_MEMBER=" + std::to_string(*place.member));
  return own;
}

} // namespace troupe::apps
