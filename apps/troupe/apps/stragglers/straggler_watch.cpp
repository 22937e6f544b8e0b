// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/stragglers/straggler_watch.hpp>

#include <algorithm>
#include <utility>

namespace troupe::apps {

straggler_watch::straggler_watch(parts p)
  : parts_(std::move(p)), finder_(parts_.ranks), digests_(parts_.ranks) {}

void straggler_watch::step_ended() {
  if (parts_.rank == 0)
    read_notes();
  auto now = parts_.times->totals();
  if (std::exchange(is_first_, false)) {
    before_ = std::move(now);
    return begin_window();
  }
  for (std::size_t i = 0; i < window_.rows.size(); ++i)
    window_.rows[i].ms.push_back(static_cast<float>(now[i] - before_[i])
                                 * 1e-6f);
  before_ = std::move(now);
  if (++steps_ == window_steps)
    end_window();
}

void straggler_watch::begin_window() {
  window_ = {};
  for (auto& type : parts_.times->types())
    window_.rows.push_back({type, {}});
  before_.resize(window_.rows.size()); // a type that has just come
  steps_ = 0;
  cores_ = actors::core_times::now();
}

void straggler_watch::end_window() {
  std::erase_if(window_.rows, [](const op_digest::row& row) {
    return std::ranges::all_of(row.ms, [](float ms) { return ms == 0; });
  });
  const auto cores = actors::core_times::now().since(cores_);
  if (const auto all = cores.ran_ns + cores.waited_ns; all > 0)
    window_.preempted =
      static_cast<float>(cores.waited_ns) / static_cast<float>(all);
  if (parts_.rank != 0)
    parts_.exe->send_note(0, write_digest(window_));
  else
    take(0, std::move(window_));
  begin_window();
}

void straggler_watch::read_notes() {
  for (auto& note : parts_.exe->take_notes())
    if (auto digest = read_digest(note.text);
        digest && note.from < parts_.ranks)
      take(note.from, *std::move(digest));
}

/// Compares once the digests of all ranks for a window are there. Ranks end
/// their windows after the same steps, so the n-th digests belong together.
void straggler_watch::take(std::size_t rank, op_digest digest) {
  digests_[rank].push_back(std::move(digest));
  if (std::ranges::any_of(digests_, [](auto& d) { return d.empty(); }))
    return;
  std::vector<op_digest> window;
  for (auto& d : digests_) {
    window.push_back(std::move(d.front()));
    d.pop_front();
  }
  for (auto& found : finder_.add(window))
    parts_.tell(text_of(found, parts_.ranks));
}

} // namespace troupe::apps
