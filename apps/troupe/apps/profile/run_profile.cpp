// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/profile/run_profile.hpp>

#include <troupe/actors/backend/backend.hpp>
#include <troupe/actors/configure.hpp>
#include <troupe/apps/common_options.hpp>
#include <troupe/apps/machine_roofline.hpp>
#include <troupe/apps/profile/profile_report.hpp>

#include <algorithm>
#include <cstdio>

namespace troupe::apps {

namespace {

std::uint64_t skipped_steps(std::uint64_t steps) {
  return std::min<std::uint64_t>(2, steps - 1);
}

} // namespace

run_profile::run_profile(std::uint64_t steps, executor_options& run)
  : workers_(worker_count(run.threads)), devices_(run.devices.size()),
    profile_(workers_, skipped_steps(steps)) {
  auto kernels = run.kernels
                   ? run.kernels
                   : std::make_shared<kernel_table>(kernels_for(run.devices));
  run.kernels = profile_.watched_kernels(std::move(kernels));
  run.hooks.trace = trace_level::ops;
}

void run_profile::begin(executor& exe) {
  profile_.begin(exe.graph(), exe.trace());
}

void run_profile::print(const graph::program& program, std::int64_t batch,
                        bool json) const {
  const auto report =
    make_profile_report(profile_.times(), program, batch, devices_,
                        measure_roofline(static_cast<int>(workers_)));
  const auto text = json ? to_json(report) + "\n" : to_text(report);
  std::fputs(text.c_str(), stdout);
}

} // namespace troupe::apps
