// SPDX-License-Identifier: Apache-2.0
#include <actors/backend/cuda/cuda_options.hpp>
#include <paddle/program_run.hpp>

#include <doctest/doctest.h>

namespace troupe::test {

TEST_SUITE("paddle.cuda_programs") {

namespace {

/// Trains a fixture as on the CPU, but on CUDA devices. Kernels of the pretend
/// driver are slow, so not every fixture is trained in every mode.
void check_on_cuda(const char* name, const char* mode_name) {
  const program_fixture fixture{name};
  const auto mode = mode_of(mode_name);
  arena memory{make_host_memory_source()};
  auto options = on_cuda(make_test_driver(),
                         static_cast<int>(parse_devices(mode.devices).size()),
                         graph::parse_merge_strategy(mode.strategy));
  options.parameters = parameters_of(fixture, "params0.pdiparams", memory);
  executor exe{fixture.main(), options};
  fixture.check_losses(mode, train(exe, fixture, memory));
}

} // namespace

TEST_CASE("gpt_small trains on CUDA devices as in Paddle") {
  check_on_cuda("gpt_small", "executor");
  check_on_cuda("gpt_small", "allreduce2");
}
TEST_CASE("lenet trains on CUDA devices as in Paddle") {
  check_on_cuda("lenet", "reduce2");
}
TEST_CASE("mlp trains on CUDA devices as in Paddle") {
  check_on_cuda("mlp", "executor");
  check_on_cuda("mlp", "allreduce4");
}
TEST_CASE("resnet8_bn trains on CUDA devices as in Paddle") {
  check_on_cuda("resnet8_bn", "allreduce2");
}
TEST_CASE("word2vec_dense_adam trains on CUDA devices as in Paddle") {
  check_on_cuda("word2vec_dense_adam", "executor");
  check_on_cuda("word2vec_dense_adam", "allreduce2");
}

TEST_CASE("sparse programs train on CUDA devices as in Paddle") {
  for (auto name : {"widedeep_small", "word2vec_sparse",
                    "word2vec_sparse_adam_lazy", "word2vec_sparse_clip"}) {
    CAPTURE(name);
    check_on_cuda(name, "executor");
    check_on_cuda(name, "allreduce2");
  }
}
TEST_CASE("resnet8_plain trains on CUDA devices as in Paddle") {
  check_on_cuda("resnet8_plain", "executor");
}

} // TEST_SUITE("paddle.cuda_programs")

} // namespace troupe::test
