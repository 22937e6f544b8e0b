// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/device.hpp>

#include <algorithm>

namespace troupe {

namespace {

// Runs work on the thread that launches it. All work is finished when `launch`
// returns, so there is nothing to wait for.
class cpu_stream final : public stream {
public:
  explicit cpu_stream(const stream_options& options)
    : name_(options.name), width_(std::max(1, options.width)),
      helpers_(options.helpers) {}

  const std::string& name() const noexcept override { return name_; }
  int width() const noexcept override { return width_; }

  launch_result launch(work& w, const launch_options&) override {
    w.execute(*this);
    return {};
  }

  // The producer may be another kind of stream (a simulated transfer, a test's
  // late stream). The CPU itself can only wait by blocking.
  void wait(stream& producer, ticket position) noexcept override {
    if (position != 0)
      producer.synchronize(position);
  }

  bool completes_at_launch() const noexcept override { return true; }
  part_runner* helpers() const noexcept override { return helpers_; }
  bool finished(ticket) const noexcept override { return true; }
  void synchronize(ticket) override {}

private:
  std::string name_;
  int width_;
  part_runner* helpers_;
};

class cpu_device final : public device {
public:
  explicit cpu_device(int index)
    : id_{device_kind::cpu, index}, memory_(make_host_memory_source()) {}

  device_id id() const noexcept override { return id_; }
  arena& memory() noexcept override { return memory_; }

  std::unique_ptr<stream> make_stream(const stream_options& options) override {
    return std::make_unique<cpu_stream>(options);
  }

  // Whoever launches runs the work, so a copy is complete when it returns.
  tensor to_host(const tensor& value, arena& host, stream&) override {
    return clone(value, host);
  }

  tensor to_device(const tensor& host_value, stream&) override {
    return clone(host_value, memory_);
  }

private:
  device_id id_;
  arena memory_;
};

} // namespace

std::unique_ptr<device> make_cpu_device(int index) {
  return std::make_unique<cpu_device>(index);
}

} // namespace troupe
