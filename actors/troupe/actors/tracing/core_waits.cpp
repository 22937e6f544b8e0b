// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/tracing/core_waits.hpp>

#include <troupe/base/clock.hpp>
#include <troupe/base/files/descriptor.hpp>
#include <troupe/base/spin.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <span>
#include <string_view>
#include <system_error>

namespace troupe::actors {

namespace {

constexpr std::uint64_t between_readings_ns = 10'000'000;
/// The same, per worker: less than half a percent of a core is spent here.
constexpr std::uint64_t between_readings_of_worker_ns = 1'000'000;
/// The system writes all of /proc/stat for each reading, and counts in
/// hundredths of a second.
constexpr std::uint64_t between_machine_readings_ns = 100'000'000;

/// The begin of a file of /proc, as it is now.
template <std::size_t Size>
std::string_view read_begin(const char* path,
                            std::array<char, Size>& text) noexcept {
  const descriptor file{::open(path, O_RDONLY | O_CLOEXEC)};
  const auto got = file ? ::read(file.get(), text.data(), Size) : -1;
  return {text.data(), got > 0 ? static_cast<std::size_t>(got) : 0};
}

/// Number `index` of numbers with blanks between them; nothing if there are
/// fewer.
std::optional<std::uint64_t> number_in(std::string_view text,
                                       std::size_t index) noexcept {
  for (;; --index) {
    const auto begin = text.find_first_of("0123456789");
    if (begin == std::string_view::npos)
      return std::nullopt;
    std::uint64_t value = 0;
    const auto* end = text.data() + text.size();
    const auto [rest, failure] =
      std::from_chars(text.data() + begin, end, value);
    if (failure != std::errc{})
      return std::nullopt;
    if (index == 0)
      return value;
    text = {rest, static_cast<std::size_t>(end - rest)};
  }
}

/// How long the thread has been ready without a core so far.
std::optional<std::uint64_t> waited_ns(pid_t thread) noexcept {
  std::array<char, 64> path{}, text{};
  std::snprintf(path.data(), path.size(), "/proc/self/task/%d/schedstat",
                static_cast<int>(thread));
  constexpr std::size_t waited = 1; // the second number of the file
  return number_in(read_begin(path.data(), text), waited);
}

} // namespace

core_waits::core_waits(const job_queue& queue, recorder& to)
  : queue_(queue), to_(to), of_worker_(queue.workers()) {}

void core_waits::step_ended(step_id step) noexcept {
  if (!to_.wants(trace_level::steps))
    return;
  const auto now = now_ns();
  if (now < due_ns_)
    return;
  due_ns_ = now
            + std::max(between_readings_ns,
                       of_worker_.size() * between_readings_of_worker_ns);
  for (std::size_t w = 0; w < of_worker_.size(); ++w)
    read_worker(w, step);
  if (now >= machine_due_ns_)
    read_machine(step, now);
}

/// Of a thread that is new to a seat, the first reading is only a begin.
void core_waits::read_worker(std::size_t worker, step_id step) noexcept {
  auto& its = of_worker_[worker];
  const auto thread = queue_.thread_of(worker);
  const bool is_known = thread == its.thread;
  its.thread = thread;
  const auto now = thread != 0 ? waited_ns(thread) : std::nullopt;
  if (!now)
    return;
  if (is_known)
    to_.record(event_kind::core_wait, recorder::no_worker,
               static_cast<handle_id>(worker), no_handle, step,
               *now - its.waited_ns, ticks());
  its.waited_ns = *now;
}

void core_waits::read_machine(step_id step, std::uint64_t now) noexcept {
  machine_due_ns_ = now + between_machine_readings_ns;
  std::array<char, 256> text{};
  constexpr std::size_t steal = 7; // "cpu  user nice system idle ..."
  const auto per_second = ::sysconf(_SC_CLK_TCK);
  const auto read = number_in(read_begin("/proc/stat", text), steal);
  if (!read || per_second <= 0)
    return;
  const auto stolen =
    *read * (1'000'000'000 / static_cast<std::uint64_t>(per_second));
  if (stolen_ns_ && stolen >= *stolen_ns_)
    to_.record(event_kind::core_wait, recorder::no_worker, no_handle, no_handle,
               step, stolen - *stolen_ns_, ticks());
  stolen_ns_ = stolen;
}

} // namespace troupe::actors
