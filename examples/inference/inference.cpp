// SPDX-License-Identifier: Apache-2.0
// Threads of an application share one trained network. The first argument is a
// program folder, as `troupe train digits ... --save FOLDER` writes it.
#include <troupe/graph/paddle/parameter_file.hpp>
#include <troupe/graph/paddle/program_folder.hpp>
#include <troupe/training/data/classifier.hpp>
#include <troupe/training/data/dataset.hpp>
#include <troupe/training/inference_session.hpp>

#include <atomic>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace troupe;

/// The parameters of a folder.
parameter_set load(const graph::program& main, const std::string& folder) {
  auto values = std::make_shared<scope>();
  arena memory{make_host_memory_source()};
  graph::load_parameters(main, folder, *values, memory);
  return {values};
}

void run(const std::string& folder) {
  const auto program = graph::read_program_folder(folder);
  const auto test =
    program.test ? *program.test : graph::clone_for_test(program.main);
  const auto logits = find_classifier(test).value().logits;
  arena memory{make_host_memory_source()};
  const auto digits = load_dataset("data/digits", describe_feeds(test),
                                   dataset_part::train, memory);
  const auto row = [&](const char* column, std::int64_t number) {
    return digits.columns.at(column).rows(number, 1);
  };
  const auto image = [&](std::int64_t number) {
    return feed_map{{"image", row("image", number)}};
  };

  inference_session session{
    test,
    load(program.main, folder),
    {.outputs = {logits}, .max_batch = 32, .example = share_batch(image(0))}};
  constexpr std::int64_t callers = 8, questions = 100;
  std::atomic<std::int64_t> right{0};
  std::vector<std::jthread> threads;
  for (std::int64_t caller = 0; caller < callers; ++caller)
    threads.emplace_back([&, caller] {
      for (std::int64_t i = caller; i < callers * questions; i += callers) {
        const auto answer = session.predict(image(i)).get();
        right += count_hits(answer.outputs.at(logits), row("label", i)).correct;
      }
    });
  threads.clear();
  const auto counts = session.counts();
  std::printf("%lld of %llu right, in %llu steps\n",
              static_cast<long long>(right),
              static_cast<unsigned long long>(counts.requests),
              static_cast<unsigned long long>(counts.steps));
}

} // namespace

int main(int count, char** words) try {
  if (count != 2)
    throw std::runtime_error("usage: inference FOLDER");
  run(words[1]);
} catch (const std::exception& failure) {
  std::fprintf(stderr, "%s\n", failure.what());
  return 1;
}
