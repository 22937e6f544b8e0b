// SPDX-License-Identifier: Apache-2.0

// Gloo and MPI bring many libraries, which take addresses and time at each
// start. So their engines are modules, which only runs that use them load.
#include <troupe/base/error.hpp>
#include <troupe/base/module.hpp>
#include <troupe/comm/engine/engine_factories.hpp>
#include <troupe/comm/engine/engine_group.hpp>
#include <troupe/comm/engine/join.hpp>

#include <string>
#include <utility>

namespace troupe::comm {

namespace {

void require(const engine_support& found, const char* engine,
             const char* package) {
  if (!found.is_built)
    throw error(errc::not_found, std::string{"this build has no "} + engine
                                   + ": " + package
                                   + " was not installed when it was "
                                     "configured");
}

/// Without support for the launcher, each process is alone in MPI.
void require_joined(const engine& joined, const engine_support& told) {
  const auto place = [](std::size_t process, std::size_t processes) {
    return "process " + std::to_string(process) + " of "
           + std::to_string(processes);
  };
  if (joined.process() != told.process || joined.processes() != told.processes)
    throw error(errc::invalid_argument,
                "group over MPI: for MPI this is "
                  + place(joined.process(), joined.processes())
                  + ", but the launcher says "
                  + place(told.process, told.processes)
                  + ": is MPI built with support for it?");
}

template <auto Factory>
auto* factory_of(const char* module, const char* name) {
  return reinterpret_cast<decltype(Factory)>(function_of_module(module, name));
}

} // namespace

std::vector<std::unique_ptr<communicator>>
join_gloo_group(const gloo_group_options& options) {
  require(gloo_support(), "Gloo", "libgloo-dev");
  if (options.processes == 0 || options.process >= options.processes)
    throw error(errc::invalid_argument,
                "group over Gloo: process " + std::to_string(options.process)
                  + " of " + std::to_string(options.processes));
  if (options.processes > 1 && !options.store)
    throw error(errc::invalid_argument,
                "group over Gloo: no store in which the processes meet");
  const auto make = factory_of<&troupe_make_gloo_engine>(
    "troupe_gloo", "troupe_make_gloo_engine");
  return join_engine_group(std::unique_ptr<engine>(make(options)), options);
}

std::vector<std::unique_ptr<communicator>>
join_mpi_group(const engine_group_options& options) {
  const auto mpi = mpi_support();
  require(mpi, "MPI", "libopenmpi-dev");
  if (!mpi.is_usable)
    throw error(errc::invalid_argument,
                "group over MPI: mpirun or srun has not started this process");
  const auto make =
    factory_of<&troupe_make_mpi_engine>("troupe_mpi", "troupe_make_mpi_engine");
  std::unique_ptr<engine> joined(make());
  require_joined(*joined, mpi);
  return join_engine_group(std::move(joined), options);
}

} // namespace troupe::comm
