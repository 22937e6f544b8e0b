// SPDX-License-Identifier: Apache-2.0
// Programs that real Paddle wrote, trained here: the losses, device by device,
// and the parameters are those of Paddle's own executors.

#include "paddle/program_run.hpp"

#include <troupe/actors/executor.hpp>
#include <troupe/graph/paddle/program_file.hpp>

#include <doctest/doctest.h>

#include <cmath>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("paddle.program_losses") {

namespace {

void check_training(const std::string& name, const std::string& mode_name) {
  const program_fixture fixture{name};
  const run_mode mode = mode_of(mode_name);
  arena memory{make_host_memory_source()};
  executor_options options;
  options.devices = parse_devices(mode.devices);
  options.strategy = graph::parse_merge_strategy(mode.strategy);
  options.parameters = parameters_of(fixture, "params0.pdiparams", memory);
  options.lowering.kernel_layouts = true;
  executor exe{fixture.main(), options};
  fixture.check_losses(mode, train(exe, fixture, memory));
  exe.synchronize_parameters();
  if (mode_name == "executor")
    fixture.check_parameters(exe.parameters());
}

void check_test_loss(const std::string& name) {
  const program_fixture fixture{name};
  arena memory{make_host_memory_source()};
  executor_options options;
  options.loss = graph::find_loss(fixture.main());
  options.parameters = parameters_of(fixture, "params8.pdiparams", memory);
  executor exe{graph::read_program(fixture.file("test.pdmodel")), options};
  const auto arrays = read_npz(fixture.file("feeds.npz"), memory);
  const double loss = exe.run(feeds_of(arrays, 0)).loss;
  CHECK(std::abs(loss - fixture.test_loss()) <= 2e-5 * fixture.test_loss());
}

} // namespace

TEST_CASE("gpt_small trains as in Paddle, executor") {
  check_training("gpt_small", "executor");
}
TEST_CASE("gpt_small trains as in Paddle, allreduce2") {
  check_training("gpt_small", "allreduce2");
}
TEST_CASE("gpt_small trains as in Paddle, allreduce4") {
  check_training("gpt_small", "allreduce4");
}
TEST_CASE("gpt_small trains as in Paddle, reduce2") {
  check_training("gpt_small", "reduce2");
}
TEST_CASE("gpt_small trains as in Paddle, reduce4") {
  check_training("gpt_small", "reduce4");
}
TEST_CASE("gpt_small evaluates as in Paddle") {
  check_test_loss("gpt_small");
}

TEST_CASE("lenet trains as in Paddle, executor") {
  check_training("lenet", "executor");
}
TEST_CASE("lenet trains as in Paddle, allreduce2") {
  check_training("lenet", "allreduce2");
}
TEST_CASE("lenet trains as in Paddle, allreduce4") {
  check_training("lenet", "allreduce4");
}
TEST_CASE("lenet trains as in Paddle, reduce2") {
  check_training("lenet", "reduce2");
}
TEST_CASE("lenet trains as in Paddle, reduce4") {
  check_training("lenet", "reduce4");
}
TEST_CASE("lenet evaluates as in Paddle") {
  check_test_loss("lenet");
}

TEST_CASE("mlp trains as in Paddle, executor") {
  check_training("mlp", "executor");
}
TEST_CASE("mlp trains as in Paddle, allreduce2") {
  check_training("mlp", "allreduce2");
}
TEST_CASE("mlp trains as in Paddle, allreduce4") {
  check_training("mlp", "allreduce4");
}
TEST_CASE("mlp trains as in Paddle, reduce2") {
  check_training("mlp", "reduce2");
}
TEST_CASE("mlp trains as in Paddle, reduce4") {
  check_training("mlp", "reduce4");
}
TEST_CASE("mlp evaluates as in Paddle") {
  check_test_loss("mlp");
}

TEST_CASE("resnet8_bn trains as in Paddle, executor") {
  check_training("resnet8_bn", "executor");
}
TEST_CASE("resnet8_bn trains as in Paddle, allreduce2") {
  check_training("resnet8_bn", "allreduce2");
}
TEST_CASE("resnet8_bn trains as in Paddle, allreduce4") {
  check_training("resnet8_bn", "allreduce4");
}
TEST_CASE("resnet8_bn trains as in Paddle, reduce2") {
  check_training("resnet8_bn", "reduce2");
}
TEST_CASE("resnet8_bn trains as in Paddle, reduce4") {
  check_training("resnet8_bn", "reduce4");
}
TEST_CASE("resnet8_bn evaluates as in Paddle") {
  check_test_loss("resnet8_bn");
}

TEST_CASE("resnet8_plain trains as in Paddle, executor") {
  check_training("resnet8_plain", "executor");
}
TEST_CASE("resnet8_plain trains as in Paddle, allreduce2") {
  check_training("resnet8_plain", "allreduce2");
}
TEST_CASE("resnet8_plain trains as in Paddle, allreduce4") {
  check_training("resnet8_plain", "allreduce4");
}
TEST_CASE("resnet8_plain trains as in Paddle, reduce2") {
  check_training("resnet8_plain", "reduce2");
}
TEST_CASE("resnet8_plain trains as in Paddle, reduce4") {
  check_training("resnet8_plain", "reduce4");
}
TEST_CASE("resnet8_plain evaluates as in Paddle") {
  check_test_loss("resnet8_plain");
}

TEST_CASE("widedeep_small trains as in Paddle, executor") {
  check_training("widedeep_small", "executor");
}
TEST_CASE("widedeep_small trains as in Paddle, allreduce2") {
  check_training("widedeep_small", "allreduce2");
}
TEST_CASE("widedeep_small trains as in Paddle, allreduce4") {
  check_training("widedeep_small", "allreduce4");
}
TEST_CASE("widedeep_small trains as in Paddle, reduce2") {
  check_training("widedeep_small", "reduce2");
}
TEST_CASE("widedeep_small trains as in Paddle, reduce4") {
  check_training("widedeep_small", "reduce4");
}
TEST_CASE("widedeep_small evaluates as in Paddle") {
  check_test_loss("widedeep_small");
}

TEST_CASE("word2vec_dense_adam trains as in Paddle, executor") {
  check_training("word2vec_dense_adam", "executor");
}
TEST_CASE("word2vec_dense_adam trains as in Paddle, allreduce2") {
  check_training("word2vec_dense_adam", "allreduce2");
}
TEST_CASE("word2vec_dense_adam trains as in Paddle, allreduce4") {
  check_training("word2vec_dense_adam", "allreduce4");
}
TEST_CASE("word2vec_dense_adam trains as in Paddle, reduce2") {
  check_training("word2vec_dense_adam", "reduce2");
}
TEST_CASE("word2vec_dense_adam trains as in Paddle, reduce4") {
  check_training("word2vec_dense_adam", "reduce4");
}
TEST_CASE("word2vec_dense_adam evaluates as in Paddle") {
  check_test_loss("word2vec_dense_adam");
}

TEST_CASE("word2vec_sparse trains as in Paddle, executor") {
  check_training("word2vec_sparse", "executor");
}
TEST_CASE("word2vec_sparse trains as in Paddle, allreduce2") {
  check_training("word2vec_sparse", "allreduce2");
}
TEST_CASE("word2vec_sparse trains as in Paddle, allreduce4") {
  check_training("word2vec_sparse", "allreduce4");
}
TEST_CASE("word2vec_sparse trains as in Paddle, reduce2") {
  check_training("word2vec_sparse", "reduce2");
}
TEST_CASE("word2vec_sparse trains as in Paddle, reduce4") {
  check_training("word2vec_sparse", "reduce4");
}
TEST_CASE("word2vec_sparse evaluates as in Paddle") {
  check_test_loss("word2vec_sparse");
}

TEST_CASE("word2vec_sparse_adam_lazy trains as in Paddle, executor") {
  check_training("word2vec_sparse_adam_lazy", "executor");
}
TEST_CASE("word2vec_sparse_adam_lazy trains as in Paddle, allreduce2") {
  check_training("word2vec_sparse_adam_lazy", "allreduce2");
}
TEST_CASE("word2vec_sparse_adam_lazy trains as in Paddle, allreduce4") {
  check_training("word2vec_sparse_adam_lazy", "allreduce4");
}
TEST_CASE("word2vec_sparse_adam_lazy trains as in Paddle, reduce2") {
  check_training("word2vec_sparse_adam_lazy", "reduce2");
}
TEST_CASE("word2vec_sparse_adam_lazy trains as in Paddle, reduce4") {
  check_training("word2vec_sparse_adam_lazy", "reduce4");
}
TEST_CASE("word2vec_sparse_adam_lazy evaluates as in Paddle") {
  check_test_loss("word2vec_sparse_adam_lazy");
}

// Under Reduce, Paddle stops with an error: these follow its AllReduce curves.
TEST_CASE("word2vec_sparse_clip trains as in Paddle, executor") {
  check_training("word2vec_sparse_clip", "executor");
}
TEST_CASE("word2vec_sparse_clip trains as in Paddle, allreduce2") {
  check_training("word2vec_sparse_clip", "allreduce2");
}
TEST_CASE("word2vec_sparse_clip trains as in Paddle, allreduce4") {
  check_training("word2vec_sparse_clip", "allreduce4");
}
TEST_CASE("word2vec_sparse_clip trains as in Paddle, reduce2") {
  check_training("word2vec_sparse_clip", "reduce2");
}
TEST_CASE("word2vec_sparse_clip trains as in Paddle, reduce4") {
  check_training("word2vec_sparse_clip", "reduce4");
}
TEST_CASE("word2vec_sparse_clip evaluates as in Paddle") {
  check_test_loss("word2vec_sparse_clip");
}
} // TEST_SUITE("paddle.program_losses")
