// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/error.hpp>
#include <troupe/kernels/device.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <future>
#include <utility>

namespace troupe {

namespace {

constexpr int max_devices = 4096;

struct kind_entry {
  device_kind kind;
  std::string_view name;
};

constexpr std::array<kind_entry, 3> kinds{{
  {device_kind::cpu, "cpu"},
  {device_kind::cuda, "cuda"},
  {device_kind::sim, "sim"},
}};

[[noreturn]] void bad_devices(std::string_view text, const std::string& why) {
  throw error(errc::invalid_argument,
              "\"" + std::string(text) + "\": " + why
                + "; expected cpu, cpu:N, sim:N (N from 1 to "
                + std::to_string(max_devices)
                + ") or cuda:I,cuda:J,... (I, J from 0)");
}

const kind_entry& entry_of(device_kind kind) noexcept {
  return kinds[static_cast<std::size_t>(kind)];
}

const kind_entry& parse_kind(std::string_view text, std::string_view name) {
  auto found = std::find_if(kinds.begin(), kinds.end(),
                            [name](auto& entry) { return entry.name == name; });
  if (found == kinds.end())
    bad_devices(text, "unknown kind \"" + std::string(name) + "\"");
  return *found;
}

int parse_number(std::string_view text, std::string_view digits) {
  int number = 0;
  auto* end = digits.data() + digits.size();
  auto [stop, failure] = std::from_chars(digits.data(), end, number);
  if (failure != std::errc{} || stop != end || number < 0
      || number > max_devices)
    bad_devices(text, "bad number \"" + std::string(digits) + "\"");
  return number;
}

std::vector<device_id> first_devices(device_kind kind, int count) {
  std::vector<device_id> ids;
  for (int i = 0; i < count; ++i)
    ids.push_back({kind, i});
  return ids;
}

// One item between commas.
std::vector<device_id> parse_item(std::string_view text,
                                  std::string_view item) {
  auto colon = item.find(':');
  auto kind = parse_kind(text, item.substr(0, colon)).kind;
  if (colon == item.npos) {
    if (kind != device_kind::cpu)
      bad_devices(text, "\"" + std::string(item) + "\" lacks a number");
    return first_devices(kind, 1);
  }
  auto number = parse_number(text, item.substr(colon + 1));
  if (kind == device_kind::cuda)
    return {{kind, number}};
  if (number == 0)
    bad_devices(text, "no devices");
  return first_devices(kind, number);
}

void check_list(std::string_view text, const std::vector<device_id>& ids) {
  auto sorted = ids;
  std::sort(sorted.begin(), sorted.end());
  if (auto twice = std::adjacent_find(sorted.begin(), sorted.end());
      twice != sorted.end())
    bad_devices(text, to_string(*twice) + " is there twice");
  if (sorted.front().kind != sorted.back().kind)
    bad_devices(text, "devices of several kinds");
}

/// Work whose end a thread waits for.
class awaited_copy final : public work {
public:
  explicit awaited_copy(std::function<void(stream& on)> copy)
    : copy_(std::move(copy)) {}

  void execute(stream& on) override { copy_(on); }
  void completed(std::exception_ptr failure) noexcept override {
    if (failure)
      ended_.set_exception(std::move(failure));
    else
      ended_.set_value();
  }
  void run(stream& on) {
    if (on.launch(*this, {.give_position = false, .op_type = "copy"}).state
        == launch_status::pending)
      ended_.get_future().get();
  }

private:
  std::function<void(stream& on)> copy_;
  std::promise<void> ended_;
};

/// The stream is destroyed before the work, which it may still be calling.
void copy_and_wait(device& by, std::function<void(stream& on)> copy) {
  awaited_copy job{std::move(copy)};
  const auto queue = by.make_stream({.name = "copy"});
  job.run(*queue);
}

} // namespace

std::string_view to_string(device_kind kind) noexcept {
  return entry_of(kind).name;
}

std::string_view to_string(wait_mode mode) noexcept {
  return mode == wait_mode::event ? "event" : "block";
}

wait_mode parse_wait_mode(std::string_view text) {
  for (auto mode : {wait_mode::event, wait_mode::block})
    if (text == to_string(mode))
      return mode;
  throw error(errc::invalid_argument, "unknown way to wait \""
                                        + std::string(text)
                                        + "\"; expected event or block");
}

std::string to_string(device_id id) {
  return std::string(to_string(id.kind)) + ":" + std::to_string(id.index);
}

std::vector<device_id> parse_devices(std::string_view text) {
  std::vector<device_id> ids;
  for (std::size_t first = 0; first <= text.size();) {
    auto last = std::min(text.find(',', first), text.size());
    auto more = parse_item(text, text.substr(first, last - first));
    ids.insert(ids.end(), more.begin(), more.end());
    first = last + 1;
  }
  check_list(text, ids);
  return ids;
}

tensor device::to_host(const tensor& value, arena& host) {
  tensor copied;
  copy_and_wait(*this, [&](stream& on) { copied = to_host(value, host, on); });
  return copied;
}

tensor device::to_device(const tensor& host_value) {
  tensor copied;
  copy_and_wait(*this, [&](stream& on) { copied = to_device(host_value, on); });
  return copied;
}

std::unique_ptr<step_recording> device::record(std::span<stream* const>) {
  throw error(errc::unsupported_op, "this device records no steps",
              {.device = to_string(id())});
}

bool device::reaches(const tensor& value) {
  return !value.memory() || memory().owns(value.memory())
         || (memory().is_host() && value.memory().is_host());
}

} // namespace troupe
