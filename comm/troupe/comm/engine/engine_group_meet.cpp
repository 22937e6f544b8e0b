// SPDX-License-Identifier: Apache-2.0

// How the processes of an engine's group meet and part.
#include <troupe/comm/engine/engine_group.hpp>

#include <troupe/base/threads.hpp>
#include <troupe/comm/end_of_group.hpp>

#include <algorithm>
#include <bit>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

namespace troupe::comm {

namespace {

using std::chrono::steady_clock;

/// How long a process that parts waits for the others.
constexpr std::chrono::milliseconds patience_at_end{500};
/// A process that has given signs of life, and none for so long, will not
/// answer.
constexpr std::chrono::seconds longest_silence{2};
constexpr std::chrono::milliseconds between_checks{20};

[[noreturn]] void refuse_group(const std::string& what) {
  throw error(errc::invalid_argument, "group over an engine: " + what);
}

rank_mask mask_of_ranks(const engine& by, const engine_group_options& options) {
  rank_mask mask = 0;
  for (auto rank : options.ranks) {
    if (rank >= max_ranks)
      refuse_group("rank " + std::to_string(rank) + ", at most "
                   + std::to_string(max_ranks) + " are possible");
    mask |= bit_of(rank);
  }
  return options.ranks.empty() ? bit_of(by.process()) : mask;
}

std::string process_text(std::size_t process) {
  return "process " + std::to_string(process);
}

using hellos_of_processes = std::vector<std::optional<hello_message>>;
using processes_of_hosts = std::vector<std::vector<std::size_t>>;

/// The processes of each host, in the order of their first ones.
processes_of_hosts hosts_of(const hellos_of_processes& hellos) {
  processes_of_hosts hosts;
  for (std::size_t p = 0; p < hellos.size(); ++p) {
    const auto own = std::ranges::find_if(hosts, [&](auto& all) {
      return hellos[all.front()]->host == hellos[p]->host;
    });
    if (own == hosts.end())
      hosts.push_back({p});
    else
      own->push_back(p);
  }
  return hosts;
}

/// False if there is one host, or no host has several ranks.
bool can_add_by_host(const processes_of_hosts& hosts,
                     const hellos_of_processes& hellos) {
  return hosts.size() > 1
         && (hosts.size() < hellos.size()
             || std::ranges::any_of(hellos, [](auto& hello) {
                  return !std::has_single_bit(hello->ranks);
                }));
}

host_use use_of(const std::optional<host_group_options>& hosts) {
  if (!hosts)
    return host_use::none;
  return hosts->adds ? host_use::parcels_and_sums : host_use::parcels;
}

} // namespace

engine_group::engine_group(std::unique_ptr<engine> by,
                           const engine_group_options& options)
  : engine_(std::move(by)),
    letter_bytes_(options.letter_bytes / engine_->processes()),
    own_memory_(options.hosts ? options.hosts->memory : nullptr),
    memory_(own_memory_ ? own_memory_->memory() : host_memory_) {
  if (engine_->processes() > max_ranks)
    refuse_group(std::to_string(engine_->processes()) + " processes, at most "
                 + std::to_string(max_ranks));
  own_hello_.process = static_cast<std::uint32_t>(engine_->process());
  own_hello_.processes = static_cast<std::uint32_t>(engine_->processes());
  own_hello_.hosts = use_of(options.hosts);
  own_hello_.host = options.hosts ? options.hosts->host : 0;
  own_hello_.ranks = mask_of_ranks(*engine_, options);
  own_hello_.letter_bytes = options.letter_bytes;
  own_hello_.piece_bytes = options.piece_bytes;
  hellos_.resize(engine_->processes());
  lost_.resize(engine_->processes());
  is_gone_.resize(engine_->processes());
  has_answered_.resize(engine_->processes());
  try {
    engine_->open(*this);
    meet(options);
    meet_neighbours(options);
    begin(options);
    thread_ = start_thread("troupe-meet", [this] { serve(); });
  } catch (...) {
    engine_->close();
    throw;
  }
}

engine_group::~engine_group() {
  part();
  {
    std::lock_guard guard{mutex_};
    ends_ = true;
    work_.notify_all();
  }
  thread_.join();
  parcels_.close(); // a receiver could use the way that has gone first
  engine_->close();
}

// -- meeting ------------------------------------------------------------------

void engine_group::meet(const engine_group_options& options) {
  const std::span own{&own_hello_, 1};
  {
    std::lock_guard guard{mutex_};
    hellos_[engine_->process()] = own_hello_;
  }
  for (std::size_t p = 0; p < engine_->processes(); ++p)
    if (p != engine_->process())
      engine_->post(p, std::as_bytes(own));
  wait_for_hellos(options);
  check_hellos();
}

/// Reads the first message of each process.
void engine_group::wait_for_hellos(const engine_group_options& options) {
  const auto deadline = steady_clock::now() + options.timeout;
  for (lock held{mutex_};;) {
    for (auto& [from, message] : early_)
      if (!hellos_[from])
        hellos_[from] = hello_of(message);
    std::string missing;
    for (std::size_t p = 0; p < hellos_.size(); ++p)
      if (!hellos_[p]) {
        if (lost_[p])
          throw error{*lost_[p]};
        missing += (missing.empty() ? "" : ", ") + std::to_string(p);
      }
    if (missing.empty())
      return;
    if (steady_clock::now() >= deadline)
      throw error(errc::peer_failure,
                  "processes that did not join in time: " + missing);
    ended_.wait_for(held, between_checks);
    if (options.check) {
      held.unlock();
      options.check();
      held.lock();
    }
  }
}

/// Throws if the processes want different groups. All see the same, so all
/// throw.
void engine_group::check_hellos() const {
  rank_mask all = 0;
  for (std::size_t p = 0; p < hellos_.size(); ++p) {
    const auto& hello = *hellos_[p];
    const auto& like = *hellos_[0];
    if (hello.process != p || hello.processes != hellos_.size())
      refuse_group(process_text(p) + " says that it is "
                   + std::to_string(hello.process) + " of "
                   + std::to_string(hello.processes));
    if (hello.hosts != like.hosts || hello.letter_bytes != like.letter_bytes
        || hello.piece_bytes != like.piece_bytes)
      refuse_group(process_text(p) + " has other options than process 0");
    if (hello.ranks == 0 || hello.ranks >= bit_of(max_ranks))
      refuse_group(process_text(p) + " has impossible ranks");
    if ((all & hello.ranks) != 0)
      refuse_group(process_text(p) + " has ranks of another process");
    all |= hello.ranks;
  }
  if ((all & (all + 1)) != 0)
    refuse_group("no process has rank " + std::to_string(std::countr_one(all)));
}

/// Finds out which processes share a host, and meets those of this one. Values
/// are added by host if that saves anything.
void engine_group::meet_neighbours(const engine_group_options& options) {
  if (!options.hosts)
    return;
  const auto hosts = hosts_of(hellos_);
  if (options.hosts->adds && can_add_by_host(hosts, hellos_))
    hosts_ = hosts;
  const auto& own =
    *std::ranges::find_if(hosts, [this](const std::vector<std::size_t>& all) {
      return std::ranges::find(all, engine_->process()) != all.end();
    });
  if (own.size() < 2)
    return;
  if (!own_memory_)
    refuse_group("the processes of a host need memory to share");
  shm_group_options at;
  at.path = options.hosts->path + "." + std::to_string(own.front());
  at.process = static_cast<std::size_t>(
    std::ranges::find(own, engine_->process()) - own.begin());
  at.processes = own.size();
  for_each_rank(own_hello_.ranks,
                [&](std::size_t r) { at.ranks.push_back(r); });
  at.timeout = options.timeout;
  at.check = options.check;
  if (std::error_code ignored; at.process == 0) // left by a run that was killed
    std::filesystem::remove(at.path, ignored);
  nearby_ = std::make_unique<neighbours>(at, own_memory_);
  nearby_parcels_.emplace(*nearby_, memory_, parcels_);
}

void engine_group::begin(const engine_group_options& options) {
  exchange_options how{
    {}, options.piece_bytes, hosts_, hosts_.empty() ? nullptr : nearby_.get()};
  notices none;
  lock held{mutex_};
  for (auto& hello : hellos_) {
    how.ranks_of_process.push_back(hello->ranks);
    size_ += static_cast<std::size_t>(std::popcount(hello->ranks));
    auto& ranks = states_.emplace_back().ranks;
    for_each_rank(hello->ranks, [&](std::size_t r) { ranks.push_back(r); });
  }
  for_each_rank(own_hello_.ranks, [&](std::size_t r) { own_.push_back(r); });
  last_beat_.resize(states_.size());
  made_.resize(size_);
  left_.resize(size_);
  why_.resize(size_);
  last_.resize(size_);
  plan_.emplace(size_);
  exchange_.emplace(*engine_, std::move(how), memory_);
  has_met_ = true;
  for (auto& [from, message] : early_) // letters of faster processes
    handle(from, message, none);
  early_.clear();
  for (std::size_t p = 0; p < lost_.size(); ++p)
    if (const auto why = std::exchange(lost_[p], std::nullopt))
      lose(p, *why, none);
}

// -- parting ------------------------------------------------------------------

/// True while other processes can need this one.
bool engine_group::has_unfinished_calls() const {
  return is_merging_ || !ready_.empty()
         || std::ranges::any_of(meetings_, [this](auto& m) {
              return m && m->came < size_ && !m->failure
                     && std::ranges::any_of(own_, [&](std::size_t r) {
                          return m->ranks[r].is_good;
                        });
            });
}

/// Waits until all calls have ended and the others know that this process goes,
/// but not for ever.
void engine_group::part() noexcept {
  lock held{mutex_};
  const auto has_ended = [this] { return !has_unfinished_calls(); };
  if (!ended_.wait_for(held, patience_at_end, has_ended)) {
    exchange_->stop();
    ended_.wait(held, [this] { return !is_merging_ && ready_.empty(); });
  }
  send_all(message_of({.kind = message_kind::bye}));
  ended_.wait_for(held, patience_at_end, [this] {
    for (std::size_t p = 0; p < has_answered_.size(); ++p)
      if (p != engine_->process() && !has_answered_[p] && !is_silent(p))
        return false;
    return true;
  });
}

bool engine_group::is_silent(std::size_t process) const {
  const auto& last = last_beat_[process];
  return last && steady_clock::now() - *last > longest_silence;
}

std::vector<std::unique_ptr<communicator>>
join_engine_group(std::unique_ptr<engine> by,
                  const engine_group_options& options) {
  class engine_communicator final : public end_of_group<engine_group> {
  public:
    using end_of_group::end_of_group;
    ~engine_communicator() override {
      leave({errc::peer_failure, "its communicator is gone"});
      group().wait_for_end(rank());
    }
    void beat(std::uint64_t steps, std::string_view doing) override {
      group().beat(steps, doing);
    }
    std::vector<peer_state> peers() const override { return group().peers(); }
    arena* memory() noexcept override { return group().memory(); }
    bool progress() override { return group().progress(); }
    void begin_looking() override { group().begin_looking(); }
    void end_looking() override { group().end_looking(); }
    void open_parcels(parcel_receiver& to) override {
      group().open_parcels(to);
    }
    void close_parcels() noexcept override { group().close_parcels(); }
    void send_parcel(std::size_t to, parcel p) override {
      group().send_parcel(rank(), to, std::move(p));
    }
  };
  const auto group = std::make_shared<engine_group>(std::move(by), options);
  std::vector<std::unique_ptr<communicator>> ends;
  for (auto rank : group->own_ranks())
    ends.push_back(std::make_unique<engine_communicator>(group, rank));
  return ends;
}

} // namespace troupe::comm
