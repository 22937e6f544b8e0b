// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cuda/module/nccl_library.hpp>

#include <troupe/base/error.hpp>

#include <dlfcn.h>
#include <nccl.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <string>
#include <vector>

namespace troupe::cuda {

namespace {

constexpr auto library_file = "libnccl.so.2";

/// The functions of NCCL that Troupe calls. They are found when the library is
/// opened, so that the module works without it.
struct nccl_calls {
  decltype(&ncclGetVersion) get_version;
  decltype(&ncclGetErrorString) error_string;
  decltype(&ncclGetLastError) last_error;
  decltype(&ncclCommInitAll) init_all;
  decltype(&ncclCommDestroy) destroy;
  decltype(&ncclCommAbort) abort;
  decltype(&ncclCommGetAsyncError) async_error;
  decltype(&ncclGroupStart) group_start;
  decltype(&ncclGroupEnd) group_end;
  decltype(&ncclAllReduce) all_reduce;
  decltype(&ncclReduce) reduce;
  decltype(&ncclBroadcast) broadcast;
};

std::string reason_of_loader() {
  const char* text = ::dlerror();
  return text ? text : "for an unknown reason";
}

template <class F>
void find(void* library, const char* name, F& to) {
  to = reinterpret_cast<F>(::dlsym(library, name));
  if (!to)
    throw error(errc::not_found, "NCCL: " + reason_of_loader());
}

/// NCCL reads these when it is first used, and the user's values go first. It
/// puts its own configuration files into the environment, too.
/// - Its service for questions about a job (RAS) would listen on a port.
/// - It would connect the GPUs for an algorithm in the first merge that uses
///   it, and take memory for that while other merges wait.
void choose_settings() {
  ::setenv("NCCL_RAS_ENABLE", "0", 0);
  ::setenv("NCCL_RUNTIME_CONNECT", "0", 0);
}

nccl_calls open_library() {
  choose_settings();
  void* const library = ::dlopen(library_file, RTLD_NOW | RTLD_LOCAL);
  if (!library)
    throw error(errc::not_found, "no NCCL: " + reason_of_loader());
  nccl_calls made{};
  find(library, "ncclGetVersion", made.get_version);
  find(library, "ncclGetErrorString", made.error_string);
  find(library, "ncclGetLastError", made.last_error);
  find(library, "ncclCommInitAll", made.init_all);
  find(library, "ncclCommDestroy", made.destroy);
  find(library, "ncclCommAbort", made.abort);
  find(library, "ncclCommGetAsyncError", made.async_error);
  find(library, "ncclGroupStart", made.group_start);
  find(library, "ncclGroupEnd", made.group_end);
  find(library, "ncclAllReduce", made.all_reduce);
  find(library, "ncclReduce", made.reduce);
  find(library, "ncclBroadcast", made.broadcast);
  return made;
}

/// What the ranks of a process share.
struct nccl_state {
  std::string text_of(const char* call, ncclResult_t code) const {
    const std::string details = calls.last_error(nullptr);
    return std::string("NCCL: ") + call + ": " + calls.error_string(code)
           + (details.empty() ? "" : "; " + details);
  }
  void check(const char* call, ncclResult_t code) const {
    if (code != ncclSuccess)
      throw error(errc::peer_failure, text_of(call, code));
  }

  const nccl_calls calls = open_library();
  std::mutex launching; // so that all GPUs get all merges in one order
};

class gpu_ranks final : public nccl_ranks {
public:
  gpu_ranks(std::shared_ptr<nccl_state> library, std::span<const int> gpus)
    : library_(std::move(library)), ends_(gpus.size()) {
    std::lock_guard guard{library_->launching};
    library_->check("ncclCommInitAll",
                    calls().init_all(ends_.data(),
                                     static_cast<int>(gpus.size()),
                                     gpus.data()));
  }
  ~gpu_ranks() override {
    if (!aborted_)
      for (auto* end : ends_)
        calls().destroy(end);
  }

  void queue(nccl_kind kind, std::size_t root,
             std::span<const nccl_part> parts) override {
    std::lock_guard one_order{library_->launching};
    std::lock_guard guard{queueing_};
    if (aborted_)
      throw error(errc::peer_failure, "NCCL: the communicator was aborted");
    library_->check("ncclGroupStart", calls().group_start());
    auto failed = ncclSuccess;
    for (auto& p : parts)
      if (failed == ncclSuccess)
        failed = queue_part(kind, static_cast<int>(root), p);
    const auto ended = calls().group_end(); // a group must end in any case
    library_->check(name_of(kind), failed);
    library_->check("ncclGroupEnd", ended);
  }

  std::string failure() const override {
    std::lock_guard guard{ending_};
    if (aborted_)
      return "";
    for (auto* end : ends_) {
      auto found = ncclSuccess;
      if (calls().async_error(end, &found) == ncclSuccess
          && found != ncclSuccess && found != ncclInProgress)
        return calls().error_string(found);
    }
    return "";
  }

  // A thread that hangs within NCCL is freed only by the abort. Any other one
  // leaves soon, and is waited for, because the abort frees what it uses.
  void abort() noexcept override {
    std::lock_guard guard{ending_};
    if (aborted_.exchange(true))
      return;
    const std::unique_lock others{queueing_, patience};
    for (auto* end : ends_)
      calls().abort(end);
  }

private:
  static constexpr std::chrono::seconds patience{2};

  static const char* name_of(nccl_kind kind) {
    switch (kind) {
    case nccl_kind::reduce: return "ncclReduce";
    case nccl_kind::broadcast: return "ncclBroadcast";
    default: return "ncclAllReduce";
    }
  }

  const nccl_calls& calls() const noexcept { return library_->calls; }

  ncclResult_t queue_part(nccl_kind kind, int root, const nccl_part& p) const {
    auto* const end = ends_[p.rank];
    auto* const on = static_cast<cudaStream_t>(p.on->handle());
    switch (kind) {
    case nccl_kind::reduce:
      return calls().reduce(p.from, p.to, p.count, ncclFloat32, ncclSum, root,
                            end, on);
    case nccl_kind::broadcast:
      return calls().broadcast(p.from, p.to, p.count, ncclFloat32, root, end,
                               on);
    default:
      return calls().all_reduce(p.from, p.to, p.count, ncclFloat32, ncclSum,
                                end, on);
    }
  }

  std::shared_ptr<nccl_state> library_;
  std::vector<ncclComm_t> ends_; // by rank
  std::timed_mutex queueing_;
  mutable std::mutex ending_; // of `ends_`, by `abort`
  // Written with `ending_` locked. Who has locked `queueing_` after `abort` has
  // tried to sees it.
  std::atomic<bool> aborted_{false};
};

class nccl_library final : public nccl {
public:
  std::string version() const override {
    int found = 0;
    state_->check("ncclGetVersion", state_->calls.get_version(&found));
    return std::to_string(found / 10000) + "."
           + std::to_string(found / 100 % 100) + "."
           + std::to_string(found % 100);
  }
  std::unique_ptr<nccl_ranks> make_ranks(std::span<const int> gpus) override {
    return std::make_unique<gpu_ranks>(state_, gpus);
  }

private:
  std::shared_ptr<nccl_state> state_ = std::make_shared<nccl_state>();
};

} // namespace

std::unique_ptr<nccl> open_nccl() {
  return std::make_unique<nccl_library>();
}

} // namespace troupe::cuda
