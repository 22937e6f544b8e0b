// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/job_queue.hpp>

#include <cstdint>
#include <functional>
#include <string>

namespace troupe::test {

/// Appends its name to a log.
struct recording_job final : job {
  recording_job(std::string& log, char name) : log_(log), name_(name) {}
  void run(worker&) override { log_ += name_; }
  std::string& log_;
  char name_;
};

/// Names itself `length` times.
class long_chain final : public job {
public:
  explicit long_chain(std::uint32_t length) : length_(length) {}
  void run(worker& on) override {
    if (runs == 0 && first)
      first(on);
    if (++runs < length_)
      on.run_soon(*this);
    else if (last)
      last();
  }

  std::function<void(worker&)> first;
  std::function<void()> last;
  std::uint32_t runs = 0;

private:
  std::uint32_t length_;
};

} // namespace troupe::test
