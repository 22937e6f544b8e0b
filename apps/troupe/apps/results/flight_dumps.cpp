// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/results/flight_dumps.hpp>

#include <troupe/base/error.hpp>
#include <troupe/base/quoted_name.hpp>

#include <cstddef>
#include <cstdio>
#include <new>
#include <string>
#include <utility>

namespace troupe::apps {

namespace {

void say(const std::string& line) {
  std::fprintf(stderr, "%s\n", one_line(line).c_str());
}

void warn(const std::string& why) {
  say("warning: no dump of the flight recorder: " + why);
}

} // namespace

void flight_dumps::dump(executor& exe, cause why) noexcept {
  std::lock_guard guard{mutex_};
  if (exe.trace().level() == trace_level::off) {
    if (why == cause::request)
      warn("it is off");
    return;
  }
  if (why != cause::request
      && std::exchange(has_.at(static_cast<std::size_t>(why)), true))
    return;
  try {
    say("flight recorder: the latest steps are in " + exe.dump_trace().string()
        + "; troupe trace summary reads it");
  } catch (const error& e) {
    warn(e.message());
  } catch (const std::bad_alloc&) {
    warn("no memory");
  }
}

} // namespace troupe::apps
