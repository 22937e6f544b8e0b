// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/launch/job.hpp>

#include <troupe/apps/launch/guardian.hpp>
#include <troupe/apps/launch/job_folders.hpp>
#include <troupe/apps/launch/job_members.hpp>
#include <troupe/apps/launch/join_request.hpp>
#include <troupe/apps/launch/launched_rank.hpp>
#include <troupe/apps/launch/output_stream.hpp>
#include <troupe/apps/launch/poll_list.hpp>
#include <troupe/apps/launch/signal_pipe.hpp>
#include <troupe/base/error.hpp>
#include <troupe/base/quoted_name.hpp>
#include <troupe/comm/tls/job_credentials.hpp>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include <unistd.h>

namespace troupe::apps {

namespace {

using job_clock = std::chrono::steady_clock;

// From ten on, sshd refuses some (MaxStartups).
constexpr std::size_t most_logins = 8;

// -- the end of a job ---------------------------------------------------------

/// How far the end of a job has come, and when it goes on.
struct job_ending {
  enum class stage { none, leaving, terminating, killing };

  stage at = stage::none;
  std::optional<job_clock::time_point> next{};

  /// How long `poll` may wait: -1 is for ever.
  int milliseconds() const {
    if (!next)
      return -1;
    const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(*next - job_clock::now());
    return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 1 << 30));
  }
};

// -- a job --------------------------------------------------------------------

class running_job {
public:
  explicit running_job(const job_options& options)
    : options_(options), folders_(options.logs) {
    if (options.elastic)
      members_.emplace(folders_.rendezvous(), options.ranks);
    if (options.remote)
      start_on_hosts();
    else
      start_on_this_host();
    if (options.places() > options.ranks)
      note("more ranks can join: troupe launch --join "
           + std::to_string(::getpid()));
  }

  job_result run() {
    while (!have_all_ended())
      wait();
    finish_output();
    return result();
  }

private:
  void start_on_this_host();
  void start_on_hosts();
  void start_more();
  bool is_starting() const;
  std::size_t logins_at(std::size_t host) const;
  int longest_wait() const;
  void guard();
  bool have_all_ended() const;
  void wait();
  void wait_for_rank(launched_rank& rank, poll_list& list);
  void wait_for_writer(output_stream& stream, poll_list& list);
  void take_signals();
  void pass_on(int signal);
  void look_at_ranks(pid_t first);
  void look_at(std::size_t rank);
  void look_at_output();
  bool goes_on() const;
  bool goes_on_without(const process_end& end) const;
  void take_joins();
  join_answer let_join(std::size_t ranks);
  void add_rank();
  void place_rank(std::size_t place, std::uint64_t member);
  void send_guests_away();
  void replace_ended();
  void replace(std::size_t rank);
  void kill_silent();
  void note(const std::string& line);
  void fail(std::size_t rank);
  void begin_end(std::chrono::milliseconds grace);
  void go_on_with_end();
  void send(int signal);
  void finish_output();
  bool has_notable_logs() const;
  job_result result();
  std::string failure_of_rank() const;

  const job_options& options_;
  signal_pipe signals_;
  // Its end comes last: until then the launcher can be killed.
  std::unique_ptr<guardian> guardian_;
  job_folders folders_;
  own_streams streams_;
  std::vector<comm::job_credentials> credentials_;    ///< by rank
  std::vector<std::unique_ptr<launched_rank>> ranks_; ///< those started so far
  std::optional<job_members> members_;                ///< of an elastic job
  std::vector<std::size_t> to_replace_{}; ///< ranks of it that were killed
  bool has_success_ = false;              // a rank has ended so
  bool epoch_is_due_ = false;             // because of such a rank
  job_ending ending_;
  std::optional<std::size_t> first_failed_; ///< a rank
  std::string failed_output_;               ///< why output could not be written
  int passed_on_ = 0; ///< the first signal that was passed on
  bool was_interrupted_ = false;
};

void running_job::start_on_this_host() {
  for (std::size_t rank = 0; rank < options_.ranks; ++rank)
    ranks_.push_back(start_here(
      rank, options_, folders_, streams_,
      members_ ? std::optional{members_->number_in(rank)} : std::nullopt));
  guard();
}

/// Ranks of one host meet without credentials.
void running_job::start_on_hosts() {
  if (options_.remote->hosts.size() > 1)
    credentials_ = comm::make_job_credentials(options_.ranks);
  start_more();
}

/// Starts the next ranks on other hosts, as far as these take more logins.
void running_job::start_more() {
  const auto before = ranks_.size();
  for (auto rank = before;
       is_starting()
       && logins_at(place_of(rank, options_.remote->hosts).host) < most_logins;
       ++rank)
    ranks_.push_back(
      start_on_host(rank, options_, folders_, streams_,
                    credentials_.empty() ? "" : to_text(credentials_[rank])));
  if (ranks_.size() > before)
    guard();
}

/// True while ranks are still to be started. A job that is to end starts none.
bool running_job::is_starting() const {
  return ranks_.size() < options_.ranks && passed_on_ == 0
         && ending_.at == job_ending::stage::none;
}

std::size_t running_job::logins_at(std::size_t host) const {
  std::size_t logins = 0;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
    if (place_of(rank, options_.remote->hosts).host == host
        && ranks_[rank]->is_on_its_way())
      ++logins;
  return logins;
}

void running_job::guard() {
  std::vector<pid_t> groups;
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
  wait_for_writer(streams_.out, list);
  wait_for_writer(streams_.err, list);
  list.wait(longest_wait());
  look_at_output();
  if (is_starting())
    start_more();
  take_joins();
  replace_ended();
  kill_silent();
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
  if (passed_on_ == 0)
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
  if (!end || had_ended)
    return;
  if (end->is_success()) {
    has_success_ = true;
    if (members_) {
      members_->remove(rank);
      epoch_is_due_ = true; // others may wait for it
      send_guests_away();
    }
  } else if (goes_on_without(*end)) {
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

/// Guests have no state. The job is done without them.
void running_job::send_guests_away() {
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
    if (members_->is_guest(rank))
      ranks_[rank]->process.send(SIGKILL);
}

void running_job::fail(std::size_t rank) {
  if (!first_failed_)
    first_failed_ = rank;
  begin_end(options_.grace);
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

/// True if ranks may still be started. Once a rank has done all steps, another
/// one cannot get its state any more.
bool running_job::goes_on() const {
  return members_ && passed_on_ == 0 && !first_failed_ && !has_success_
         && ending_.at == job_ending::stage::none;
}

/// A rank that ends by itself with an error would do so again.
bool running_job::goes_on_without(const process_end& end) const {
  return goes_on() && end.killed;
}

/// Not done while streams are polled, because it adds some.
void running_job::take_joins() {
  if (!members_)
    return;
  while (const auto request = take_join_request(folders_.rendezvous()))
    answer_join_request(folders_.rendezvous(), *request,
                        let_join(request->ranks));
  if (goes_on() && members_->let_in())
    epoch_is_due_ = true;
}

join_answer running_job::let_join(std::size_t ranks) {
  if (!goes_on())
    return {false, "the job is about to end"};
  const auto there = members_->started(), most = options_.places();
  if (ranks > most - there)
    return {false, "the job has " + std::to_string(there) + " ranks and may "
                     + "have " + std::to_string(most) + " (--elastic): "
                     + std::to_string(ranks) + " more cannot join"};
  try {
    for (std::size_t i = 0; i < ranks; ++i)
      add_rank();
  } catch (const error& failure) {
    note(failure.message());
    return {false, one_line(failure.message())};
  }
  return {true, std::to_string(ranks) + (ranks == 1 ? " rank is" : " ranks are")
                  + " started"};
}

void running_job::add_rank() {
  const auto place = members_->add(job_members::clock::now());
  try {
    place_rank(place, members_->number_in(place));
  } catch (const error&) {
    if (place >= ranks_.size() || ranks_[place]->process.end())
      members_->remove(place); // else only the guardian could not be started
    throw;
  }
  note("rank " + std::to_string(place) + " is started to join the others");
}

/// Starts a rank in a new place, or in that of one that has ended.
void running_job::place_rank(std::size_t place, std::uint64_t member) {
  const bool is_new = place == ranks_.size();
  if (!is_new)
    ranks_[place]->clear_away();
  auto made = start_here(place, options_, folders_, streams_, member,
                         is_new ? rank_log::start::empty
                                : rank_log::start::after_the_old);
  if (is_new)
    ranks_.emplace_back();
  ranks_[place] = std::move(made);
  guard();
}

/// Not done while streams are polled, because it replaces them. What has
/// happened in the same pass can have ended the job meanwhile.
void running_job::replace_ended() {
  const auto ended = std::exchange(to_replace_, {});
  for (const auto rank : ended)
    epoch_is_due_ = members_->remove(rank) || epoch_is_due_;
  const bool has_state = members_ && members_->living() > 0;
  for (const auto rank : ended)
    if (has_state && goes_on_without(*ranks_[rank]->process.end()))
      replace(rank);
    else
      fail(rank);
  if (!std::exchange(epoch_is_due_, false) || first_failed_
      || members_->living() == 0)
    return;
  if (!ended.empty() && members_->makes_no_progress())
    fail(ended.front());
  else
    members_->begin_epoch();
}

void running_job::replace(std::size_t rank) {
  const auto how = ranks_[rank]->end_text(rank);
  const auto now = job_members::clock::now();
  if (members_->may_start_again(rank, now))
    try {
      place_rank(rank, members_->replace(rank, now));
      note(how + " and is started again");
      return;
    } catch (const error& failure) {
      note(failure.message());
      if (!ranks_[rank]->process.end())
        return; // it runs, only the guardian could not be started
    }
  members_->remove(rank);
  if (members_->living() >= options_.elastic->least) {
    note(how + ", the others go on");
    return;
  }
  fail(rank);
}

void running_job::kill_silent() {
  if (!members_ || ending_.at != job_ending::stage::none || first_failed_)
    return;
  for (const auto rank : members_->look_for_silent(job_members::clock::now())) {
    if (has_success_)
      continue; // it has done all steps, too, and may be saving
    note("rank " + std::to_string(rank) + " hangs: it is killed");
    ranks_[rank]->process.send(SIGKILL);
  }
  // Ranks that can make no run together try it again and again.
  if (!has_success_ && members_->makes_no_progress())
    fail(0);
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
         && ranks_[*first_failed_]->process.end()->code() != usage;
}

job_result running_job::result() {
  if (has_notable_logs())
    folders_.keep_logs();
  if (!failed_output_.empty())
    return {1, failed_output_};
  if (!first_failed_)
    return {};
  return {ranks_[*first_failed_]->process.end()->code(), failure_of_rank()};
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

} // namespace

job_result run_job(const job_options& options) {
  return running_job(options).run();
}

} // namespace troupe::apps
