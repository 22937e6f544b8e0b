// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/stragglers/straggler_watch.hpp>

#include <troupe/base/clock.hpp>

#include <utility>

namespace troupe::apps {

namespace {

op_key key_of(const graph::op_handle& op) {
  return apps::key_of(op.desc->type, op.desc->outputs);
}

} // namespace

straggler_watch::straggler_watch(parts p)
  : parts_(std::move(p)), finder_(parts_.ranks), digests_(parts_.ranks) {}

void straggler_watch::step_ended() {
  read_notes();
  if (std::exchange(is_first_, false)) {
    parts_.times->take();
    window_begin_ns_ = now_ns();
    cores_ = actors::core_times::now();
  } else if (++steps_ == window_steps) {
    end_window();
  }
}

void straggler_watch::end_window() {
  const auto now = now_ns();
  if (is_told(windows_, now - window_begin_ns_))
    tell_of_window();
  window_begin_ns_ = now;
  steps_ = 0;
  ++windows_;
}

/// The latest runs, which are those of this window even if earlier ones were
/// not told.
void straggler_watch::tell_of_window() {
  op_digest window{.rows = {}, .window = windows_};
  for (auto& [op, ms] : parts_.times->take())
    window.rows.push_back({op, std::move(ms)});
  const auto cores = actors::core_times::now();
  const auto had = cores.since(std::exchange(cores_, cores));
  if (const auto all = had.ran_ns + had.waited_ns; all > 0)
    window.preempted =
      static_cast<float>(had.waited_ns) / static_cast<float>(all);
  usual_.set_own(window);
  if (parts_.ranks == 1)
    return; // nobody to compare with
  if (parts_.rank != 0)
    parts_.exe->send_note(0, write_digest(window));
  else
    take(0, std::move(window));
}

void straggler_watch::read_notes() {
  for (auto& note : parts_.exe->take_notes())
    if (parts_.rank != 0) {
      if (const auto fastest = read_fastest(note.text))
        usual_.set_fastest(*fastest);
    } else if (auto digest = read_digest(note.text)) {
      take(note.from, *std::move(digest));
    }
}

void straggler_watch::take(std::size_t rank, op_digest digest) {
  if (const auto window = digests_.add(rank, std::move(digest)))
    compare(*window);
}

void straggler_watch::compare(const std::vector<op_digest>& window) {
  const auto fastest = fastest_of(window);
  usual_.set_fastest(fastest);
  const auto text = write_fastest(fastest);
  for (std::size_t rank = 1; rank < parts_.ranks; ++rank)
    parts_.exe->send_note(rank, text);
  for (auto& found : finder_.add(window))
    parts_.tell(text_of(found, parts_.ranks, name_of(found)));
}

/// The handle of the op that is slow; its type and output if there is none,
/// such as of an op in a loop.
std::string straggler_watch::name_of(const straggler& found) const {
  const auto& graph = parts_.exe->graph();
  const op_key key{found.type, found.output};
  for (auto& op : graph.ops)
    if (graph.place_of(op.device) == found.rank && key_of(op) == key)
      return graph::handle_name(graph, op.id);
  return found.type + " of " + found.output;
}

usual_time straggler_watch::usual(handle_id op) const {
  const auto& graph = parts_.exe->graph();
  return graph.is_op(op) ? usual_.of(key_of(graph.op(op))) : usual_time{};
}

} // namespace troupe::apps
