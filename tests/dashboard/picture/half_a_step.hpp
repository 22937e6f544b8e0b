// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/dashboard/picture/answers.hpp>

#include <trace/export/hand_made_trace.hpp>

namespace troupe::test {

/// A step of `two_ops` up to momentum, which runs.
inline trace::process_trace half_a_step() {
  auto t = two_ops();
  event_list{t}
    .add(0, event_kind::step_begin)
    .message(10, update, conv)
    .run(1'000'000, 3'000'000, conv)
    .add(3'000'000, event_kind::allocation, conv, image, 400)
    .message(3'000'000, conv, image)
    .message(3'000'000, image, update)
    .on(1)
    .add(3'500'000, event_kind::arrival, update, image, 0)
    .add(4'000'000, event_kind::run_begin, update);
  return t;
}

/// What a page shows of it.
struct shown {
  trace::process_trace trace = half_a_step();
  dashboard::live_picture picture{trace.graph, {0}, 2};
  dashboard::board_state state;

  shown() {
    picture.add(trace.events);
    state.run = "abc";
    state.state = dashboard::run_state::running;
    state.now_ns = 5'000'000;
    state.busy = {0.5, 0.25};
  }
};

} // namespace troupe::test
