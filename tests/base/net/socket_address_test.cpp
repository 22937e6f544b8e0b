// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/net/socket_address.hpp>

#include <support/caught.hpp>
#include <support/own_network.hpp>
#include <support/skip_case.hpp>

#include <doctest/doctest.h>
#include <netinet/in.h>

#include <string>

using namespace troupe;
using namespace troupe::test;
using troupe::addresses_of_interface;
using troupe::common_of;
using troupe::find_host;
using troupe::parse_loopback;

TEST_SUITE("base.socket_address") {

TEST_CASE("loopback addresses are accepted") {
  for (const auto* host : {"127.0.0.1", "127.255.255.254", "localhost"})
    CHECK(parse_loopback(host, 80).get()->sa_family == AF_INET);
  CHECK(parse_loopback("::1", 80).get()->sa_family == AF_INET6);
  const auto at = parse_loopback("127.0.0.1", 4711);
  REQUIRE(at.size == sizeof(sockaddr_in));
  const auto& v4 = *reinterpret_cast<const sockaddr_in*>(at.get());
  CHECK(ntohs(v4.sin_port) == 4711);
  CHECK(ntohl(v4.sin_addr.s_addr) == INADDR_LOOPBACK);
}

TEST_CASE("other addresses are refused even if they begin like loopback") {
  for (const auto& host :
       {std::string{"127.evil.example"}, std::string{"127.0.0.1.evil.example"},
        std::string{"128.0.0.1"}, std::string{"0.0.0.0"}, std::string{"::"},
        std::string{"::2"}, std::string{"::ffff:192.0.2.1"},
        std::string{"127.0.0.1 "}, std::string{"127.1"}, std::string{},
        std::string{"127.0.0.1\0.evil.example", 23},
        std::string{"localhost.evil.example"}}) {
    CAPTURE(host);
    const auto e = caught([&] { parse_loopback(host, 0); });
    CHECK(e.code() == errc::invalid_argument);
  }
}

TEST_CASE("addresses that other hosts can reach are found") {
  const auto v4 = find_host("192.0.2.1", 4711);
  REQUIRE(v4.size() == 1);
  CHECK(v4[0].figures() == "192.0.2.1");
  CHECK(v4[0].port() == 4711);
  CHECK(find_host("2001:db8::1", 1)[0].figures() == "2001:db8::1");
}

TEST_CASE("hosts that only this machine can reach are refused by name") {
  for (const auto& host :
       {std::string{"127.0.1.1"}, std::string{"::1"}, std::string{"localhost"},
        std::string{"0.0.0.0"}, std::string{"::"},
        std::string{"::ffff:127.0.0.1"}, std::string{},
        std::string{"192.0.2.1\0.evil.example", 23}}) {
    CAPTURE(host);
    CHECK(caught([&] { find_host(host, 1); }).code() == errc::invalid_argument);
  }
}

TEST_CASE("an interface has the addresses that other hosts can reach") {
  if (!own_network::is_possible())
    return skip_case("needs the right to make a network of its own");
  const own_network network;
  const auto second = addresses_of_interface("lo:2", 4711);
  REQUIRE(second.size() == 1);
  CHECK(second[0].figures() == own_network::address_of(2));
  CHECK(second[0].port() == 4711);
  // That of loopback is left out, those of aliases belong to it.
  CHECK(addresses_of_interface("lo", 0).size() == own_network::hosts);
  const auto wanted = find_host(own_network::address_of(2), 1);
  CHECK(common_of(wanted, second).size() == 1);
  CHECK(common_of(wanted, addresses_of_interface("lo:3", 1)).empty());
  const auto unknown = caught([] { addresses_of_interface("l", 0); });
  CHECK(unknown.code() == errc::invalid_argument);
  CHECK(says(unknown, "there is no network interface 'l'; this host has lo "
                      "(127.0.0.1"));
  CHECK(says(unknown, "lo:4 (10.77.0.4)"));
}

TEST_CASE("an interface of loopback alone is refused") {
  if (!own_network::is_possible())
    return skip_case("needs the right to make a network of its own");
  const own_network network{own_network::with::loopback_alone};
  const auto e = caught([] { addresses_of_interface("lo", 0); });
  CHECK(e.code() == errc::invalid_argument);
  CHECK(says(e, "'lo' has no address at which other hosts can reach it; this "
                "host has lo (127.0.0.1"));
}

} // TEST_SUITE("base.socket_address")
