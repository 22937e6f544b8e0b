// SPDX-License-Identifier: Apache-2.0
#include <support/files.hpp>
#include <troupe/apps/elastic/job_members.hpp>
#include <troupe/comm/job_epoch.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::apps;
using namespace troupe::test;
using namespace std::chrono_literals;

TEST_SUITE("apps.elastic.job_members") {

namespace {

using numbers = std::vector<std::uint64_t>;

struct job {
  temporary_folder at;
  std::string folder = at.path().string();
  job_members members{folder, 3};
  job_members::clock::time_point now = job_members::clock::now();

  comm::job_epoch epoch() const { return *comm::read_epoch(folder); }
  void tell(std::uint64_t member) {
    comm::tell_epoch_ended(folder, epoch().number, member);
  }
};

} // namespace

TEST_CASE_FIXTURE(job, "the first epoch has a process in each place") {
  CHECK(epoch() == comm::job_epoch{1, {0, 1, 2}});
}

TEST_CASE_FIXTURE(job, "who follows a process has a new number and the last "
                       "rank") {
  CHECK(members.replace(0, now) == 3);
  members.begin_epoch();
  CHECK(epoch() == comm::job_epoch{2, {1, 2, 3}});
  CHECK(members.number_in(0) == 3);
  CHECK(epoch().rank_of(3) == 2);
  CHECK_FALSE(epoch().rank_of(0));
}

TEST_CASE_FIXTURE(job, "a place can stay empty") {
  members.remove(1);
  members.begin_epoch();
  CHECK(members.living() == 2);
  CHECK(epoch().members == numbers{0, 2});
}

TEST_CASE_FIXTURE(job, "a place whose processes end early again and again is "
                       "given up") {
  int starts = 0;
  while (members.may_start_again(1, now) && starts < 1000) {
    members.replace(1, now);
    now += 10ms;
    ++starts;
  }
  CHECK(starts > 5);
  CHECK(starts < 100);
}

TEST_CASE_FIXTURE(job, "a place that is given up leaves the others time for "
                       "progress") {
  for (int i = 0; members.may_start_again(1, now) && i < 1000; ++i) {
    members.replace(1, now);
    members.begin_epoch();
    CHECK_FALSE(members.makes_no_progress());
  }
  members.remove(1);
  for (int i = 0; i < 50; ++i)
    members.begin_epoch();
  CHECK_FALSE(members.makes_no_progress());
}

TEST_CASE_FIXTURE(job, "processes that live for a while can end any number of "
                       "times") {
  for (int i = 0; i < 1000; ++i) {
    now += 1s;
    REQUIRE(members.may_start_again(1, now));
    members.replace(1, now);
  }
}

TEST_CASE_FIXTURE(job, "a process that does not notice the end of an epoch is "
                       "silent after some seconds") {
  CHECK(members.look_for_silent(now).empty());
  tell(0);
  CHECK(members.look_for_silent(now).empty());
  CHECK(members.look_for_silent(now + 1s).empty());
  tell(2);
  CHECK(members.look_for_silent(now + 5s) == std::vector<std::size_t>{1});
  CHECK(members.look_for_silent(now + 6s).empty()); // it has time to end
  members.replace(1, now + 6s);
  members.begin_epoch();
  CHECK(members.look_for_silent(now + 20s).empty());
}

TEST_CASE_FIXTURE(job, "a process that is added comes in when it waits for an "
                       "epoch") {
  const auto place = members.add(now);
  CHECK(place == 3);
  CHECK(members.number_in(place) == 3);
  CHECK(members.started() == 4);
  CHECK(members.living() == 3);
  CHECK_FALSE(members.let_in());
  comm::tell_epoch_ended(folder, 0, 3);
  CHECK(members.let_in());
  CHECK_FALSE(members.let_in());
  members.begin_epoch();
  CHECK(epoch().members == numbers{0, 1, 2, 3});
}

TEST_CASE_FIXTURE(job, "a process that is added takes an empty place") {
  CHECK(members.remove(1));
  CHECK(members.add(now) == 1);
  CHECK(members.number_in(1) == 3);
  CHECK_FALSE(members.remove(1)); // it was in no epoch
}

TEST_CASE_FIXTURE(job, "who follows a process that has not come in has not "
                       "either") {
  const auto place = members.add(now);
  CHECK(members.replace(place, now) == 4);
  members.begin_epoch();
  CHECK(epoch().members == numbers{0, 1, 2});
  comm::tell_epoch_ended(folder, 0, 3);
  CHECK_FALSE(members.let_in());
  comm::tell_epoch_ended(folder, 0, 4);
  CHECK(members.let_in());
}

TEST_CASE_FIXTURE(job, "a process is a guest until it has taken part in a "
                       "step") {
  CHECK_FALSE(members.is_guest(0));
  const auto place = members.add(now);
  CHECK(members.is_guest(place));
  comm::tell_step_done(folder, epoch().number); // without it
  comm::tell_epoch_ended(folder, 0, 3);
  members.let_in();
  members.begin_epoch();
  CHECK(members.is_guest(place));
  comm::tell_step_done(folder, epoch().number);
  members.begin_epoch();
  CHECK_FALSE(members.is_guest(place));
  members.replace(place, now);
  CHECK_FALSE(members.is_guest(place)); // the job has counted on it
}

TEST_CASE_FIXTURE(job, "a guest that loses patience does not make others "
                       "silent") {
  members.add(now);
  comm::tell_epoch_ended(folder, 0, 3);
  members.let_in();
  members.begin_epoch();
  tell(3);
  CHECK(members.look_for_silent(now).empty());
  CHECK(members.look_for_silent(now + 5s).empty());
  tell(0);
  CHECK(members.look_for_silent(now + 6s).empty());
  CHECK(members.look_for_silent(now + 10s) == std::vector<std::size_t>{1, 2});
}

TEST_CASE_FIXTURE(job, "an epoch says if nobody in it can have the state") {
  comm::tell_step_done(folder, epoch().number);
  for (std::size_t place : {0, 1, 2})
    members.replace(place, now);
  members.begin_epoch();
  CHECK(epoch().has_only_newcomers);
}

TEST_CASE_FIXTURE(job, "before the first step nobody needs the state of "
                       "others") {
  for (std::size_t place : {0, 1, 2})
    members.replace(place, now);
  members.begin_epoch();
  CHECK_FALSE(epoch().has_only_newcomers);
}

TEST_CASE_FIXTURE(job, "a member that took part in a step has the state") {
  comm::tell_step_done(folder, epoch().number);
  members.replace(0, now);
  members.replace(1, now);
  members.begin_epoch();
  CHECK_FALSE(epoch().has_only_newcomers);
}

TEST_CASE_FIXTURE(job, "many epochs without a step are no progress") {
  int epochs = 0;
  for (; !members.makes_no_progress() && epochs < 1000; ++epochs)
    members.begin_epoch();
  CHECK(epochs > 5);
  CHECK(epochs < 100);
}

TEST_CASE_FIXTURE(job, "epochs with a step are progress") {
  for (int i = 0; i < 1000; ++i) {
    comm::tell_step_done(folder, epoch().number);
    members.begin_epoch();
    REQUIRE_FALSE(members.makes_no_progress());
  }
}

TEST_CASE_FIXTURE(job, "if an epoch has ended for all, another is due") {
  for (std::uint64_t member : {0, 1, 2}) {
    CHECK_FALSE(members.has_ended());
    tell(member);
  }
  CHECK(members.has_ended());
  CHECK(members.look_for_silent(now).empty());
  members.begin_epoch();
  CHECK(epoch() == comm::job_epoch{2, {0, 1, 2}});
  CHECK_FALSE(members.has_ended());
}

TEST_CASE("what its ranks need to meet is added to an epoch") {
  const temporary_folder at;
  const auto folder = at.path().string();
  std::vector<std::size_t> told;
  job_members members{
    folder, 3,
    [&](comm::job_epoch& epoch, const std::vector<std::size_t>& places) {
      told = places;
      epoch.address = "a";
      epoch.port = 1;
    }};
  CHECK(told == std::vector<std::size_t>{0, 1, 2});
  CHECK(comm::read_epoch(folder)->address == "a");
  members.replace(0, job_members::clock::now());
  members.begin_epoch();
  CHECK(told == std::vector<std::size_t>{1, 2, 0});
  CHECK(members.epoch() == *comm::read_epoch(folder));
}

TEST_CASE_FIXTURE(job, "a certain place can be filled again") {
  members.remove(1);
  members.add_in(1, now);
  CHECK(members.number_in(1) == 3);
  CHECK(members.is_guest(1));
  comm::tell_epoch_ended(folder, 0, 3);
  CHECK(members.let_in());
}

} // TEST_SUITE("apps.elastic.job_members")
