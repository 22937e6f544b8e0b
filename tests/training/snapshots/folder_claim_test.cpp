// SPDX-License-Identifier: Apache-2.0
#include <troupe/training/snapshots/folder_claim.hpp>

#include <support/caught.hpp>
#include <support/files.hpp>
#include <support/waiting_child.hpp>

#include <doctest/doctest.h>

#include <optional>
#include <string>

#include <sys/stat.h>
#include <unistd.h>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("training.snapshots.folder_claim") {

TEST_CASE("the processes of a run share its folder, another run is refused") {
  const temporary_folder at;
  const folder_claim first{at.path(), "job-1"};
  const folder_claim second{at.path(), "job-1"};
  CHECK_FALSE(first.doubt());
  const auto e = caught([&] { const folder_claim other{at.path(), "job-2"}; });
  CHECK(e.code() == errc::invalid_argument);
  CHECK(contains(e.message(), at.path().string() + " is used by another run"));
  CHECK(
    contains(e.message(), "process " + std::to_string(::getpid()) + " on "));
  const folder_claim third{at.path(), "job-1"}; // the refused one left no trace
}

TEST_CASE("a run without a name shares its folder with nobody") {
  const temporary_folder at;
  std::optional<folder_claim> first{std::in_place, at.path(), ""};
  CHECK(caught([&] {
          const folder_claim other{at.path(), ""};
        }).code()
        == errc::invalid_argument);
  first.reset();
  const folder_claim next{at.path(), ""};
}

TEST_CASE("who was killed has no claim any more") {
  const temporary_folder at;
  waiting_child owner{[&](auto wait) {
    const folder_claim own{at.path(), "job-1"};
    wait();
  }};
  const auto e = caught([&] { const folder_claim other{at.path(), "job-2"}; });
  CHECK(
    contains(e.message(), "process " + std::to_string(owner.id()) + " on "));
  owner.kill();
  const folder_claim next{at.path(), "job-2"};
}

TEST_CASE("a folder that cannot have an owner is refused") {
  const temporary_folder at;
  ::mkdir((at / "owner").c_str(), 0700);
  CHECK(caught([&] {
          const folder_claim own{at.path(), ""};
        }).code()
        == errc::io_failure);
}

} // TEST_SUITE("training.snapshots.folder_claim")
