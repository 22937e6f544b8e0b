// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/wait_chain.hpp>

#include <vector>

namespace troupe::actors {

namespace {

std::string text_of_ranks(const std::vector<std::size_t>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i)
    text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
  return text;
}

} // namespace

std::string to_string(const wait_chain::link& l) {
  const auto subject = l.name + ", step " + std::to_string(l.step) + ": ";
  switch (l.how_far) {
  case progress::waits:
    return subject + "waits for " + std::to_string(l.messages) + " of "
           + std::to_string(l.of_messages)
           + (l.of_messages == 1 ? " message" : " messages");
  case progress::is_ready:
    return subject + "is ready and waits for stream " + l.stream;
  case progress::runs:
    return subject + "runs on worker " + std::to_string(l.worker) + ", stream "
           + l.stream;
  case progress::launched:
    return subject + "was launched on stream " + l.stream
           + " and is not complete";
  case progress::no_step: return l.name + ": no step has run yet";
  case progress::is_done: break;
  }
  return subject + "is done";
}

std::string workers_text(const wait_chain& chain) {
  if (chain.links.empty() || chain.links.back().how_far != progress::is_ready)
    return {};
  std::string text;
  for (auto& w : chain.busy)
    text += (text.empty() ? "worker " : ", worker ") + std::to_string(w.worker)
            + " runs " + w.op;
  return text.empty() ? "no worker runs an op" : text;
}

std::string call_text(const wait_chain& chain) {
  return chain.links.empty()
           ? chain.call->text
           : chain.links.back().name + " (" + chain.call->text + ")";
}

std::string ranks_text(const wait_chain& chain) {
  if (!chain.call)
    return {};
  const auto& missing = chain.call->missing;
  const auto& arrived = chain.call->arrived;
  if (missing.empty())
    return call_text(chain) + " is under way";
  auto text = call_text(chain) + " waits for " + text_of_ranks(missing);
  const auto& paused = chain.paused;
  if (!paused.empty())
    text +=
      (paused == missing ? ", which" : ", of which " + text_of_ranks(paused))
      + (paused.size() == 1 ? " is" : " are") + " paused";
  if (!arrived.empty())
    text += "; " + text_of_ranks(arrived)
            + (arrived.size() == 1 ? " has" : " have") + " arrived";
  return text;
}

std::string to_string(const wait_chain& chain) {
  std::string text;
  for (auto& l : chain.links)
    text += to_string(l) + "\n";
  if (const auto workers = workers_text(chain); !workers.empty())
    text += "no worker has come to the stream: " + workers + "\n";
  if (!chain.missing.empty())
    text += "no message has come from " + chain.missing + "\n";
  if (chain.call)
    text += ranks_text(chain) + "\n";
  return text;
}

} // namespace troupe::actors
