// SPDX-License-Identifier: Apache-2.0
#include <troupe/comm/rank_environment.hpp>

#include <support/files.hpp>

#include <doctest/doctest.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <stdlib.h>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("comm.rank_environment") {

namespace {

using variables = std::map<std::string, std::string>;

comm::environment environment_of(const variables& table) {
  return {[table](const std::string& name) -> std::optional<std::string> {
            const auto found = table.find(name);
            return found == table.end() ? std::nullopt
                                        : std::optional(found->second);
          },
          [](const std::string& name) { return "setter-of-" + name; }};
}

std::optional<comm::rank_environment> found_in(const variables& table) {
  return comm::find_rank(environment_of(table));
}

/// "launcher rank/size local_rank/local_size job rendezvous", or "none".
std::string text_of(const variables& table) {
  const auto found = found_in(table);
  if (!found)
    return "none";
  return found->launcher + " " + std::to_string(found->rank) + "/"
         + std::to_string(found->size) + " " + std::to_string(found->local_rank)
         + "/" + std::to_string(found->local_size) + " " + found->job + " "
         + found->rendezvous;
}

std::string failure_of(const variables& table) {
  return error_of([&] { found_in(table); });
}

/// `table` with other variables. An empty value removes one.
variables with(variables table, const variables& changes) {
  for (const auto& [name, value] : changes)
    if (value.empty())
      table.erase(name);
    else
      table[name] = value;
  return table;
}

variables united(variables one, const variables& other) {
  one.insert(other.begin(), other.end());
  return one;
}

const variables launched{
  {"TROUPE_RANK", "1"},       {"TROUPE_SIZE", "3"},
  {"TROUPE_LOCAL_RANK", "1"}, {"TROUPE_LOCAL_SIZE", "2"},
  {"TROUPE_JOB", "123-4e5f"}, {"TROUPE_RENDEZVOUS", "/tmp/troupe-0/job"}};

const variables torchrun{
  {"RANK", "3"},
  {"WORLD_SIZE", "4"},
  {"LOCAL_RANK", "1"},
  {"LOCAL_WORLD_SIZE", "2"},
  {"MASTER_ADDR", "node-1"},
  {"MASTER_PORT", "34441"},
  {"TORCHELASTIC_RUN_ID", "11c75fe2"},
  {"TORCHELASTIC_RESTART_COUNT", "2"},
};

const variables open_mpi{
  {"OMPI_COMM_WORLD_RANK", "2"},
  {"OMPI_COMM_WORLD_SIZE", "4"},
  {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
  {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
  {"OMPI_MCA_ess_base_jobid", "732037121"},
  {"OMPI_MCA_orte_precondition_transports", "5b529c1c58c39ab4-4cc87aba2b65"},
  {"PMIX_NAMESPACE", "732037121"},
  {"PMIX_RANK", "2"},
};

const variables hydra{
  {"PMI_RANK", "1"},        {"PMI_SIZE", "2"},        {"PMI_FD", "8"},
  {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}, {"HYDI_CONTROL_FD", "7"},
};

/// What a batch script sees.
const variables slurm_allocation{
  {"SLURM_JOB_ID", "4711"}, {"SLURM_NTASKS", "16"},
  {"SLURM_NODEID", "0"},    {"SLURM_PROCID", "0"},
  {"SLURM_LOCALID", "0"},   {"SLURM_TASKS_PER_NODE", "8(x2)"},
};

const variables slurm_step =
  with(slurm_allocation, {{"SLURM_STEP_ID", "5"},
                          {"SLURM_STEP_NUM_TASKS", "7"},
                          {"SLURM_STEP_TASKS_PER_NODE", "2(x3),1"},
                          {"SLURM_NODEID", "2"},
                          {"SLURM_PROCID", "5"},
                          {"SLURM_LOCALID", "1"}});

const std::string of_launched =
  "troupe launch 1/3 1/2 troupe-123-4e5f /tmp/troupe-0/job";
const std::string of_torchrun =
  "torchrun 3/4 1/2 torchrun-11c75fe2.node-1.34441.2 ";
const std::string of_open_mpi =
  "mpirun 2/4 0/2 mpirun-732037121.5b529c1c58c39ab4-4cc87aba2b65 ";
const std::string of_hydra = "mpiexec 1/2 1/2 mpiexec-setter-of-PMI_RANK ";
const std::string of_slurm = "srun 5/7 1/2 srun-4711.5 ";

} // namespace

TEST_CASE("the variables of each launcher are read") {
  CHECK(text_of(launched) == of_launched);
  CHECK(text_of(torchrun) == of_torchrun);
  CHECK(text_of(open_mpi) == of_open_mpi);
  CHECK(text_of(hydra) == of_hydra);
  CHECK(text_of(slurm_step) == of_slurm);
}

TEST_CASE("variables that say less are enough") {
  CHECK(text_of(with(launched, {{"TROUPE_RENDEZVOUS", ""}}))
        == "troupe launch 1/3 1/2 troupe-123-4e5f ");
  CHECK(text_of(with(open_mpi, {{"PMIX_NAMESPACE", ""}})) == of_open_mpi);
  CHECK(text_of(with(open_mpi, {{"OMPI_MCA_ess_base_jobid", ""},
                                {"OMPI_MCA_orte_precondition_transports", ""},
                                {"PMIX_NAMESPACE", "prterun-vm-12@1"}}))
          .starts_with("mpirun 2/4 0/2 mpirun-prterun-vm-12_1-"));
  CHECK(text_of(with(slurm_step, {{"SLURM_STEP_NUM_TASKS", ""},
                                  {"SLURM_NTASKS", "9"},
                                  {"SLURM_RESTART_COUNT", "1"}}))
        == "srun 5/9 1/2 srun-4711.5.1 ");
}

TEST_CASE("a process that no launcher started has no rank") {
  CHECK(text_of({}) == "none");
  CHECK(text_of({{"TROUPE_RANK", ""}, {"HOME", "/root"}}) == "none");
  // Scripts set these for other programs.
  CHECK(text_of({{"RANK", "0"}, {"WORLD_SIZE", "1"}}) == "none");
}

TEST_CASE("a shell or script of Slurm is no rank") {
  CHECK(text_of(slurm_allocation) == "none");
  for (const auto* special :
       {"4294967290", "4294967291", "4294967292", "4294967294", "4294967295"})
    CHECK(text_of(with(slurm_step, {{"SLURM_STEP_ID", special}})) == "none");
  CHECK(text_of(with(slurm_step, {{"SLURM_STEP_ID", "0"}})) != "none");
}

TEST_CASE("of several launchers the innermost is taken") {
  CHECK(text_of(united(slurm_step, open_mpi)) == of_open_mpi);
  CHECK(text_of(united(slurm_step, hydra)) == of_hydra);
  CHECK(text_of(united(slurm_step, torchrun)) == of_torchrun);
  CHECK(text_of(united(open_mpi, torchrun)) == of_torchrun);
  CHECK(text_of(united(hydra, torchrun)) == of_torchrun);
  for (const auto& outer : {slurm_step, hydra, open_mpi, torchrun})
    CHECK(text_of(united(outer, launched)) == of_launched);
  CHECK(text_of(united(slurm_allocation, open_mpi)) == of_open_mpi);
  // Slurm speaks the protocol PMI, too.
  CHECK(text_of(united(slurm_step, {{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}}))
        == of_slurm);
}

TEST_CASE("the ranks of a node of Slurm are counted") {
  const auto local_size = [](const char* list, const char* node) {
    return found_in(with(slurm_step, {{"SLURM_STEP_TASKS_PER_NODE", list},
                                      {"SLURM_NODEID", node}}))
      ->local_size;
  };
  CHECK(local_size("2", "0") == 2);
  CHECK(local_size("2(x3),4", "2") == 2);
  CHECK(local_size("2(x3),4", "3") == 4);
  CHECK(local_size("3,2(x2),5", "2") == 2);
  CHECK(local_size("3,2(x2),5", "3") == 5);
  for (const auto* wrong : {"x", "2(x3),", "2(x),4", "2(x3,4", "2,,2", "2(3)"})
    CHECK(failure_of(with(slurm_step, {{"SLURM_STEP_TASKS_PER_NODE", wrong},
                                       {"SLURM_NODEID", "3"}}))
          == "invalid_argument: SLURM_STEP_TASKS_PER_NODE is '"
               + std::string(wrong)
               + "' (set by srun): must be a list such as 2(x3),1 with an "
                 "entry for node 3 (SLURM_NODEID)");
}

TEST_CASE("jobs differ where one of their variables differs") {
  const auto job = [](const variables& table) { return found_in(table)->job; };
  const auto differ = [&](const variables& table, const char* name) {
    CAPTURE(name);
    CHECK(job(table) != job(with(table, {{name, "8"}})));
  };
  for (const auto* name : {"TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT",
                           "TORCHELASTIC_RESTART_COUNT"})
    differ(torchrun, name);
  differ(launched, "TROUPE_JOB");
  differ(open_mpi, "PMIX_NAMESPACE");
  differ(open_mpi, "OMPI_MCA_orte_precondition_transports");
  for (const auto* name :
       {"SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT"})
    differ(slurm_step, name);
}

TEST_CASE("the name of a job can be that of a file") {
  const auto job = [](const std::string& text) {
    return found_in(with(launched, {{"TROUPE_JOB", text}}))->job;
  };
  const std::string allowed =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVW"
    "XYZ0123456789._-";
  for (const std::string& text :
       {std::string("../a"), std::string("a b"), std::string("a\n"),
        std::string("\xff"), std::string(1000, 'a')}) {
    CAPTURE(text);
    CHECK(job(text).starts_with("troupe-"));
    CHECK(job(text).size() <= 64);
    CHECK(job(text).find_first_not_of(allowed) == std::string::npos);
  }
  CHECK(job("a b") != job("a_b"));
  CHECK(job("a b") != job("a\tb"));
  CHECK(job(std::string(1000, 'a')) != job(std::string(1001, 'a')));
  CHECK(job(std::string(57, 'a')) == "troupe-" + std::string(57, 'a'));
}

TEST_CASE("a job is elastic if its variables say so") {
  const auto all_here =
    with(torchrun, {{"LOCAL_WORLD_SIZE", "4"}, {"LOCAL_RANK", "3"}});
  const auto plain = with(launched, {{"TROUPE_LOCAL_SIZE", "3"}});
  for (const auto& table : {all_here, plain}) {
    CHECK(found_in(table)->most == 0);
    const auto found = found_in(with(table, {{"TROUPE_ELASTIC", "2:5"}}));
    CHECK(found->least == 2);
    CHECK(found->most == 5);
    CHECK_FALSE(found->member);
  }
  // `troupe launch` keeps the rendezvous itself.
  CHECK(
    found_in(with(plain, {{"TROUPE_MEMBER", "1"}, {"TROUPE_ELASTIC", "2:5"}}))
      ->most
    == 0);
  const auto refusal = [&](const variables& table, const std::string& range) {
    return failure_of(with(table, {{"TROUPE_ELASTIC", range}}));
  };
  for (const std::string range :
       {"2", "2:", ":2", "0:4", "a:b", "1:2:3", "-1:4", "1 :4"})
    CHECK(refusal(all_here, range)
          == "invalid_argument: TROUPE_ELASTIC is '" + range
               + "': must be MIN:MAX, such as 2:4");
  for (const std::string range : {"1:3", "5:6"})
    CHECK(refusal(all_here, range)
          == "invalid_argument: TROUPE_ELASTIC is '" + range
               + "', but the job begins with 4 ranks (WORLD_SIZE)");
  const auto says_of = [](const std::string& text, const std::string& part) {
    return text.find(part) != text.npos;
  };
  CHECK(says_of(refusal(torchrun, "1:4"),
                "the ranks are on several hosts: TROUPE_ADDRESS and "
                "TROUPE_CREDENTIALS must say how they meet"));
  const auto at = [](const std::string& port) {
    return with(torchrun, {{"TROUPE_ADDRESS", "a:" + port},
                           {"TROUPE_CREDENTIALS", "/job"}});
  };
  CHECK(found_in(with(at("65471"), {{"TROUPE_ELASTIC", "1:4"}}))->most == 4);
  CHECK(says_of(refusal(at("65472"), "1:4"), "the 64 ports after it"));
  CHECK(says_of(refusal(open_mpi, "1:4"), "mpirun ends all ranks"));
}

TEST_CASE("a wrong environment is refused with the variable and its value") {
  struct wrong {
    variables table;
    std::string message;
  };
  const std::string must_be = "must be a whole number from 0 to 4294967295";
  const std::vector<wrong> all{
    {with(launched, {{"TROUPE_RANK", "x"}}),
     "TROUPE_RANK is 'x' (set by troupe launch): " + must_be},
    {with(launched, {{"TROUPE_RANK", "-1"}}),
     "TROUPE_RANK is '-1' (set by troupe launch): " + must_be},
    {with(torchrun, {{"LOCAL_RANK", "1 "}}),
     "LOCAL_RANK is '1 ' (set by torchrun): " + must_be},
    {with(hydra, {{"PMI_SIZE", "4294967296"}}),
     "PMI_SIZE is '4294967296' (set by mpiexec): " + must_be},
    {with(slurm_step, {{"SLURM_STEP_ID", "batch"}}),
     "SLURM_STEP_ID is 'batch' (set by srun): " + must_be},
    {with(slurm_step, {{"SLURM_NODEID", "1.5"}}),
     "SLURM_NODEID is '1.5' (set by srun): " + must_be},
    {with(open_mpi, {{"OMPI_COMM_WORLD_RANK", "4"}}),
     "OMPI_COMM_WORLD_RANK is '4' (set by mpirun): must be less than 4 "
     "(OMPI_COMM_WORLD_SIZE)"},
    {with(launched, {{"TROUPE_SIZE", "0"}, {"TROUPE_RANK", "0"}}),
     "TROUPE_RANK is '0' (set by troupe launch): must be less than 0 "
     "(TROUPE_SIZE)"},
    {with(torchrun, {{"LOCAL_RANK", "2"}}),
     "LOCAL_RANK is '2' (set by torchrun): must be less than 2 "
     "(LOCAL_WORLD_SIZE)"},
    {with(torchrun, {{"LOCAL_WORLD_SIZE", "5"}}),
     "LOCAL_WORLD_SIZE is '5' (set by torchrun): this host cannot have more "
     "ranks than the job, 4 (WORLD_SIZE)"},
  };
  for (const auto& each : all)
    CHECK(failure_of(each.table) == "invalid_argument: " + each.message);
}

TEST_CASE(
  "the address of rank 0 and the credentials are read if they are set") {
  const auto alone = found_in(launched);
  REQUIRE(alone);
  CHECK(alone->address.empty());
  CHECK(alone->credentials.empty());
  CHECK(alone->interface.empty());
  const auto address_in = [](const variables& table, const std::string& text) {
    const auto found = found_in(with(table, {{"TROUPE_ADDRESS", text},
                                             {"TROUPE_CREDENTIALS", "/a/job"},
                                             {"TROUPE_INTERFACE", "eth1"}}));
    REQUIRE(found);
    CHECK(found->interface == "eth1");
    CHECK(found->credentials == "/a/job");
    return found->address + " " + std::to_string(found->port);
  };
  for (const auto& table : {launched, torchrun, open_mpi, slurm_step})
    CHECK(address_in(table, "node-1.example:4711") == "node-1.example 4711");
  const auto on_one_host =
    found_in(with(launched, {{"TROUPE_LOCAL_SIZE", "3"},
                             {"TROUPE_ADDRESS", "nonsense"},
                             {"TROUPE_INTERFACE", "eth1"}}));
  REQUIRE(on_one_host);
  CHECK(on_one_host->address.empty());
  CHECK(on_one_host->interface.empty());
  CHECK(address_in(launched, "10.0.0.1:1") == "10.0.0.1 1");
  CHECK(address_in(launched, "[fe80::2]:65535") == "fe80::2 65535");
  for (const std::string wrong :
       {"node-1", "node-1:", "node-1:0", "node-1:65536", "node-1:80x", ":80",
        "fe80::2:80", "[fe80::2]", "[]:80", "node-1:-1", "node-1: 80"})
    CHECK(failure_of(with(launched, {{"TROUPE_ADDRESS", wrong}}))
          == "invalid_argument: TROUPE_ADDRESS is '" + wrong
               + "': must be HOST:PORT, with a port from 1 to 65535");
}

TEST_CASE("a variable that is missing is named") {
  struct missing {
    variables table;
    std::vector<std::string> names;
    std::string launcher;
  };
  for (const auto& [table, names, launcher] : std::vector<missing>{
         {launched,
          {"TROUPE_RANK", "TROUPE_SIZE", "TROUPE_LOCAL_RANK",
           "TROUPE_LOCAL_SIZE", "TROUPE_JOB"},
          "troupe launch"},
         {torchrun,
          {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
          "torchrun"},
         {open_mpi,
          {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
           "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
          "mpirun"},
         {hydra,
          {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
          "mpiexec"},
         {slurm_step,
          {"SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID",
           "SLURM_STEP_TASKS_PER_NODE"},
          "srun"}})
    for (const auto& name : names)
      CHECK(failure_of(with(table, {{name, ""}}))
            == "invalid_argument: " + name
                 + " is not set, but other variables say that " + launcher
                 + " started this process");
  CHECK(contains(failure_of(with(open_mpi, {{"PMIX_NAMESPACE", ""},
                                            {"OMPI_MCA_ess_base_jobid", ""}})),
                 "PMIX_NAMESPACE or OMPI_MCA_ess_base_jobid is not set"));
  CHECK(contains(failure_of(with(slurm_step, {{"SLURM_STEP_NUM_TASKS", ""},
                                              {"SLURM_NTASKS", ""}})),
                 "SLURM_STEP_NUM_TASKS or SLURM_NTASKS is not set"));
}

TEST_CASE("Hydra's ranks without a proxy are refused") {
  auto orphan = environment_of(hydra);
  orphan.process_that_set = [](const std::string&) { return std::string(); };
  CHECK(error_of([&] { comm::find_rank(orphan); })
        == "invalid_argument: PMI_RANK is '1' (set by mpiexec): its process is "
           "not found in /proc");
}

TEST_CASE("the environment of the process is used") {
  for (const auto& [name, value] : launched)
    ::setenv(name.c_str(), value.c_str(), 1);
  const auto found = comm::find_rank();
  for (const auto& each : launched)
    ::unsetenv(each.first.c_str());
  REQUIRE(found);
  CHECK(found->rank == 1);
  CHECK(found->job == "troupe-123-4e5f");
}

} // TEST_SUITE("comm.rank_environment")
