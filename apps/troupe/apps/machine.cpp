// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/machine.hpp>

#include <troupe/actors/backend/backend.hpp>
#include <troupe/actors/caf/inside.hpp>
#include <troupe/base/cores.hpp>
#include <troupe/base/error.hpp>
#include <troupe/comm/engine/join.hpp>
#include <troupe/comm/tls/tls_identity.hpp>
#include <troupe/kernels/cpu/library/library_versions.hpp>
#include <troupe/kernels/cuda/cuda_module.hpp>
#include <troupe/kernels/device.hpp>

#include <google/protobuf/stubs/common.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>
#include <string_view>

namespace troupe::apps {

namespace {

/// The value in the first line "NAME : value" of a file in /proc.
std::string proc_value(const char* file, std::string_view name) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const auto colon = line.find(':');
    if (!line.starts_with(name) || colon == std::string::npos)
      continue;
    const auto begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

/// "24576000 kB" in bytes.
std::uint64_t proc_bytes(const char* file, std::string_view name) {
  std::istringstream text(proc_value(file, name));
  std::uint64_t kib = 0;
  text >> kib;
  return kib * 1024;
}

std::vector<std::string> instruction_sets() {
  constexpr std::array<std::string_view, 8> known = {
    "sse4_2",      "avx2",        "fma",      "avx512f",
    "avx512_vnni", "avx512_bf16", "amx_int8", "amx_bf16"};
  std::istringstream flags(proc_value("/proc/cpuinfo", "flags"));
  std::vector<std::string> found;
  for (std::string flag; flags >> flag;)
    if (std::ranges::find(known, flag) != known.end())
      found.push_back(flag);
  return found;
}

/// Lists the kinds of device, and why others cannot be used.
void find_devices(machine_report& report) {
  for (auto kind : {device_kind::cpu, device_kind::cuda, device_kind::sim}) {
    try {
      backend_of(kind).make_device(0);
      report.devices.emplace_back(to_string(kind));
    } catch (const error& e) {
      report.advice.push_back(e.message());
    }
  }
}

/// What GPUs merge values by, if this build has GPUs.
void find_nccl(machine_report& report) {
  if (!cuda::has_cuda_module())
    return;
  try {
    report.libraries.emplace_back("NCCL", cuda::loaded_nccl()->version());
  } catch (const error& e) {
    report.advice.push_back(e.message()
                            + "; GPUs merge values through the first of them");
  }
}

/// The text of a version of protobuf.
std::string dotted(int version) {
  constexpr int base = 1000;
  return std::to_string(version / base / base) + "."
         + std::to_string(version / base % base) + "."
         + std::to_string(version % base);
}

std::string describe_engine(const comm::engine_support& engine,
                            const char* package, const char* remark) {
  return engine.is_built
           ? engine.version + ", " + remark
           : std::string{"not built in: "} + package + " was not installed";
}

void find_advice(machine_report& report) {
  auto& advice = report.advice;
  if (std::ranges::find(report.instruction_sets, "avx2")
      == report.instruction_sets.end())
    advice.push_back("no AVX2: kernels run several times slower");
  if (const auto reason = reason_against_blas(); !reason.empty())
    advice.emplace_back(reason);
  if (report.available_bytes < (1u << 30))
    advice.push_back("less than 1 GiB of memory is available");
}

} // namespace

machine_report examine_machine() {
  machine_report report;
  report.cores = static_cast<int>(usable_cores());
  report.processor = proc_value("/proc/cpuinfo", "model name");
  report.instruction_sets = instruction_sets();
  report.memory_bytes = proc_bytes("/proc/meminfo", "MemTotal");
  report.available_bytes = proc_bytes("/proc/meminfo", "MemAvailable");
  find_devices(report);
  report.libraries = cpu_library_versions();
  report.libraries.insert(report.libraries.begin(),
                          {{"CAF", actors::caf_version()},
                           {"protobuf", dotted(GOOGLE_PROTOBUF_VERSION)},
                           {"OpenSSL", comm::tls_library_version()}});
  find_nccl(report);
  report.engines = {
    {"shm", "shared memory of a host"},
    {"gloo", describe_engine(comm::gloo_support(), "libgloo-dev", "TCP")},
    {"mpi", describe_engine(comm::mpi_support(), "libopenmpi-dev",
                            "takes effect under mpirun")}};
  find_advice(report);
  return report;
}

std::uint64_t resident_bytes() {
  return proc_bytes("/proc/self/status", "VmRSS");
}

std::uint64_t peak_resident_bytes() {
  return proc_bytes("/proc/self/status", "VmHWM");
}

} // namespace troupe::apps
