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
       {job_epoch{1, {0}}, job_epoch{7, {5, 3, 12}, true},
        job_epoch{2, {4, 1}, false, {1, 0}, "fe80::2", 4711},
        job_epoch{3,
                  {4, 1},
                  false,
                  {1, 0},
                  "10.0.0.2",
                  4711,
                  {{"a", "f1", "10.0.0.1"}, {"b", "f2", "10.0.0.2"}},
                  "f1-1"}}) {
    write_epoch(folder, e);
    CHECK(read_epoch(folder) == e);
  }
  CHECK(at.entries() == 1);
}

TEST_CASE("a file that is no epoch is refused") {
  const temporary_folder at;
  for (const char* text :
       {"", "troupe", "troupe epoch 1 of 2 new\n0 0\n",
        "troupe epoch 1 of 0 new\n", "troupe epoch x of 1 new\n0 0\n",
        "troupe epoch 1 of 99999999999 known\n0 0\n",
        "other epoch 1 of 1 known\n0 0\n", "troupe epoch 1 of -1 known\n0 0\n",
        "troupe epoch 1 of 1\n0 0\n", "troupe epoch 1 of 1 odd\n0 0\n",
        "troupe epoch 1 of 1 new\n0\n", "troupe epoch 1 of 1 new\n0 0\nat x\n",
        "troupe epoch 1 of 1 new\n0 0\nor x 1\n",
        "troupe epoch 1 of 1 new\n0 0\nat x 1 y\n",
        "troupe epoch 1 of 1 new\n0 0\nsite a f1\n",
        "troupe epoch 1 of 1 new\n0 0\norigin\n",
        "troupe epoch 1 of 1 new\n0 1\nsite a f1 10.0.0.1\n"}) {
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

TEST_CASE("an epoch knows whether its ranks are on several hosts") {
  CHECK_FALSE(job_epoch{1, {0, 1}}.is_on_several_hosts());
  CHECK_FALSE(job_epoch{1, {0, 1}, false, {2, 2}}.is_on_several_hosts());
  CHECK(job_epoch{1, {0, 1, 2}, false, {0, 0, 1}}.is_on_several_hosts());
}

TEST_CASE("what was told in one folder can be repeated in another") {
  const temporary_folder here, there;
  const auto from = here.path().string(), to = there.path().string();
  write_epoch(from, {1, {0}});
  tell_epoch_ended(from, 3, 1);
  tell_step_done(from, 3);
  note_state(from, 7);
  tell_all_done(from);
  const auto told = all_told(from);
  CHECK(told.size() == 5);
  for (auto& word : told)
    repeat_told(to, word);
  CHECK(has_epoch_ended(to, 3, 1));
  CHECK(has_done_step(to));
  CHECK(has_done_step(to, 3));
  CHECK(has_state(to, 7));
  CHECK(is_all_done(to));
  for (const char* other :
       {"epoch", "ended-/../x", "", "ended-1 2", "x", "all-done-2", "state-/x"})
    repeat_told(to, other);
  CHECK(there.entries() == 5);
}

TEST_CASE("nothing is told in a folder that is gone") {
  CHECK_NOTHROW(tell_epoch_ended("/nonexistent/x", 1, 1));
  CHECK_NOTHROW(tell_step_done("/nonexistent/x", 1));
  CHECK_FALSE(read_epoch("/nonexistent/x"));
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
