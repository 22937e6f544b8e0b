// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/error.hpp>
#include <troupe/kernels/device.hpp>

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace troupe {

/// A device of another kind, but for one launch that a stream of it refuses: it
/// has no memory for the work, which is then not executed.
///
/// Thread rule: `refuse_launch` between steps.
class refusing_device final : public device {
public:
  explicit refusing_device(std::shared_ptr<device> inner)
    : inner_(std::move(inner)) {}

  /// Streams of this name refuse the launch after the next `skipped` ones.
  void refuse_launch(std::string_view stream, int skipped) {
    stream_ = stream;
    left_ = skipped + 1;
  }

  device_id id() const noexcept override { return inner_->id(); }
  arena& memory() noexcept override { return inner_->memory(); }
  std::unique_ptr<stream> make_stream(const stream_options& options) override {
    return std::make_unique<refusing_stream>(*this,
                                             inner_->make_stream(options));
  }
  tensor to_host(const tensor& value, arena& host, stream& on) override {
    return inner_->to_host(value, host, inner_of(on));
  }
  tensor to_device(const tensor& host_value, stream& on) override {
    return inner_->to_device(host_value, inner_of(on));
  }

private:
  class refusing_stream final : public stream {
  public:
    refusing_stream(refusing_device& of, std::unique_ptr<stream> inner)
      : of_(of), inner_(std::move(inner)) {}

    stream& inner() { return *inner_; }
    const std::string& name() const noexcept override { return inner_->name(); }
    int width() const noexcept override { return inner_->width(); }
    launch_result launch(work& w, const launch_options& wanted) override {
      if (of_.stream_ == name() && of_.left_ > 0 && --of_.left_ == 0)
        throw error(errc::out_of_memory, "no memory for a launch");
      return inner_->launch(w, wanted);
    }
    void wait(stream& producer, ticket position) noexcept override {
      inner_->wait(inner_of(producer), position);
    }
    bool can_wait_for(const stream& producer) const noexcept override {
      return inner_->can_wait_for(inner_of(const_cast<stream&>(producer)));
    }
    bool completes_at_launch() const noexcept override {
      return inner_->completes_at_launch();
    }
    part_runner* helpers() const noexcept override { return inner_->helpers(); }
    ticket position() const noexcept override { return inner_->position(); }
    bool finished(ticket position) const noexcept override {
      return inner_->finished(position);
    }
    void synchronize(ticket position) override {
      inner_->synchronize(position);
    }

  private:
    refusing_device& of_;
    std::unique_ptr<stream> inner_;
  };

  static stream& inner_of(stream& s) {
    auto* outer = dynamic_cast<refusing_stream*>(&s);
    return outer ? outer->inner() : s;
  }

  std::shared_ptr<device> inner_;
  std::string stream_;
  /// Launches up to the one that is refused; none is if it is not positive.
  std::atomic<int> left_{0};
};

} // namespace troupe
