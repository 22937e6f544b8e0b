// SPDX-License-Identifier: Apache-2.0
#include <troupe/dashboard/server/request_text.hpp>

#include <doctest/doctest.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>

using namespace troupe::dashboard;

TEST_SUITE("dashboard.request_text") {

TEST_CASE("a target is a path and decoded parameters") {
  const auto parsed = parse_target("/api/v1/why?handle=7&name=a%20b%2B&empty");
  REQUIRE(parsed);
  CHECK(parsed->path == "/api/v1/why");
  const std::map<std::string, std::string> expected{
    {"handle", "7"}, {"name", "a b+"}, {"empty", ""}};
  CHECK(parsed->query == expected);
  CHECK(parse_target("/").value().query.empty());
  CHECK(parse_target("/?").value().path == "/");
}

TEST_CASE("a path stays as it was sent") {
  CHECK(parse_target("/a/%2e%2e/b").value().path == "/a/%2e%2e/b");
}

TEST_CASE("targets that are no path, or escape wrongly, are refused") {
  for (const auto* wrong : {"", "*", "a", "http://127.0.0.1/", "/a b", "/#a",
                            "/?a=%", "/?a=%4", "/?a=%zz", "/?a=%-1", "/?a=%0a",
                            "/?%00", "/?a=1&a=2", "/\x7f", "/\n", "/\xc3\xa4"})
    CHECK_MESSAGE(!parse_target(wrong), wrong);
}

TEST_CASE("a target has at most 16 parameters") {
  std::string target = "/?";
  for (int i = 0; i < 16; ++i)
    target += "p" + std::to_string(i) + "&";
  CHECK(parse_target(target));
  CHECK_FALSE(parse_target(target + "q"));
}

TEST_CASE("the first cookie of a name is found among others") {
  CHECK(cookie_in("a=1; troupe_80=x=y ;troupe_80=z", "troupe_80") == "x=y");
  CHECK(cookie_in("troupe_80=", "troupe_80") == "");
  CHECK_FALSE(cookie_in("troupe_8=1; xtroupe_80=2; troupe_80", "troupe_80"));
  CHECK_FALSE(cookie_in("", "troupe_80"));
}

TEST_CASE("a bearer's secret follows the scheme, however that is written") {
  CHECK(bearer_in("Bearer abc") == "abc");
  CHECK(bearer_in("bEARER   abc ") == "abc");
  CHECK_FALSE(bearer_in("Basic abc"));
  CHECK_FALSE(bearer_in("Bearer"));
  CHECK_FALSE(bearer_in("Bearerabc"));
}

TEST_CASE("a word of a list is found as a whole") {
  CHECK(is_in_list("a, troupe.v1 ,b", "troupe.v1"));
  CHECK_FALSE(is_in_list("troupe.v11,Troupe.v1", "troupe.v1"));
  CHECK_FALSE(is_in_list("", "troupe.v1"));
}

TEST_CASE("a host has a name or address, and perhaps a port") {
  const auto parts = [](std::string_view header) -> std::string {
    const auto parsed = parse_host(header);
    if (!parsed)
      return "wrong";
    return parsed->host
           + (parsed->port ? " " + std::to_string(*parsed->port) : "");
  };
  CHECK(parts("127.0.0.1:8000") == "127.0.0.1 8000");
  CHECK(parts("LocalHost") == "localhost");
  CHECK(parts("[::1]:80") == "[::1] 80");
  CHECK(parts("[::1]") == "[::1]");
  for (const auto* wrong :
       {"", ":80", "a:", "a:65536", "a:-1", "a:8x", "a:1:2", "[::1", "::1",
        "[]", "[::1]x:80", "a b", "a/b", "user@a", "a,b"})
    CHECK_MESSAGE(parts(wrong) == "wrong", wrong);
}
} // TEST_SUITE("dashboard.request_text")
