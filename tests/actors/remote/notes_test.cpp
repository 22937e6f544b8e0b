// SPDX-License-Identifier: Apache-2.0

// Processes of a run send each other texts of the application.

#include <troupe/actors/executor.hpp>

#include <actors/remote/process_group.hpp>
#include <actors/small_nets.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <string>
#include <thread>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("actors.remote.notes") {

TEST_CASE("notes arrive in order, without those that are too long") {
  const auto net = make_mlp();
  process_group run{
    2, [&](node_options node) -> std::string {
      auto options = options_over(2, graph::merge_strategy::all_reduce);
      options.parameters = net.parameters();
      options.nodes = node;
      executor exe{net.main, options};
      if (node.process == 1) {
        exe.send_note(0, "first");
        exe.send_note(0, std::string(300 << 10, 'x'));
        exe.send_note(0, "second");
        exe.send_note(1, "to itself");
        return exe.take_notes().empty() ? "none" : "some";
      }
      std::string got;
      for (int notes = 0; notes < 2;) {
        for (auto& note : exe.take_notes()) {
          got += std::to_string(note.from) + ": " + note.text + "; ";
          ++notes;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      return got;
    }};
  CHECK(run.wait(0).last_word == "1: first; 1: second; ");
  CHECK(run.wait(1).last_word == "none");
}

TEST_CASE("a run of one process has no notes") {
  const auto net = make_mlp();
  executor exe{net.main, {.parameters = net.parameters()}};
  exe.send_note(0, "to itself");
  CHECK(exe.take_notes().empty());
}

} // TEST_SUITE("actors.remote.notes")
