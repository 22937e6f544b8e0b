// SPDX-License-Identifier: Apache-2.0
#include <troupe/comm/job_epoch.hpp>

#include <support/caught.hpp>
#include <support/files.hpp>

#include <doctest/doctest.h>

#include <string>

using namespace troupe;
using namespace troupe::comm;
using namespace troupe::test;

TEST_SUITE("comm.job_epoch") {

TEST_CASE("what is written is read, and replaced as a whole") {
  const temporary_folder at;
  const auto folder = at.path().string();
  CHECK_FALSE(read_epoch(folder));
  for (const job_epoch& e :
       {job_epoch{1, {0}}, job_epoch{7, {5, 3, 12}, true}}) {
    write_epoch(folder, e);
    CHECK(read_epoch(folder) == e);
  }
  CHECK(at.entries() == 1);
}

TEST_CASE("a file that is no epoch is refused") {
  const temporary_folder at;
  for (const char* text :
       {"", "troupe", "troupe epoch 1 of 2 new\n0\n",
        "troupe epoch 1 of 0 new\n", "troupe epoch x of 1 new\n0\n",
        "troupe epoch 1 of 99999999999 known\n0\n",
        "other epoch 1 of 1 known\n0\n", "troupe epoch 1 of -1 known\n0\n",
        "troupe epoch 1 of 1\n0\n", "troupe epoch 1 of 1 odd\n0\n"}) {
    CAPTURE(text);
    write_bytes(at / "epoch", text);
    CHECK(caught([&] { read_epoch(at.path().string()); }).code()
          == errc::bad_file);
  }
}

TEST_CASE("an epoch that cannot be written is an error with the path") {
  const auto e = caught([] { write_epoch("/nonexistent/x", {1, {0}}); });
  CHECK(e.code() == errc::io_failure);
  CHECK(says(e, "/nonexistent/x/epoch"));
}

TEST_CASE("members tell the end of one epoch, not of others") {
  const temporary_folder at;
  const auto folder = at.path().string();
  tell_epoch_ended(folder, 3, 1);
  CHECK(has_epoch_ended(folder, 3, 1));
  CHECK_FALSE(has_epoch_ended(folder, 3, 2));
  CHECK_FALSE(has_epoch_ended(folder, 4, 1));
}

TEST_CASE("steps are told per epoch and for the whole job") {
  const temporary_folder at;
  const auto folder = at.path().string();
  CHECK_FALSE(has_done_step(folder));
  tell_step_done(folder, 3);
  CHECK(has_done_step(folder));
  CHECK(has_done_step(folder, 3));
  CHECK_FALSE(has_done_step(folder, 4));
}

} // TEST_SUITE("comm.job_epoch")
