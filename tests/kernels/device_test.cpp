// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/device.hpp>

#include <kernels/tensors.hpp>
#include <support/caught.hpp>

#include <stdexcept>
#include <thread>

namespace troupe {

using test::caught;
using test::floats;
using test::make_floats;
using test::make_reversed;
using test::says;

TEST_SUITE("kernels.device") {

namespace {

using ids = std::vector<device_id>;

// Notes what the stream does with it.
class noted_work final : public work {
public:
  void execute(stream& on) override {
    ++executions;
    stream_name = on.name();
    thread = std::this_thread::get_id();
    if (fails)
      throw std::runtime_error("broken");
  }
  void completed(std::exception_ptr) noexcept override { ++completions; }

  int executions = 0;
  int completions = 0;
  bool fails = false;
  std::string stream_name;
  std::thread::id thread;
};

// A producer that notes which position it was asked for.
class noted_stream final : public stream {
public:
  const std::string& name() const noexcept override { return name_; }
  int width() const noexcept override { return 1; }
  launch_result launch(work&, const launch_options&) override {
    return {launch_status::pending, 1};
  }
  void wait(stream&, ticket) noexcept override {}
  bool finished(ticket) const noexcept override { return false; }
  void synchronize(ticket position) override { asked.push_back(position); }

  std::vector<ticket> asked;

private:
  std::string name_ = "late";
};

} // namespace

TEST_CASE("device texts become ids") {
  CHECK(parse_devices("cpu") == ids{{device_kind::cpu, 0}});
  CHECK(parse_devices("cpu:1") == ids{{device_kind::cpu, 0}});
  CHECK(parse_devices("cpu:3")
        == ids{
          {device_kind::cpu, 0}, {device_kind::cpu, 1}, {device_kind::cpu, 2}});
  CHECK(parse_devices("cuda:0") == ids{{device_kind::cuda, 0}});
  CHECK(parse_devices("cuda:3,cuda:1")
        == ids{{device_kind::cuda, 3}, {device_kind::cuda, 1}});
  CHECK(parse_devices("sim:2")
        == ids{{device_kind::sim, 0}, {device_kind::sim, 1}});
  CHECK(parse_devices("sim:4096").size() == 4096);
}

TEST_CASE("device texts that are not one of the forms are errors") {
  for (auto* text : {"",
                     ",",
                     "cpu,",
                     ",cpu",
                     "gpu:0",
                     "cpu:0",
                     "cpu:-1",
                     "cpu:+2",
                     "cpu:x",
                     "cpu:2x",
                     "cpu:",
                     "cpu: 2",
                     "cpu:4097",
                     "cpu:99999999999999999999",
                     "cuda",
                     "sim",
                     "sim:0",
                     "cuda:-1",
                     "CPU",
                     " cpu",
                     "cpu 2",
                     "cpu:1:2",
                     "cuda:0,cuda:0",
                     "cpu,cpu:2",
                     "cpu,cuda:0",
                     "cuda:0;cuda:1"}) {
    CAPTURE(text);
    auto failure = caught([&] { parse_devices(text); });
    CHECK(failure.code() == errc::invalid_argument);
    CHECK(says(failure, "expected cpu, cpu:N, sim:N"));
    CHECK(says(failure, std::string("\"") + text + "\": "));
  }
}

TEST_CASE("device errors say what is wrong") {
  auto why = [](const char* text) {
    return caught([&] { parse_devices(text); });
  };
  CHECK(says(why("gpu:0"), "unknown kind \"gpu\""));
  CHECK(says(why("cpu:x"), "bad number \"x\""));
  CHECK(says(why("cuda"), "\"cuda\" lacks a number"));
  CHECK(says(why("cpu:0"), "no devices"));
  CHECK(says(why("cuda:2,cuda:2"), "cuda:2 is there twice"));
  CHECK(says(why("cpu,cuda:0"), "several kinds"));
}

TEST_CASE("ids print as they are parsed") {
  CHECK(to_string(device_id{device_kind::cpu, 1}) == "cpu:1");
  CHECK(to_string(device_id{device_kind::cuda, 0}) == "cuda:0");
  CHECK(to_string(device_kind::sim) == "sim");
}

TEST_CASE("a CPU stream runs work where it is launched and is then done") {
  auto cpu = make_cpu_device(0);
  auto compute = cpu->make_stream({.name = "compute", .width = 3});
  CHECK(compute->name() == "compute");
  CHECK(compute->width() == 3);
  noted_work job;
  auto result = compute->launch(job, {});
  CHECK(result.state == launch_status::done);
  CHECK(result.position == 0);
  CHECK(job.executions == 1);
  CHECK(job.completions == 0);
  CHECK(job.stream_name == "compute");
  CHECK(job.thread == std::this_thread::get_id());
  CHECK(compute->finished(0));
  compute->synchronize(0);
}

TEST_CASE("an exception of the work comes out of launch") {
  auto cpu = make_cpu_device(0);
  auto compute = cpu->make_stream({});
  noted_work job;
  job.fails = true;
  CHECK_THROWS_WITH_AS(compute->launch(job, {}), "broken", std::runtime_error);
  CHECK(job.completions == 0);
  job.fails = false;
  compute->launch(job, {});
  CHECK(job.executions == 2);
}

TEST_CASE("a CPU stream waits for a late producer by blocking") {
  auto cpu = make_cpu_device(0);
  auto compute = cpu->make_stream({});
  noted_stream producer;
  compute->wait(producer, 0);
  CHECK(producer.asked.empty());
  compute->wait(producer, 7);
  CHECK(producer.asked == std::vector<ticket>{7});
}

TEST_CASE("a stream is at least one worker wide") {
  auto cpu = make_cpu_device(0);
  CHECK(cpu->make_stream({.name = {}, .width = 0})->width() == 1);
}

TEST_CASE("values go to a CPU device and back as copies") {
  auto cpu = make_cpu_device(0);
  arena host{make_host_memory_source()};
  auto fed = make_floats(host, std::vector{1.f, 2.f, 3.f});
  auto there = cpu->to_device(fed);
  CHECK(there.raw() != fed.raw());
  CHECK(cpu->memory().live_bytes() > 0);
  auto back = cpu->to_host(there, host);
  CHECK(back.raw() != there.raw());
  CHECK(floats(back) == floats(fed));
}

TEST_CASE("a value in a library's layout comes to the host plain") {
  auto cpu = make_cpu_device(0);
  arena host{make_host_memory_source()};
  auto blocked = make_reversed(cpu->memory(), std::vector{1.f, 2.f, 3.f});
  auto plain = cpu->to_host(blocked, host);
  CHECK(plain.is_plain());
  CHECK(floats(plain) == std::vector{1.f, 2.f, 3.f});
}

TEST_CASE("a tensor may outlive the device that made it") {
  tensor kept;
  {
    auto cpu = make_cpu_device(0);
    kept = make_floats(cpu->memory(), std::vector{4.f});
  }
  CHECK(floats(kept) == std::vector{4.f});
}

} // TEST_SUITE("kernels.device")

} // namespace troupe
