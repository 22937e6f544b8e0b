// SPDX-License-Identifier: Apache-2.0
#include <troupe/dashboard/server/own_hosts.hpp>

#include <doctest/doctest.h>

#include <string>

using namespace troupe::dashboard;

TEST_SUITE("dashboard.own_hosts") {

TEST_CASE("on loopback a server has the names of loopback, with its port") {
  const own_hosts hosts{{.host = "127.0.0.1", .port = 8000}};
  CHECK(hosts.knows("127.0.0.1:8000"));
  CHECK(hosts.knows("LOCALHOST:8000"));
  CHECK(hosts.knows("[::1]:8000"));
  for (const auto* other :
       {"127.0.0.1", "127.0.0.1:8001", "localhost", "rebound.example:8000",
        "127.0.0.2:8000", "127.0.0.1.rebound.example:8000", "", "[::1:8000"})
    CHECK_MESSAGE(!hosts.knows(other), other);
  CHECK(hosts.origin() == "http://127.0.0.1:8000");
}

TEST_CASE("the usual port of the scheme can be left out") {
  CHECK(own_hosts{{.host = "127.0.0.1", .port = 80}}.knows("localhost"));
  const own_hosts tls{{.host = "127.0.0.1", .port = 443, .has_tls = true}};
  CHECK(tls.knows("localhost"));
  CHECK(tls.knows("localhost:443"));
  CHECK_FALSE(tls.knows("localhost:80"));
}

TEST_CASE("off loopback a server has its address and further names only") {
  const own_hosts hosts{{.host = "192.0.2.1",
                         .port = 8000,
                         .is_loopback = false,
                         .has_tls = true,
                         .is_further_name = [](const std::string& host) {
                           return host == "node7.example";
                         }}};
  CHECK(hosts.knows("192.0.2.1:8000"));
  CHECK(hosts.knows("Node7.example:8000"));
  CHECK_FALSE(hosts.knows("localhost:8000"));
  CHECK_FALSE(hosts.knows("127.0.0.1:8000"));
  CHECK_FALSE(hosts.knows("node8.example:8000"));
}

TEST_CASE("an origin is own if scheme, host and port are the request's") {
  const own_hosts hosts{{.host = "127.0.0.1", .port = 8000}};
  const auto* const host = "localhost:8000";
  CHECK(hosts.is_own_origin("http://localhost:8000", host));
  for (const auto* other :
       {"https://localhost:8000", "http://localhost:8001", "http://localhost",
        "http://127.0.0.1:8000", "http://localhost:8000.rebound.example",
        "http://localhost:8000/", "null", "", "localhost:8000"})
    CHECK_MESSAGE(!hosts.is_own_origin(other, host), other);
}
} // TEST_SUITE("dashboard.own_hosts")
