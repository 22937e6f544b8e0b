// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/results/trace_requests.hpp>

#include <troupe/base/error.hpp>
#include <troupe/base/quoted_name.hpp>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <new>
#include <optional>
#include <utility>

namespace troupe::apps {

namespace {

void say_on_stderr(const std::string& line) {
  std::fprintf(stderr, "%s\n", one_line(line).c_str());
}

/// The first of the signals that the C library leaves to applications.
std::shared_ptr<thread_stacks> make_thread_stacks() {
  try {
    return std::make_shared<thread_stacks>(SIGRTMIN);
  } catch (const error& e) {
    say_on_stderr("warning: dumps have no call stacks: " + e.message());
    return nullptr;
  }
}

} // namespace

trace_requests::trace_requests()
  : stacks_(make_thread_stacks()),
    signals_([this](int signal) { serve(signal); }) {}

std::string trace_requests::start(const trace_request& request) {
  auto wanted = usual_;
  wanted.file = request.file;
  wanted.replaces = false; // nobody is asked
  wanted.level = request.level;
  auto file = std::filesystem::absolute(exe_->start_trace(wanted)).string();
  say_on_stderr("a trace of level " + std::string{to_string(wanted.level)}
                + " begins in " + file);
  requested_ = file;
  return file;
}

/// Returns the file's name.
std::string trace_requests::serve(const std::optional<trace_request>& request) {
  if (!exe_)
    throw error(errc::invalid_argument, "no step runs at the moment");
  if (request && request->starts)
    return start(*request);
  requested_.reset(); // also if its end cannot be written
  if (const auto file = exe_->stop_trace()) {
    const auto name = std::filesystem::absolute(*file).string();
    say_on_stderr("the trace is in " + name);
    return name;
  }
  if (request)
    throw error(errc::invalid_argument, "no trace is being written");
  return start({.starts = true, .level = usual_.level});
}

void trace_requests::serve(int signal) noexcept {
  std::lock_guard guard{mutex_};
  if (signal == SIGUSR1) {
    if (exe_)
      dumps_.dump(*exe_, flight_dumps::cause::request);
    return;
  }
  if (desk_.was_given_up())
    return;
  const auto request = desk_.take();
  const auto ends = request && !request->starts;
  const auto fails = [&](const std::string& why) {
    say_on_stderr(
      (ends ? "warning: no trace ends: " : "warning: no trace begins: ") + why);
    if (request)
      desk_.answer(false, why);
  };
  try {
    const auto file = serve(request);
    if (request)
      desk_.answer(true, file);
  } catch (const error& e) {
    fails(e.message());
  } catch (const std::bad_alloc&) {
    fails("no memory");
  }
}

trace_requests::subject::subject(trace_requests& requests, executor& exe,
                                 trace_options usual)
  : requests_(requests) {
  std::lock_guard guard{requests_.mutex_};
  requests_.usual_ = std::move(usual);
  requests_.exe_ = &exe;
}

trace_requests::subject::~subject() {
  std::lock_guard guard{requests_.mutex_};
  requests_.exe_ = nullptr;
  requests_.cut_ = std::exchange(requests_.requested_, std::nullopt);
}

std::optional<std::string> trace_requests::take_cut_trace() {
  std::lock_guard guard{mutex_};
  return std::exchange(cut_, std::nullopt);
}

} // namespace troupe::apps
