// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/version.hpp>

#include <doctest/doctest.h>

#include <cstdio>
#include <string>

using namespace troupe;

TEST_SUITE("base.version") {

TEST_CASE("the version is the same as text, as number and in the library") {
  int major = -1, minor = -1, patch = -1;
  REQUIRE(std::sscanf(TROUPE_VERSION, "%d.%d.%d", &major, &minor, &patch) == 3);
  CHECK(TROUPE_VERSION_NUMBER == major * 10000 + minor * 100 + patch);
  CHECK(std::string{version()} == TROUPE_VERSION);
}

TEST_CASE("the facts of the build name the compiler and the kind of build") {
  const auto facts = build_facts();
  const bool by_gcc = facts.starts_with("GCC ");
  CHECK((by_gcc || facts.starts_with("Clang ")));
  CHECK(facts.find(", ") != std::string::npos);
  CHECK(facts.find('\n') == std::string::npos);
  for (const char* part : {"dashboard", "gloo", "mpi", "cuda"}) {
    CAPTURE(part);
    const auto place = facts.find(part);
    REQUIRE(place != std::string::npos);
    CHECK(facts.rfind("with", place) > facts.find(';'));
  }
}

} // TEST_SUITE("base.version")
