// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/launch/hosts/hosts.hpp>

#include <troupe/apps/common_options.hpp>
#include <troupe/apps/usage_error.hpp>
#include <troupe/base/quoted_name.hpp>
#include <troupe/comm/letter.hpp>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <string_view>

#include <arpa/inet.h>
#include <netinet/in.h>

namespace troupe::apps {

namespace {

[[noreturn]] void refuse_host(std::string_view host, const std::string& why) {
  throw usage_error("--hosts: " + quoted_name(host) + " " + why);
}

[[noreturn]] void refuse_syntax(std::string_view host) {
  refuse_host(host, "is no NAME[:RANKS] (several are separated by commas: "
                    "a:2,b:2)");
}

bool is_plain_name(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.'
           || c == '-' || c == '_';
  });
}

bool is_ipv6(std::string_view text) {
  in6_addr ignored{};
  return ::inet_pton(AF_INET6, std::string(text).c_str(), &ignored) == 1;
}

/// Takes ":RANKS" from the end of `text`. 1 if there is none.
std::size_t take_ranks(std::string_view& text, std::string_view whole) {
  const auto colon = text.find(':', text.rfind(']') + 1); // npos + 1 is 0
  if (colon == text.npos)
    return 1;
  const auto digits = text.substr(colon + 1);
  std::size_t ranks = 0;
  const auto [end, failure] =
    std::from_chars(digits.data(), digits.data() + digits.size(), ranks);
  if (digits.empty() || failure == std::errc::invalid_argument
      || end != digits.data() + digits.size())
    refuse_syntax(whole);
  if (failure != std::errc{} || ranks == 0 || ranks > comm::max_ranks)
    refuse_host(whole, "must have from 1 to " + std::to_string(comm::max_ranks)
                         + " ranks");
  text = text.substr(0, colon);
  return ranks;
}

/// @param item an element of the list
job_host parse_host(std::string_view item) {
  auto text = item;
  const auto ranks = take_ranks(text, item);
  const auto at = text.find('@');
  const auto user =
    at == text.npos ? std::string_view{} : text.substr(0, at + 1);
  auto name = text.substr(user.size());
  if (text.starts_with('-') || name.starts_with('-'))
    refuse_host(item, "begins with '-': ssh would take it for an option");
  if (!user.empty() && !is_plain_name(user.substr(0, at)))
    refuse_syntax(item);
  if (name.starts_with('[') && name.ends_with(']')) {
    name = name.substr(1, name.size() - 2);
    if (!is_ipv6(name))
      refuse_host(item, "has no IPv6 address in its brackets");
  } else if (!is_plain_name(name)) {
    refuse_syntax(item);
  }
  return {std::string(user) + std::string(name), std::string(name), ranks};
}

std::string in_small_letters(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) {
    return static_cast<char>(std::tolower(c));
  });
  return text;
}

bool is_own_ipv6(const in6_addr& address) {
  if (IN6_IS_ADDR_V4MAPPED(&address))
    return address.s6_addr[12] == 127 || address.s6_addr[12] == 0;
  return IN6_IS_ADDR_LOOPBACK(&address) || IN6_IS_ADDR_UNSPECIFIED(&address);
}

/// True if each host calls itself so: localhost, 127.0.0.1.
bool means_own_host(const std::string& given) {
  const auto name = in_small_letters(given);
  in6_addr ipv6{};
  if (::inet_pton(AF_INET6, name.c_str(), &ipv6) == 1)
    return is_own_ipv6(ipv6);
  in_addr ipv4{};
  if (::inet_aton(name.c_str(), &ipv4) != 0) {
    const auto network = ntohl(ipv4.s_addr) >> 24;
    return network == 127 || network == 0;
  }
  return name == "localhost" || name == "ip6-localhost"
         || name.starts_with("localhost.") || name.ends_with(".localhost");
}

void require_distinct(const std::vector<job_host>& hosts) {
  for (std::size_t i = 0; i < hosts.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (in_small_letters(hosts[i].name) == in_small_letters(hosts[j].name))
        refuse_host(hosts[i].name,
                    "is there twice: give all its ranks at once, as "
                      + hosts[i].name + ":"
                      + std::to_string(hosts[i].ranks + hosts[j].ranks));
}

} // namespace

std::vector<job_host> parse_hosts(const std::string& list) {
  return with_hosts({}, list);
}

std::vector<job_host> with_hosts(std::vector<job_host> hosts,
                                 const std::string& list) {
  for (const auto& item : split_list(list))
    hosts.push_back(parse_host(item));
  require_distinct(hosts);
  if (hosts.size() > 1)
    for (const auto& host : hosts)
      if (means_own_host(host.name))
        refuse_host(host.name, "names another host on each of them: give a "
                               "name by which all hosts can reach it");
  if (const auto ranks = ranks_of(hosts); ranks > comm::max_ranks)
    throw usage_error("--hosts: must have at most "
                      + std::to_string(comm::max_ranks) + " ranks, not "
                      + std::to_string(ranks));
  return hosts;
}

std::size_t ranks_of(const std::vector<job_host>& hosts) {
  std::size_t ranks = 0;
  for (const auto& host : hosts)
    ranks += host.ranks;
  return ranks;
}

host_place place_of(std::size_t rank, const std::vector<job_host>& hosts) {
  host_place place{0, rank};
  while (place.local_rank >= hosts[place.host].ranks)
    place.local_rank -= hosts[place.host++].ranks;
  return place;
}

const std::string& reached_at(const job_host& host) {
  return host.address.empty() ? host.name : host.address;
}

std::string address_of(const job_host& host, std::uint16_t port) {
  const auto number = ":" + std::to_string(port);
  const auto& at = reached_at(host);
  return at.find(':') == at.npos ? at + number : "[" + at + "]" + number;
}

} // namespace troupe::apps
