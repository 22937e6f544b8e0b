// SPDX-License-Identifier: Apache-2.0
#include <support/caught.hpp>
#include <troupe/graph/layers.hpp>
#include <troupe/training/data/classifier.hpp>
#include <troupe/training/data/feed_info.hpp>

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("training.feed_info") {

namespace {

/// Ids that select rows of an embedding with 7 rows; 3 classes.
struct tagged_text {
  graph::network net;

  tagged_text() {
    auto ids = net.data("ids", {-1, 4}, dtype::int64);
    auto tag = net.data("tag", {-1, 1}, dtype::int64);
    auto rows = layers::embedding(layers::reshape(ids, {0, 2, 2}),
                                  {.rows = 7, .width = 2});
    auto logits = layers::fc(rows, 3);
    layers::mean(layers::softmax_with_cross_entropy(logits, tag));
  }
};

} // namespace

TEST_CASE_FIXTURE(tagged_text, "limits follow from tables and classes, also "
                               "through a reshape") {
  const auto feeds = describe_feeds(net.main);
  REQUIRE(feeds.size() == 2);
  CHECK(find_feed(feeds, "ids")->below == 7);
  CHECK(find_feed(feeds, "tag")->below == 3);
  CHECK(sample_elements(feeds[0]) == 4);
  CHECK(find_feed(feeds, "none") == nullptr);
}

TEST_CASE("a label that the loss ignores is one that may be fed") {
  const auto ignored = [](layers::softmax_with_cross_entropy_options options) {
    graph::network net;
    auto tag = net.data("tag", {-1, 1}, dtype::int64);
    layers::softmax_with_cross_entropy(layers::fc(net.data("x", {-1, 2}), 3),
                                       tag, options);
    return find_feed(describe_feeds(net.main), "tag")->ignored;
  };
  CHECK(ignored({}) == -100);
  CHECK(ignored({.ignore_index = 255}) == 255);
  tagged_text text;
  CHECK_FALSE(find_feed(describe_feeds(text.net.main), "ids")->ignored);
}

TEST_CASE("a fixed axis 0 beside an open one counts no samples") {
  graph::network net;
  layers::add(net.data("x", {-1, 2}), net.data("heat", {1}));
  const auto feeds = describe_feeds(net.main);
  CHECK(find_feed(feeds, "heat")->whole);
  CHECK_FALSE(find_feed(feeds, "x")->whole);
}

TEST_CASE("ignored labels count as neither right nor wrong") {
  arena memory(make_host_memory_source());
  tensor scores = tensor::make(memory, {3, 2}, dtype::float32);
  tensor labels = tensor::make(memory, {3, 1}, dtype::int64);
  std::ranges::fill(scores.values<float>(), 1.0f);
  const std::int64_t wanted[] = {0, 255, 1};
  std::copy_n(wanted, 3, labels.data<std::int64_t>());
  const hits found = count_hits(scores, labels, 255);
  CHECK(found.correct == 1);
  CHECK(found.total == 2);
}

TEST_CASE("a feed with two open extents has no sample size") {
  const feed_info open{"x", dtype::float32, {-1, -1}, std::nullopt};
  CHECK(says(caught([&] { sample_elements(open); }), "x float32 [-1, -1]"));
}

TEST_CASE_FIXTURE(tagged_text, "a classifier is found by its cross entropy") {
  const auto found = find_classifier(net.main);
  REQUIRE(found);
  CHECK(found->label == "tag");
  CHECK(net.main.main().var(found->scores).dims.dim(-1) == 3);
  CHECK(found->logits != found->scores);
  CHECK(net.main.main().var(found->logits).dims.dim(-1) == 3);
}

TEST_CASE("hits are rows whose largest score is the label's") {
  arena memory(make_host_memory_source());
  tensor scores = tensor::make(memory, {3, 2}, dtype::float32);
  tensor labels = tensor::make(memory, {3, 1}, dtype::int64);
  const float given[] = {1, 2, 5, 4, 3, 3};
  std::copy_n(given, 6, scores.data<float>());
  const std::int64_t wanted[] = {1, 1, 0};
  std::copy_n(wanted, 3, labels.data<std::int64_t>());
  const hits found = count_hits(scores, labels);
  CHECK(found.correct == 2);
  CHECK(found.total == 3);
  CHECK(caught([&] {
          count_hits(scores.reshaped({2, 3}), labels);
        }).code()
        == errc::shape_mismatch);
}
} // TEST_SUITE("training.feed_info")
