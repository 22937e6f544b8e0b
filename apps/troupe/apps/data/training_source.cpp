// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/data/training_source.hpp>

#include <troupe/apps/usage_error.hpp>
#include <troupe/graph/gradients.hpp>
#include <troupe/training/data/classifier.hpp>
#include <troupe/training/data/dataset.hpp>
#include <troupe/training/data/prefetching_source.hpp>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace troupe::apps {

namespace {

/// The feeds that `--feeds` can hold. They include the gradient of the loss, if
/// the gradient scale is custom, and the persistable variables.
std::vector<feed_info> wanted_feeds(const train_options& options,
                                    const program_bundle& bundle) {
  std::vector<feed_info> feeds = bundle.feeds;
  const std::string gradient = graph::gradient_name(bundle.loss);
  if (options.network.gradient_scale == "custom"
      && !find_feed(feeds, gradient)) {
    shape dims = bundle.main.main().var(bundle.loss).dims;
    feed_info fed{gradient, dtype::float32, dims, std::nullopt};
    fed.whole = dims.rank() == 0 || dims[0] >= 0;
    feeds.push_back(std::move(fed));
  }
  for (feed_info& feed : describe_persistable(bundle.main))
    feeds.push_back(std::move(feed));
  return feeds;
}

} // namespace

std::unique_ptr<batch_source> open_source(const train_options& options,
                                          const program_bundle& bundle,
                                          arena& memory, batch_share share) {
  const data_options& data = options.data;
  if (!data.feeds.empty())
    return open_feeds(data, wanted_feeds(options, bundle), memory, share);
  const std::int64_t batch = choose_batch(data, bundle);
  if (!data.data.empty())
    return make_dataset_source(
      load_dataset(data.data, bundle.feeds, dataset_part::train, memory),
      {.batch = batch, .seed = options.seed, .share = share}, memory);
  if (!data.synthetic && !options.dry_run)
    throw usage_error("train needs --data, --feeds or --synthetic");
  return make_synthetic_source(bundle.feeds, batch, options.seed, memory,
                               share);
}

std::unique_ptr<batch_source> make_source(const train_options& options,
                                          const program_bundle& bundle,
                                          arena& memory, batch_share share,
                                          caf::actor_system& system) {
  auto source = open_source(options, bundle, memory, share);
  if (options.data.data.empty() && options.data.feeds.empty())
    return source;
  constexpr std::size_t batches_ahead = 2;
  return make_prefetching_source(std::move(source), batches_ahead, system);
}

std::unique_ptr<batch_source> open_held_out(const train_options& options,
                                            const program_bundle& bundle,
                                            arena& memory) {
  if (options.dry_run || !has_held_out(options.data.data)
      || !find_classifier(bundle.test))
    return nullptr;
  return make_dataset_source(load_dataset(options.data.data, bundle.feeds,
                                          dataset_part::held_out, memory),
                             {.batch = 256, .shuffle = false}, memory);
}

std::uint64_t count_steps(const train_options& options,
                          const batch_source& source) {
  if (options.steps > 0)
    return options.steps;
  const auto epochs = std::max<std::uint64_t>(1, options.epochs);
  if (epochs > std::numeric_limits<std::uint64_t>::max() / 2
                 / source.steps_per_epoch())
    throw usage_error("--epochs " + std::to_string(epochs) + " of "
                      + std::to_string(source.steps_per_epoch())
                      + " steps are more than can be counted");
  return epochs * source.steps_per_epoch();
}

} // namespace troupe::apps
