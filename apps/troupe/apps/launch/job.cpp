// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/launch/job.hpp>

#include <troupe/apps/launch/guardian.hpp>
#include <troupe/apps/launch/job_folders.hpp>
#include <troupe/apps/launch/job_members.hpp>
#include <troupe/apps/launch/output_stream.hpp>
#include <troupe/apps/launch/rank_log.hpp>
#include <troupe/apps/launch/rank_process.hpp>
#include <troupe/apps/launch/signal_pipe.hpp>
#include <troupe/base/cores.hpp>
#include <troupe/base/descriptor.hpp>
#include <troupe/base/error.hpp>
#include <troupe/base/quoted_name.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

namespace troupe::apps {

namespace {

using job_clock = std::chrono::steady_clock;

// -- starting a rank ----------------------------------------------------------

/// A pipe to the launcher, from which reading does not wait.
struct output_pipe {
  descriptor read;
  descriptor write;

  output_pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0)
      throw error(errc::io_failure, std::string("no pipe for a rank's output: ")
                                      + std::strerror(errno));
    read = descriptor{ends[0]};
    write = descriptor{ends[1]};
    ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  }
};

const std::string member_variable = "TROUPE_MEMBER=";

/// This process's variables, and those that tell a rank its place.
/// @param member its number in an elastic job
std::vector<std::string> variables_of(std::size_t rank, std::size_t ranks,
                                      const job_folders& folders,
                                      std::optional<std::uint64_t> member) {
  const auto number = std::to_string(rank), count = std::to_string(ranks);
  const std::array<std::pair<std::string, std::string>, 6> own{{
    {"TROUPE_RANK=", number},
    {"TROUPE_SIZE=", count},
    {"TROUPE_LOCAL_RANK=", number},
    {"TROUPE_LOCAL_SIZE=", count},
    {"TROUPE_JOB=", folders.job()},
    {"TROUPE_RENDEZVOUS=", folders.rendezvous()},
  }};
  std::vector<std::string> all;
  for (char** entry = environ; *entry; ++entry)
    if (!std::string_view(*entry).starts_with(member_variable)
        && std::none_of(own.begin(), own.end(), [entry](const auto& variable) {
             return std::string_view(*entry).starts_with(variable.first);
           }))
      all.emplace_back(*entry);
  for (const auto& [name, value] : own)
    all.push_back(name + value);
  if (member)
    all.push_back(member_variable + std::to_string(*member));
  return all;
}

/// Rank 0 reads this process's input, unless that is a terminal: to read from
/// it would stop a process that is not in the terminal's foreground group.
descriptor input_of(std::size_t rank) {
  const bool is_own = rank == 0 && ::isatty(STDIN_FILENO) == 0;
  return descriptor{is_own ? ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
                           : ::open("/dev/null", O_RDONLY | O_CLOEXEC)};
}

std::optional<cpu_set_t> cores_of(std::size_t rank,
                                  const job_options& options) {
  if (!options.binds)
    return std::nullopt;
  return part_of_cores(rank, options.ranks);
}

/// How the standard output of a rank is passed on. That of rank 0 can be read
/// by a program.
passing passing_of_output(std::size_t rank, std::size_t ranks) {
  if (ranks == 1)
    return passing::at_once;
  return rank == 0 ? passing::lines : passing::prefixed_lines;
}

passing passing_of_errors(std::size_t ranks) {
  return ranks == 1 ? passing::at_once : passing::prefixed_lines;
}

/// Standard output and error of the launcher.
struct own_streams {
  output_stream out{STDOUT_FILENO};
  output_stream err{STDERR_FILENO};
};

struct rank_pipes {
  descriptor input;
  output_pipe out{};
  output_pipe err{};
};

struct launched_rank {
  rank_log log;
  rank_process process;
  rank_stream out;
  rank_stream err;

  /// Keeps only those ends of the pipes that it reads from.
  launched_rank(std::size_t rank, const job_options& options,
                const job_folders& folders, own_streams& to, rank_pipes pipes,
                std::optional<std::uint64_t> member = std::nullopt,
                rank_log::start log_from = rank_log::start::empty)
    : log(folders.log_of(rank), log_from),
      process(
        {options.command,
         variables_of(rank, options.ranks, folders, member),
         {pipes.input.get(), pipes.out.write.get(), pipes.err.write.get()},
         cores_of(rank, options)}),
      out(std::move(pipes.out.read), passing_of_output(rank, options.ranks),
          std::to_string(rank) + "| ", to.out, log),
      err(std::move(pipes.err.read), passing_of_errors(options.ranks),
          std::to_string(rank) + "| ", to.err, log) {}
};

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

// -- waiting ------------------------------------------------------------------

/// Descriptors to wait for, and what is to be done when one is ready.
class poll_list {
public:
  void add(int fd, short events, std::function<void()> act) {
    polled_.push_back({fd, events, 0});
    acts_.push_back(std::move(act));
  }

  void wait(int milliseconds) {
    if (::poll(polled_.data(), polled_.size(), milliseconds) <= 0)
      return; // a timeout, or a signal, which the next call finds in its pipe
    for (std::size_t i = 0; i < polled_.size(); ++i)
      if (polled_[i].revents != 0)
        acts_[i]();
  }

private:
  std::vector<pollfd> polled_;
  std::vector<std::function<void()>> acts_;
};

// -- a job --------------------------------------------------------------------

class running_job {
public:
  explicit running_job(const job_options& options)
    : options_(options), folders_(options.logs) {
    if (options.least_ranks)
      members_.emplace(folders_.rendezvous(), options.ranks);
    for (std::size_t rank = 0; rank < options.ranks; ++rank)
      ranks_.push_back(std::make_unique<launched_rank>(
        rank, options, folders_, streams_, rank_pipes{input_of(rank)},
        members_ ? std::optional{members_->number_in(rank)} : std::nullopt));
    guard();
  }

  job_result run() {
    while (!have_all_ended())
      wait();
    finish_output();
    return result();
  }

private:
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
  bool goes_on_without(const process_end& end) const;
  void replace_ended();
  void replace(std::size_t rank);
  void kill_silent();
  void note(const std::string& line);
  void fail(std::size_t rank);
  void begin_end(std::chrono::milliseconds grace);
  void go_on_with_end();
  void send(int signal) const;
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
  std::vector<std::unique_ptr<launched_rank>> ranks_;
  std::optional<job_members> members_;    ///< of an elastic job
  std::vector<std::size_t> to_replace_{}; ///< ranks of it that were killed
  bool has_success_ = false;              // a rank has ended so
  bool epoch_is_due_ = false;             // because of such a rank
  job_ending ending_;
  std::optional<std::size_t> first_failed_; ///< a rank
  std::string failed_output_;               ///< why output could not be written
  int passed_on_ = 0; ///< the first signal that was passed on
  bool was_interrupted_ = false;
};

void running_job::guard() {
  std::vector<pid_t> groups;
  for (const auto& rank : ranks_)
    groups.push_back(rank->process.id());
  // The old one guards until the new one does.
  auto next = std::make_unique<guardian>(groups, folders_.rendezvous());
  guardian_ = std::move(next);
}

bool running_job::have_all_ended() const {
  return std::all_of(ranks_.begin(), ranks_.end(), [](const auto& rank) {
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
  list.wait(members_ ? std::min(200u, unsigned(ending_.milliseconds()))
                     : ending_.milliseconds());
  look_at_output();
  replace_ended();
  kill_silent();
  go_on_with_end();
}

void running_job::wait_for_rank(launched_rank& rank, poll_list& list) {
  for (auto* stream : {&rank.out, &rank.err})
    if (!stream->is_closed() && !stream->target().is_full())
      list.add(stream->fd(), POLLIN, [stream] { stream->pass_some(); });
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
  const auto& end = ranks_[rank]->process.look();
  if (!end || had_ended)
    return;
  if (end->is_success()) {
    has_success_ = true;
    if (members_) {
      members_->remove(rank);
      epoch_is_due_ = true; // others may wait for it
    }
  } else if (goes_on_without(*end)) {
    to_replace_.push_back(rank);
  } else {
    fail(rank);
  }
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

/// A rank that ends by itself with an error would do so again. Once a rank has
/// done all steps, another one cannot get its state any more.
bool running_job::goes_on_without(const process_end& end) const {
  return members_ && end.killed && passed_on_ == 0 && !first_failed_
         && !has_success_ && ending_.at == job_ending::stage::none;
}

/// Not done while streams are polled, because it replaces them. What has
/// happened in the same pass can have ended the job meanwhile.
void running_job::replace_ended() {
  const auto ended = std::exchange(to_replace_, {});
  if (ended.empty() && !std::exchange(epoch_is_due_, false))
    return;
  for (const auto rank : ended)
    members_->remove(rank);
  const bool has_state = members_->living() > 0;
  for (const auto rank : ended)
    if (has_state && goes_on_without(*ranks_[rank]->process.end()))
      replace(rank);
    else
      fail(rank);
  if (first_failed_ || members_->living() == 0)
    return;
  if (!ended.empty() && members_->makes_no_progress())
    fail(ended.front());
  else
    members_->begin_epoch();
}

void running_job::replace(std::size_t rank) {
  auto& old = *ranks_[rank];
  const auto how =
    "rank " + std::to_string(rank) + " " + old.process.end()->text();
  old.process.send(SIGKILL); // what it has started
  old.err.finish();
  old.out.finish();
  const auto now = job_members::clock::now();
  if (members_->may_start_again(rank, now))
    try {
      const auto member = members_->replace(rank, now);
      ranks_[rank] = std::make_unique<launched_rank>(
        rank, options_, folders_, streams_, rank_pipes{input_of(rank)}, member,
        rank_log::start::after_the_old);
      note(how + " and is started again");
      guard();
      return;
    } catch (const error& failure) {
      note(failure.message());
      if (!ranks_[rank]->process.end())
        return; // it runs, only the guardian could not be started
    }
  members_->remove(rank);
  if (members_->living() >= *options_.least_ranks) {
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

void running_job::send(int signal) const {
  for (const auto& rank : ranks_)
    if (!rank->process.end())
      rank->process.send(signal);
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
  auto text =
    "rank " + std::to_string(*first_failed_) + " " + rank.process.end()->text();
  if (passed_on_ != 0)
    text += " after " + signal_name(passed_on_);
  if (has_notable_logs() || !options_.logs.empty())
    text += " (output: " + rank.log.path() + ")";
  if (!rank.err.last_line().empty())
    text += ": " + rank.err.last_line();
  return text;
}

} // namespace

job_result run_job(const job_options& options) {
  return running_job(options).run();
}

} // namespace troupe::apps
