// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/training/held_out_test.hpp>

#include <troupe/apps/printed.hpp>
#include <troupe/base/error.hpp>

namespace troupe::apps {

held_out_test::held_out_test(const program_bundle& bundle,
                             batch_source* samples,
                             const executor_options& training,
                             const rank_part& part, const stop_request& stop)
  : bundle_(bundle), samples_(samples), part_(part), stop_(stop) {
  one_device_.system = training.system;
  one_device_.devices = {training.devices.front()};
  one_device_.trace.emplace(); // TROUPE_TRACE is for the training
}

std::string held_out_test::tell(executor& exe, progress& shown) {
  last_.reset();
  if (!samples_)
    return "";
  exe.synchronize_parameters();
  if (failed_ || !part_.is_first())
    return "";
  try {
    last_ = run(exe.parameters());
  } catch (const error& failure) {
    if (failure.code() == errc::cancelled && stop_.stopped())
      throw;
    failed_ = true;
    shown.note("warning: no held-out figures of epochs: " + failure.message());
    return "";
  }
  return printed("  held-out loss %.4f, accuracy %.4f", last_->loss,
                 last_->answers->accuracy());
}

hits held_out_test::at_end(const scope& parameters) const {
  return *(last_ ? *last_ : run(parameters)).answers;
}

evaluation held_out_test::run(const scope& parameters) const {
  try {
    return evaluate_copies(bundle_, one_device_, *samples_, parameters, stop_);
  } catch (const error& failure) {
    if (failure.code() != errc::cancelled || !stop_.stopped())
      throw;
    // the original error counts the evaluation's steps
    throw error(errc::cancelled,
                "stopped in the evaluation on held-out samples");
  }
}

} // namespace troupe::apps
