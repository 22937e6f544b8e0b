// SPDX-License-Identifier: Apache-2.0

// Each process feeds the samples of its own devices and keeps the state of its
// own devices.

#include <troupe/actors/executor.hpp>

#include <actors/remote/process_group.hpp>
#include <actors/small_nets.hpp>
#include <support/caught.hpp>
#include <support/files.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::test;
using graph::merge_strategy;

TEST_SUITE("actors.remote.batch_shares") {

namespace {

/// Some give shards of different sizes, some leave devices without samples.
const std::vector<std::int64_t> batch_sizes{10, 1, 3, 7};

std::string counts(const step_result& r) {
  return bits_of(std::vector<double>{r.samples.begin(), r.samples.end()});
}

std::string text_of(const step_result& r) {
  return bits_of({&r.loss, 1}) + bits_of(r.losses) + counts(r);
}

/// Options of one of several processes, or of one process that is compared with
/// them.
executor_options options_in(const small_net& net, std::size_t processes,
                            merge_strategy strategy, node_options node) {
  auto options = options_over(processes, strategy);
  options.parameters = net.parameters();
  if (node.processes() > 1)
    options.nodes = std::move(node);
  else // processes share no parameters either
    options.lowering.share_parameters = options.lowering.gather_products =
      false;
  return options;
}

/// Trains with one batch of each size. The last word are all results, then the
/// values of the first device.
std::string train_shares(const small_net& net, std::size_t processes,
                         merge_strategy strategy, node_options node) {
  auto options = options_in(net, processes, strategy, std::move(node));
  options.seed = 5;
  executor exe{net.main, options};
  std::string text;
  for (std::size_t s = 0; s < batch_sizes.size(); ++s)
    text += text_of(exe.run(exe.own_share(net.batch(s, batch_sizes[s]))));
  exe.synchronize_parameters();
  const auto values = values_of(exe.parameters());
  return text + bits_of(std::vector<double>{values.begin(), values.end()});
}

std::vector<std::string> last_words(process_group& run, std::size_t processes) {
  std::vector<std::string> words;
  for (std::size_t p = 0; p < processes; ++p) {
    const auto end = run.wait(p);
    CHECK(end.exited);
    words.push_back(end.last_word);
  }
  return words;
}

} // namespace

TEST_CASE("processes that feed their own samples get the bits of one process") {
  constexpr std::size_t processes = 4;
  for (auto& net : {make_mlp(), make_dropout_net(), make_word2vec()}) {
    CAPTURE(net.name);
    const auto expected =
      train_shares(net, processes, merge_strategy::all_reduce, {});
    process_group run{processes, [&](node_options node) {
                        return train_shares(net, processes,
                                            merge_strategy::all_reduce,
                                            std::move(node));
                      }};
    for (auto& word : last_words(run, processes))
      CHECK(word == expected);
  }
}

TEST_CASE("state that one process updates is brought to the first on request") {
  constexpr std::size_t processes = 3;
  const auto net = make_mlp();
  const auto expected =
    train_shares(net, processes, merge_strategy::reduce, {});
  process_group run{processes, [&](node_options node) {
                      return train_shares(net, processes,
                                          merge_strategy::reduce,
                                          std::move(node));
                    }};
  const auto words = last_words(run, processes);
  CHECK(words[0] == expected);
  CHECK(words[1].size() < expected.size()); // lacks the state of the others
}

TEST_CASE("optimizer state is only in the process that updates it") {
  constexpr std::size_t processes = 2;
  const auto net = make_mlp();
  process_group run{processes, [&](node_options node) {
                      executor exe{net.main, options_in(net, processes,
                                                        merge_strategy::reduce,
                                                        std::move(node))};
                      std::string held;
                      for (auto& name : exe.parameters().names())
                        if (name.find("velocity") != std::string::npos
                            && exe.parameters().find(name)->has_value())
                          held += name + " ";
                      exe.run(exe.own_share(net.batch(0, 4)));
                      exe.run(exe.own_share(net.batch(1, 4)));
                      return held;
                    }};
  const auto words = last_words(run, processes);
  CHECK_FALSE(words[0].empty());
  CHECK_FALSE(words[1].empty());
  for (auto& w : words)
    for (auto& other : words)
      if (&w != &other)
        CHECK(w.find(other.substr(0, other.find(' '))) == std::string::npos);
}

TEST_CASE("processes save together, and go on from what they have saved") {
  constexpr std::size_t processes = 2;
  const temporary_folder folder;
  const auto net = make_mlp();
  const auto act = [&](node_options node) {
    const auto file = folder / (node.processes() > 1 ? "saved" : "expected");
    executor exe{net.main, options_in(net, processes, merge_strategy::reduce,
                                      std::move(node))};
    const auto steps = [&](std::uint64_t from) {
      std::string text;
      for (auto s = from; s < from + 2; ++s)
        text += text_of(exe.run(exe.own_share(net.batch(s, 5))));
      return text;
    };
    const auto first = steps(0);
    exe.save(file);
    const auto second = steps(2); // process 0 has written the file
    exe.load(file);
    return first + second + (steps(2) == second ? "again" : "otherwise");
  };
  const auto expected = act({});
  process_group run{processes, act};
  for (auto& word : last_words(run, processes))
    CHECK(word == expected);
  CHECK(expected.ends_with("again"));
  CHECK(read_bytes(folder / "saved") == read_bytes(folder / "expected"));
}

TEST_CASE("steps go on after state was brought to the first process") {
  constexpr std::size_t processes = 2;
  const auto net = make_mlp();
  const auto act = [&](node_options node) {
    executor exe{net.main, options_in(net, processes, merge_strategy::reduce,
                                      std::move(node))};
    std::string text;
    for (std::uint64_t s = 0; s < 4; ++s) {
      text += text_of(exe.run(exe.own_share(net.batch(s, 5))));
      exe.synchronize_parameters();
      // A step that fails in one process gives up its calls in the others.
      auto bad = exe.own_share(net.batch(s, 5));
      if (bad.at("label").num_samples() > 2) // not in process 1
        bad.at("label").values<std::int64_t>()[0] = 99;
      text += caught([&] { exe.run(bad); }).code() == errc::out_of_range
                ? "failed "
                : "ran ";
    }
    return text;
  };
  const auto expected = act({});
  process_group run{processes, act};
  for (auto& word : last_words(run, processes))
    CHECK(word == expected);
}

TEST_CASE("processes that accumulate gradients get the bits of one process") {
  constexpr std::size_t processes = 2;
  for (auto& net : {make_mlp(), make_dropout_net(), make_word2vec()})
    for (auto strategy : {merge_strategy::all_reduce, merge_strategy::reduce}) {
      CAPTURE(net.name);
      const auto act = [&](node_options node) {
        const auto is_first = node.process == 0;
        auto options = options_in(net, processes, strategy, std::move(node));
        options.accumulate = 3;
        executor exe{net.main, options};
        std::string text;
        for (std::size_t s = 0; s < 8; ++s) {
          if (s == 4) // so the second update has two steps
            exe.update_in_next_step();
          const auto size = batch_sizes[s % batch_sizes.size()];
          const auto r = exe.run(exe.own_share(net.batch(s, size)));
          text += text_of(r) + (r.updates ? "updates " : "");
          if (s == 2)
            exe.require_same_replicas(); // calls of no step
        }
        exe.synchronize_parameters();
        if (!is_first && strategy == merge_strategy::reduce)
          return text; // lacks the state of the other
        const auto values = values_of(exe.parameters());
        return text
               + bits_of(std::vector<double>{values.begin(), values.end()});
      };
      const auto expected = act({});
      process_group run{processes, act};
      const auto words = last_words(run, processes);
      CHECK(words[0] == expected);
      CHECK(expected.starts_with(words[1]));
      CHECK(words[1].size() > 100);
    }
}

TEST_CASE("a step that fails in one process takes its update with it in all") {
  constexpr std::size_t processes = 2;
  const auto net = make_mlp();
  process_group run{processes, [&](node_options node) {
                      auto options =
                        options_in(net, processes, merge_strategy::all_reduce,
                                   std::move(node));
                      options.accumulate = 4;
                      executor exe{net.main, options};
                      std::string text;
                      std::vector<float> before;
                      for (std::uint64_t s = 0; s < 12; ++s) {
                        auto batch = exe.own_share(net.batch(s, 5));
                        // Not in process 1, where the step may end first.
                        if (s == 5 && batch.at("label").num_samples() > 2)
                          batch.at("label").values<std::int64_t>()[0] = 99;
                        try {
                          text += exe.run(batch).updates ? "updates " : "ran ";
                        } catch (const error&) {
                          // Process 1 may have ended step 5 before.
                          text += s == 5 ? "ran " : "failed ";
                        }
                        if (s == 3)
                          before = values_of(exe.parameters());
                        if (s == 7 && values_of(exe.parameters()) != before)
                          text += "(changed) ";
                      }
                      exe.require_same_replicas();
                      return text;
                    }};
  for (auto& word : last_words(run, processes))
    CHECK(word
          == "ran ran ran updates ran ran failed failed "
             "ran ran ran updates ");
}

TEST_CASE("a process may feed no samples, but not all of them") {
  constexpr std::size_t processes = 2;
  const auto net = make_mlp();
  process_group run{
    processes, [&](node_options node) {
      const auto process = node.process;
      executor exe{net.main,
                   options_in(net, processes, merge_strategy::all_reduce,
                              std::move(node))};
      const auto mine = process == 0 ? feed_map{} : net.batch(0, 5);
      const auto r = exe.run(mine);
      const auto e = caught([&] { exe.run({}); });
      if (e.code() != errc::invalid_argument
          || !says(e, "a batch without samples"))
        return std::string{e.what()};
      exe.run(mine); // the run goes on
      return counts(r) + (r.loss == r.losses[1] ? "same" : "different");
    }};
  for (auto& word : last_words(run, processes))
    CHECK(word == bits_of(std::vector<double>{0, 5}) + "same");
}

TEST_CASE("a process that forgets one of its feeds fails before the step") {
  constexpr std::size_t processes = 2;
  const auto net = make_mlp();
  process_group run{processes, [&](node_options node) {
                      executor exe{net.main,
                                   options_in(net, processes,
                                              merge_strategy::all_reduce,
                                              std::move(node))};
                      auto half = exe.own_share(net.batch(0, 4));
                      half.erase("label");
                      const auto e = caught([&] { exe.run(half); });
                      exe.run(exe.own_share(net.batch(0, 4)));
                      return std::string{e.what()};
                    }};
  for (auto& word : last_words(run, processes))
    CHECK(word.find("nothing was fed") != std::string::npos);
}

} // TEST_SUITE("actors.remote.batch_shares")
