// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/launch/job.hpp>

#include <troupe/apps/launch/running_job.hpp>
#include <troupe/base/quoted_name.hpp>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <utility>

#include <unistd.h>

namespace troupe::apps {

namespace {

// From ten on, sshd refuses some (MaxStartups).
constexpr std::size_t most_logins = 8;

} // namespace

int job_ending::milliseconds() const {
  if (!next)
    return -1;
  const auto left =
    std::chrono::ceil<std::chrono::milliseconds>(*next - job_clock::now());
  return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 1 << 30));
}

running_job::running_job(const job_options& options)
  : options_(options), folders_(options.logs) {
  if (options.elastic)
    members_.emplace(folders_.rendezvous(), options.ranks, meeting());
  if (options.remote)
    start_on_hosts();
  else
    start_on_this_host();
  if (takes_more())
    note("more ranks can join: troupe launch --join "
         + std::to_string(::getpid())
         + (options_.remote ? " --hosts NAME[:RANKS]" : ""));
}

job_result running_job::run() {
  while (!have_all_ended())
    wait();
  finish_output();
  return result();
}

/// Where the ranks of an epoch are, if that is on other hosts. The port differs
/// from that of the epoch before: who listens there may not have ended yet.
job_members::completion running_job::meeting() const {
  if (!options_.remote)
    return {};
  return
    [this](comm::job_epoch& epoch, const std::vector<std::size_t>& places) {
      for (const auto place : places)
        epoch.hosts.push_back(host_of(place));
      if (!epoch.is_on_several_hosts())
        return;
      epoch.address = reached_at(options_.remote->hosts[epoch.hosts.front()]);
      epoch.port = port_of_run(
        *options_.remote, folders_.job() + "." + std::to_string(epoch.number));
    };
}

/// Values of a job on a single host stay there: it cannot get others.
bool running_job::takes_more() const {
  return options_.places() > options_.ranks
         && (!options_.remote || options_.remote->hosts.size() > 1);
}

void running_job::start_on_this_host() {
  for (std::size_t rank = 0; rank < options_.ranks; ++rank)
    place_rank(rank);
}

/// Ranks of one host meet without credentials. Those of an elastic job get
/// others for each epoch.
void running_job::start_on_hosts() {
  if (members_) {
    hosts_.emplace(options_, folders_, streams_);
    hosts_->tell(members_->epoch());
  } else if (options_.remote->hosts.size() > 1) {
    credentials_ = comm::make_job_credentials(options_.ranks);
  }
  start_more();
}

std::size_t running_job::host_of(std::size_t rank) const {
  return place_of(rank, options_.remote->hosts).host;
}

bool running_job::has_lost_host_of(std::size_t rank) const {
  return hosts_ && hosts_->is_lost(host_of(rank));
}

/// Starts the next ranks on other hosts, as far as these take more logins.
void running_job::start_more() {
  const auto before = ranks_.size();
  for (auto rank = before;
       is_starting() && logins_at(host_of(rank)) < most_logins; ++rank) {
    ranks_.push_back(start_at_host(rank, rank_log::start::empty));
    if (has_lost_host_of(rank))
      ranks_.back()->process.send(SIGKILL);
  }
  if (ranks_.size() > before)
    guard();
}

std::unique_ptr<launched_rank>
running_job::start_at_host(std::size_t rank, rank_log::start log_from) {
  const auto credentials =
    credentials_.empty() ? "" : to_text(credentials_[rank]);
  if (!members_)
    return start_on_host(rank, options_, folders_, streams_, credentials);
  return start_on_host(rank, options_, folders_, streams_, credentials,
                       members_->number_in(rank),
                       hosts_->meeting_of(host_of(rank)), log_from);
}

/// True while ranks are still to be started. A job that is to end starts none.
bool running_job::is_starting() const {
  return ranks_.size() < options_.ranks && passed_on_ == 0
         && ending_.at == job_ending::stage::none;
}

std::size_t running_job::logins_at(std::size_t host) const {
  std::size_t logins = 0;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
    if (host_of(rank) == host && ranks_[rank]->is_on_its_way())
      ++logins;
  return logins;
}

void running_job::guard() {
  std::vector<pid_t> groups;
  if (hosts_)
    groups = hosts_->groups();
  for (const auto& rank : ranks_)
    groups.push_back(rank->process.id());
  // The old one guards until the new one does.
  auto next = std::make_unique<guardian>(groups, folders_.rendezvous());
  guardian_ = std::move(next);
}

bool running_job::have_all_ended() const {
  return !is_starting()
         && std::all_of(ranks_.begin(), ranks_.end(), [](const auto& rank) {
              return rank->process.end().has_value();
            });
}

void running_job::wait() {
  poll_list list;
  list.add(signals_.fd(), POLLIN, [this] { take_signals(); });
  for (const auto& rank : ranks_)
    wait_for_rank(*rank, list);
  if (hosts_)
    hosts_->add_to(list);
  wait_for_writer(streams_.out, list);
  wait_for_writer(streams_.err, list);
  list.wait(longest_wait());
  look_at_output();
  if (is_starting())
    start_more();
  if (hosts_)
    look_at_hosts();
  take_joins();
  replace_ended();
  kill_silent();
  if (hosts_)
    hosts_->tell(members_->epoch());
  go_on_with_end();
}

/// Nothing tells that a process of an elastic job is silent, or that a login
/// has succeeded.
int running_job::longest_wait() const {
  const auto wait = static_cast<unsigned>(ending_.milliseconds()); // -1: most
  const unsigned most = is_starting() ? 10 : members_ ? 200 : wait;
  return static_cast<int>(std::min(most, wait));
}

void running_job::wait_for_rank(launched_rank& rank, poll_list& list) {
  for (auto* stream : {&rank.out, &rank.err})
    if (!stream->is_closed() && !stream->target().is_full())
      list.add(stream->fd(), POLLIN, [stream] { stream->pass_some(); });
  if (rank.input && rank.input->is_waiting())
    list.add(rank.input->fd(), POLLOUT,
             [input = &*rank.input] { input->write_some(); });
}

void running_job::wait_for_writer(output_stream& stream, poll_list& list) {
  if (!stream.is_empty())
    list.add(stream.fd(), POLLOUT, [&stream] { stream.write_some(); });
}

void running_job::take_signals() {
  while (const auto signal = signals_.next())
    if (signal->number == SIGCHLD)
      look_at_ranks(signal->sender);
    else
      pass_on(signal->number);
}

void running_job::pass_on(int signal) {
  if (signal == SIGINT && std::exchange(was_interrupted_, true)) {
    ending_ = {job_ending::stage::killing, std::nullopt};
    signal = SIGKILL;
  }
  const bool asks_for_trace = signal == SIGUSR1 || signal == SIGUSR2;
  if (passed_on_ == 0 && !asks_for_trace)
    passed_on_ = signal;
  send(signal);
}

/// Several ranks can have ended, but the system tells only of the first.
void running_job::look_at_ranks(pid_t first) {
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
    if (ranks_[rank]->process.id() == first)
      look_at(rank);
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
    look_at(rank);
}

void running_job::look_at(std::size_t rank) {
  const bool had_ended = ranks_[rank]->process.end().has_value();
  const auto& end = ranks_[rank]->look();
  if (!end || had_ended || has_lost_host_of(rank))
    return;
  if (members_ && goes_on() && ranks_[rank]->has_lost_host()) {
    hosts_to_lose_.push_back({host_of(rank), ranks_[rank]->end_text(rank)
                                               + ranks_[rank]->last_words()});
  } else if (end->is_success()) {
    has_success_ = true;
    if (members_) {
      members_->remove(rank);
      epoch_is_due_ = true; // others may wait for it
      send_guests_away();
    }
  } else if (goes_on_without(*ranks_[rank])) {
    to_replace_.push_back(rank);
  } else if (members_ && members_->is_guest(rank)) {
    epoch_is_due_ = members_->remove(rank) || epoch_is_due_;
    if (goes_on())
      note(ranks_[rank]->end_text(rank) + ", the others go on"
           + ranks_[rank]->last_words());
  } else {
    fail(rank);
  }
}

void running_job::fail(std::size_t rank) {
  if (!first_failed_)
    first_failed_ = rank;
  else if (rank != *first_failed_)
    tell_end_of_other(rank);
  begin_end(options_.grace);
}

/// That of the first rank is told at the end of the job. After a signal, all
/// end for the same reason.
void running_job::tell_end_of_other(std::size_t rank) {
  const auto& end = ranks_[rank]->process.end();
  if (!end || passed_on_ != 0)
    return;
  const auto first = "rank " + std::to_string(*first_failed_);
  const bool went_on = ending_.at == job_ending::stage::terminating
                       || ending_.at == job_ending::stage::killing;
  note(ranks_[rank]->end_text(rank)
       + (went_on && end->killed
            ? ", because it went on after " + first + " had failed"
            : " after " + first));
}

/// If output cannot be written, its reader is gone or the disk is full: the
/// ranks need no time to find out.
void running_job::look_at_output() {
  if (!failed_output_.empty())
    return;
  if (streams_.out.failure() != 0)
    failed_output_ = std::string("cannot write to standard output: ")
                     + std::strerror(streams_.out.failure());
  for (const auto& rank : ranks_)
    if (rank->log.failure() != 0)
      failed_output_ = "cannot write " + rank->log.path() + ": "
                       + std::strerror(rank->log.failure());
  if (!failed_output_.empty())
    begin_end({});
}

void running_job::note(const std::string& line) {
  streams_.err.add("troupe: " + one_line(line) + "\n");
}

void running_job::begin_end(std::chrono::milliseconds grace) {
  if (ending_.at == job_ending::stage::none)
    ending_ = {job_ending::stage::leaving, job_clock::now() + grace};
}

void running_job::go_on_with_end() {
  if (!ending_.next || job_clock::now() < *ending_.next)
    return;
  if (ending_.at == job_ending::stage::leaving) {
    send(SIGTERM);
    ending_ = {job_ending::stage::terminating,
               job_clock::now() + options_.grace};
  } else {
    send(SIGKILL);
    ending_ = {job_ending::stage::killing, std::nullopt};
  }
}

void running_job::send(int signal) {
  for (const auto& rank : ranks_)
    if (!rank->process.end())
      rank->send(signal);
}

/// What the ranks have started is killed first, or it could print for ever.
/// Rank 0 comes last, because its output can end within a line.
void running_job::finish_output() {
  for (const auto& rank : ranks_)
    rank->process.send(SIGKILL);
  for (auto rank = ranks_.rbegin(); rank != ranks_.rend(); ++rank) {
    (*rank)->err.finish();
    (*rank)->out.finish();
  }
  bool gives_up = false;
  while (!gives_up && !(streams_.out.is_empty() && streams_.err.is_empty())) {
    poll_list list;
    list.add(signals_.fd(), POLLIN, [&] {
      while (const auto signal = signals_.next())
        gives_up = gives_up || signal->number != SIGCHLD;
    });
    wait_for_writer(streams_.out, list);
    wait_for_writer(streams_.err, list);
    list.wait(-1);
  }
  look_at_output();
}

/// Not of a wrong command line (exit code 2), which has been told already.
bool running_job::has_notable_logs() const {
  constexpr int usage = 2;
  return first_failed_ && passed_on_ == 0
         && ranks_[*first_failed_]->exit_code() != usage;
}

job_result running_job::result() {
  if (has_notable_logs())
    folders_.keep_logs();
  if (!failed_output_.empty())
    return {1, failed_output_};
  if (!failed_hosts_.empty())
    return {1, failed_hosts_};
  if (!first_failed_)
    return {};
  return {ranks_[*first_failed_]->exit_code(), failure_of_rank()};
}

std::string running_job::failure_of_rank() const {
  const auto& rank = *ranks_[*first_failed_];
  auto text = rank.end_text(*first_failed_);
  if (passed_on_ != 0)
    text += " after " + signal_name(passed_on_);
  if (has_notable_logs() || !options_.logs.empty())
    text += " (output: " + rank.log.path() + ")";
  return text + rank.last_words();
}

job_result run_job(const job_options& options) {
  return running_job(options).run();
}

} // namespace troupe::apps
