// SPDX-License-Identifier: Apache-2.0
#include <troupe/comm/rank_environment.hpp>

#include <troupe/base/error.hpp>
#include <troupe/base/fingerprint.hpp>
#include <troupe/base/quoted_name.hpp>
#include <troupe/comm/starting_process.hpp>

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <string_view>
#include <vector>

namespace troupe::comm {

namespace {

[[noreturn]] void refuse(const std::string& why) {
  throw error(errc::invalid_argument, why);
}

// -- variables ----------------------------------------------------------------

/// The variables of one launcher.
class launcher_variables {
public:
  launcher_variables(const environment& from, const char* launcher)
    : from_(from), launcher_(launcher) {}

  const char* launcher() const { return launcher_; }

  /// Empty if the variable is not set.
  std::string find(const std::string& name) const {
    return from_.value(name).value_or("");
  }

  bool has_any(const std::vector<const char*>& names) const {
    return std::any_of(names.begin(), names.end(), [this](const char* name) {
      return !find(name).empty();
    });
  }

  /// The first of the variables that is set. One of them must be.
  const char* first_of(const std::vector<const char*>& names) const {
    std::string all;
    for (const char* name : names) {
      if (!find(name).empty())
        return name;
      all += (all.empty() ? "" : " or ") + std::string(name);
    }
    refuse(all + " is not set, but other variables say that " + launcher_
           + " started this process");
  }

  std::string get(const char* name) const { return find(first_of({name})); }

  std::size_t number(const char* name) const {
    const auto text = get(name);
    std::uint32_t value = 0; // no job has as many ranks
    const auto* end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, value);
    if (read.ec != std::errc{} || read.ptr != end)
      refuse(told(name) + ": must be a whole number from 0 to 4294967295");
    return value;
  }

  /// "RANK is '7' (set by torchrun)".
  std::string told(const char* name) const {
    return std::string(name) + " is " + quoted_name(find(name)) + " (set by "
           + launcher_ + ")";
  }

  std::string process_that_set(const char* name) const {
    return from_.process_that_set(name);
  }

private:
  const environment& from_;
  const char* launcher_;
};

// -- names of jobs ------------------------------------------------------------

constexpr std::size_t longest_job = 64;

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')
         || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
}

/// Text that can be the name of a file. Where it must differ from the given
/// text, a hash keeps different texts apart.
std::string file_name(const std::string& text) {
  std::string name = text;
  std::replace_if(
    name.begin(), name.end(), [](char c) { return !is_plain(c); }, '_');
  if (name == text && name.size() <= longest_job)
    return name;
  fingerprint print;
  print.add(text);
  const auto hash = "-" + print.text();
  return name.substr(0, longest_job - hash.size()) + hash;
}

/// The values of those of the variables that are set, with dots between.
std::string joined(const launcher_variables& from,
                   std::initializer_list<const char*> names) {
  std::string all;
  for (const char* name : names)
    if (const auto value = from.find(name); !value.empty())
      all += (all.empty() ? "" : ".") + value;
  return all;
}

std::string job_of_troupe(const launcher_variables& from) {
  return from.get("TROUPE_JOB");
}

/// Jobs without an --rdzv-id have the id "none", but different ports, if they
/// run at the same time.
std::string job_of_torchrun(const launcher_variables& from) {
  return joined(from, {"TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT",
                       "TORCHELASTIC_RESTART_COUNT"});
}

/// In Open MPI 4, the number of a job has 16 bits that depend on the process
/// number of mpirun. The other variable is random.
std::string job_of_open_mpi(const launcher_variables& from) {
  return joined(from,
                {from.first_of({"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"}),
                 "OMPI_MCA_orte_precondition_transports"});
}

/// No variable names the job. All ranks of a host have the same proxy.
std::string job_of_hydra(const launcher_variables& from) {
  auto proxy = from.process_that_set("PMI_RANK");
  if (proxy.empty())
    refuse(from.told("PMI_RANK") + ": its process is not found in /proc");
  return proxy;
}

std::string job_of_slurm(const launcher_variables& from) {
  return joined(from, {from.first_of({"SLURM_JOB_ID", "SLURM_JOBID"}),
                       "SLURM_STEP_ID", "SLURM_RESTART_COUNT"});
}

// -- Slurm --------------------------------------------------------------------

/// Larger ones are those of batch scripts, interactive shells, and processes
/// that Slurm adopts.
constexpr std::size_t largest_step = 0xffff'fff0 - 1;

/// Removes a number from the front of the text; nothing if there is none.
std::optional<std::size_t> take_number(std::string_view& text) {
  std::uint32_t value = 0;
  const auto* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  if (read.ec != std::errc{})
    return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(read.ptr - text.data()));
  return value;
}

bool take(std::string_view& text, std::string_view begin) {
  const bool found = text.starts_with(begin);
  if (found)
    text.remove_prefix(begin.size());
  return found;
}

/// The number of tasks on a node, from a list such as "2(x3),1": 2 tasks on
/// each of the first 3 nodes, 1 on the next. Nothing if the list is malformed
/// or too short.
std::optional<std::size_t> tasks_on(std::size_t node, std::string_view list) {
  do {
    const auto tasks = take_number(list);
    std::optional<std::size_t> nodes = 1;
    if (take(list, "(x")) {
      nodes = take_number(list);
      if (!take(list, ")"))
        return std::nullopt;
    }
    if (!tasks || !nodes)
      return std::nullopt;
    if (node < *nodes)
      return tasks;
    node -= *nodes;
  } while (take(list, ","));
  return std::nullopt;
}

std::size_t local_size_of_slurm(const launcher_variables& from) {
  const char* list = "SLURM_STEP_TASKS_PER_NODE";
  const auto tasks = tasks_on(from.number("SLURM_NODEID"), from.get(list));
  if (!tasks)
    refuse(from.told(list) + ": must be a list such as 2(x3),1 with an entry "
           + "for node " + from.get("SLURM_NODEID") + " (SLURM_NODEID)");
  return *tasks;
}

// -- launchers ----------------------------------------------------------------

struct launcher_entry {
  const char* name;
  const char* prefix; ///< of jobs, so that those of launchers differ
  /// If one of these is set, the launcher has started this process.
  std::vector<const char*> marks;
  const char* rank;
  std::vector<const char*> size; ///< the first that is set
  const char* local_rank;
  const char* local_size;
  std::string (*job)(const launcher_variables&);

  bool is_slurm() const { return job == job_of_slurm; }
};

/// The innermost comes first.
std::vector<launcher_entry> all_launchers() {
  return {
    {"troupe launch",
     "troupe",
     {"TROUPE_RANK", "TROUPE_SIZE"},
     "TROUPE_RANK",
     {"TROUPE_SIZE"},
     "TROUPE_LOCAL_RANK",
     "TROUPE_LOCAL_SIZE",
     job_of_troupe},
    {"torchrun",
     "torchrun",
     {"TORCHELASTIC_RUN_ID"},
     "RANK",
     {"WORLD_SIZE"},
     "LOCAL_RANK",
     "LOCAL_WORLD_SIZE",
     job_of_torchrun},
    {"mpirun",
     "mpirun",
     {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
     "OMPI_COMM_WORLD_RANK",
     {"OMPI_COMM_WORLD_SIZE"},
     "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE",
     job_of_open_mpi},
    {"mpiexec",
     "mpiexec",
     {"MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
     "PMI_RANK",
     {"PMI_SIZE"},
     "MPI_LOCALRANKID",
     "MPI_LOCALNRANKS",
     job_of_hydra},
    // SLURM_NTASKS can be the number of the whole allocation.
    {"srun",
     "srun",
     {"SLURM_STEP_ID"},
     "SLURM_PROCID",
     {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"},
     "SLURM_LOCALID",
     "SLURM_STEP_TASKS_PER_NODE",
     job_of_slurm},
  };
}

bool has_started_this(const launcher_entry& launcher,
                      const launcher_variables& from) {
  return from.has_any(launcher.marks)
         && (!launcher.is_slurm()
             || from.number("SLURM_STEP_ID") <= largest_step);
}

void require_less(const launcher_variables& from, const char* rank,
                  const char* size_name, std::size_t size) {
  if (from.number(rank) >= size)
    refuse(from.told(rank) + ": must be less than " + std::to_string(size)
           + " (" + size_name + ")");
}

/// Reads HOST:PORT.
void read_address(const launcher_variables& from, rank_environment& into) {
  const char* name = "TROUPE_ADDRESS";
  const auto given = from.find(name);
  if (given.empty())
    return;
  const std::string_view text = given;
  const auto colon = text.rfind(':');
  auto host = text.substr(0, std::min(colon, text.size()));
  auto port = colon == text.npos ? "" : text.substr(colon + 1);
  const bool is_quoted = host.starts_with('[') && host.ends_with(']');
  const auto number = take_number(port);
  if (is_quoted)
    host = host.substr(1, host.size() - 2);
  if (host.empty() || (!is_quoted && host.find(':') != host.npos) || !number
      || !port.empty() || *number == 0 || *number > 65'535)
    refuse(std::string{name} + " is " + quoted_name(given)
           + ": must be HOST:PORT, with a port from 1 to 65535");
  into.port = static_cast<std::uint16_t>(*number);
  into.address = std::string{host};
}

/// On several hosts, ranks of an elastic job also need ports for its epochs.
void require_meeting(const std::string& told, const rank_environment& found) {
  if (found.address.empty() || found.credentials.empty())
    refuse(told
           + ", but the ranks are on several hosts: TROUPE_ADDRESS and "
             "TROUPE_CREDENTIALS must say how they meet");
  if (found.port > 65'535 - ports_of_epochs)
    refuse(told + ", but TROUPE_ADDRESS names port "
           + std::to_string(found.port) + ": the "
           + std::to_string(ports_of_epochs)
           + " ports after it are needed, too");
}

/// Reads MIN:MAX.
void read_range(const launcher_entry& launcher, const launcher_variables& from,
                rank_environment& into) {
  const auto given = from.find("TROUPE_ELASTIC");
  if (given.empty() || into.member)
    return;
  std::string_view text = given;
  const auto least = take_number(text);
  const bool has_colon = take(text, ":");
  const auto most = take_number(text);
  const auto told = "TROUPE_ELASTIC is " + quoted_name(given);
  if (!least || !has_colon || !most || !text.empty() || *least == 0)
    refuse(told + ": must be MIN:MAX, such as 2:4");
  if (into.size < *least || into.size > *most)
    refuse(told + ", but the job begins with " + std::to_string(into.size)
           + " ranks (" + from.first_of(launcher.size) + ")");
  if (launcher.job == job_of_open_mpi || launcher.job == job_of_hydra)
    refuse(told + ", but " + launcher.name
           + " ends all ranks of a job when one of them ends");
  if (into.local_size != into.size)
    require_meeting(told, into);
  into.least = *least;
  into.most = *most;
}

rank_environment read_rank(const launcher_entry& launcher,
                           const launcher_variables& from) {
  const char* size = from.first_of(launcher.size);
  rank_environment found{
    .launcher = launcher.name,
    .rank = from.number(launcher.rank),
    .size = from.number(size),
    .local_rank = from.number(launcher.local_rank),
    .local_size = launcher.is_slurm() ? local_size_of_slurm(from)
                                      : from.number(launcher.local_size),
    .job = file_name(launcher.prefix + ("-" + launcher.job(from))),
    .rendezvous = ""};
  require_less(from, launcher.rank, size, found.size);
  require_less(from, launcher.local_rank, launcher.local_size,
               found.local_size);
  if (found.local_size > found.size)
    refuse(from.told(launcher.local_size)
           + ": this host cannot have more ranks than the job, "
           + std::to_string(found.size) + " (" + size + ")");
  if (found.local_size != found.size) { // otherwise nobody needs them
    read_address(from, found);
    found.credentials = from.find("TROUPE_CREDENTIALS");
    found.interface = from.find("TROUPE_INTERFACE");
  }
  if (launcher.job == job_of_troupe)
    found.rendezvous = from.find("TROUPE_RENDEZVOUS");
  if (launcher.job == job_of_troupe && from.has_any({"TROUPE_MEMBER"})) {
    found.member = from.number("TROUPE_MEMBER");
    if (found.rendezvous.empty())
      refuse(from.told("TROUPE_MEMBER")
             + ": TROUPE_RENDEZVOUS must name the folder of the job");
  }
  read_range(launcher, from, found);
  return found;
}

} // namespace

environment own_environment() {
  return {
    [](const std::string& name) -> std::optional<std::string> {
      const char* value = std::getenv(name.c_str());
      return value ? std::optional<std::string>(value) : std::nullopt;
    },
    [](const std::string& name) { return process_that_set(name, ::getpid()); }};
}

std::optional<rank_environment> find_rank(const environment& variables) {
  for (const auto& launcher : all_launchers()) {
    const launcher_variables from{variables, launcher.name};
    if (has_started_this(launcher, from))
      return read_rank(launcher, from);
  }
  return std::nullopt;
}

std::optional<rank_environment> find_rank() {
  return find_rank(own_environment());
}

} // namespace troupe::comm
