// SPDX-License-Identifier: Apache-2.0
#include <troupe/comm/cuda/cuda_group.hpp>

#include <troupe/base/error.hpp>
#include <troupe/comm/cuda/star_group.hpp>
#include <troupe/kernels/cuda/cuda_device.hpp>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

namespace troupe::comm {

namespace {

/// The GPU of each rank.
std::vector<int> gpus_of(std::span<device* const> ranks) {
  std::vector<int> gpus;
  for (const auto* d : ranks)
    gpus.push_back(cuda::state_of(*d).gpu);
  return gpus;
}

bool has_twice(std::vector<int> numbers) {
  std::ranges::sort(numbers);
  return std::ranges::adjacent_find(numbers) != numbers.end();
}

/// NCCL for these ranks; null if they do not use it.
std::shared_ptr<cuda::nccl> nccl_for(std::span<device* const> ranks) {
  if (ranks.size() < 2 || has_twice(gpus_of(ranks)))
    return nullptr;
  const auto& api = cuda::state_of(*ranks.front()).api;
  for (const auto* d : ranks)
    if (const auto& state = cuda::state_of(*d);
        state.options.sums_in_order || state.api != api)
      return nullptr;
  return api->find_nccl();
}

std::unique_ptr<cuda::nccl_ranks> connect(cuda::nccl& library,
                                          const std::vector<int>& gpus) {
  try {
    return library.make_ranks(gpus);
  } catch (const error& e) {
    throw error(
      e.code(),
      e.message()
        + "; --deterministic (executor_options::sums_in_order) merges "
          "values without NCCL");
  }
}

} // namespace

std::vector<std::unique_ptr<communicator>>
make_cuda_group(std::span<device* const> ranks,
                const nccl_group_options& options) {
  const auto library = nccl_for(ranks);
  return library
           ? make_nccl_group(ranks, connect(*library, gpus_of(ranks)), options)
           : make_star_group(ranks);
}

} // namespace troupe::comm
