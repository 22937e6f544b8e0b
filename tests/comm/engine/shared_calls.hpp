// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../group_rig.hpp"
#include "../values.hpp"

#include <troupe/comm/local/group_merge.hpp>
#include <troupe/kernels/device.hpp>

#include <memory>
#include <random>
#include <vector>

/// Calls of random kinds, sizes and dtypes, and what one process gives for
/// them.
namespace comm_test {

/// Makes a call and waits for its end. Throws what it fails with.
inline void run(communicator& at, const collective_call& call) {
  outcome end;
  if (at.start(call, end).state == launch_status::done)
    return;
  end.wait();
  if (const auto why = end.failure())
    throw error{*why};
}

inline void all_reduce(communicator& at, variable& x) {
  const rank_value value{"x", &x, &x};
  run(at, {collective_kind::all_reduce, 0, {&value, 1}});
}

/// What one process gives for the same values, which are by rank.
inline std::vector<variable>
merged_in_one_process(collective_kind kind, std::size_t root,
                      std::vector<variable> given) {
  std::vector<std::unique_ptr<device>> devices;
  std::vector<device*> on;
  std::vector<rank_value> values;
  for (auto& v : given) {
    if (v.is_tensor())
      v.set(clone(v.as_tensor(), host()));
    on.push_back(
      devices.emplace_back(make_cpu_device(int(devices.size()))).get());
    values.push_back({"x", &v, &v});
  }
  local::group_merge{on, {}}.run(kind, root, values);
  return given;
}

inline bool same_values(const variable& a, const variable& b) {
  if (a.is_rows() && b.is_rows())
    return a.as_rows().rows == b.as_rows().rows
           && same_bits(a.as_rows().values, b.as_rows().values);
  return a.is_tensor() && b.is_tensor()
         && same_bits(a.as_tensor(), b.as_tensor());
}

/// A value of a random size: some go with the letter, some in many pieces.
inline variable random_value(std::minstd_rand& random, dtype type, bool rows,
                             std::int64_t elements) {
  variable made;
  if (rows)
    made.set(selected_rows{
      {5, 2, 5}, 9, random_tensor({3, elements}, type, unsigned(random()))});
  else
    made.set(random_tensor({elements}, type, unsigned(random())));
  return made;
}

struct shared_call {
  collective_kind kind;
  std::size_t root;
  std::vector<variable> given, expected; // by rank
};

inline shared_call random_call(std::size_t ranks, std::minstd_rand& random) {
  const dtype types[] = {dtype::float32, dtype::bfloat16, dtype::float16,
                         dtype::int32};
  const std::int64_t sizes[] = {1, 63, 900, 5'000, 70'000, 300'001};
  const auto type = types[random() % 4];
  const auto elements = sizes[random() % 6];
  const auto kind = static_cast<collective_kind>(random() % 3);
  const auto root = kind == collective_kind::all_reduce ? 0 : random() % ranks;
  const bool rows = kind != collective_kind::broadcast && random() % 4 == 0;
  const auto busy =
    kind == collective_kind::broadcast ? root : random() % ranks;
  shared_call made{kind, root, std::vector<variable>(ranks), {}};
  for (std::size_t r = 0; r < ranks; ++r)
    if (r == busy || random() % 4 != 0)
      made.given[r] = random_value(random, type, rows, elements);
  made.expected = merged_in_one_process(kind, root, made.given);
  return made;
}

} // namespace comm_test
