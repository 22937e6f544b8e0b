// SPDX-License-Identifier: Apache-2.0
#include <troupe/training/snapshots/snapshot_writer.hpp>

#include <troupe/base/error.hpp>
#include <troupe/base/threads.hpp>

#include <exception>
#include <new>
#include <utility>

namespace troupe {

snapshot_writer::snapshot_writer(snapshot_folder folder, std::size_t keep)
  : folder_(std::move(folder)), keep_(keep),
    thread_(start_thread("troupe-snapshot", [this] { serve(); })) {}

snapshot_writer::~snapshot_writer() {
  {
    std::lock_guard guard{mutex_};
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void snapshot_writer::wait_until_idle(std::unique_lock<std::mutex>& guard) {
  changed_.wait(guard, [this] { return !next_; });
}

void snapshot_writer::write(snapshot taken, listener written) {
  std::unique_lock guard{mutex_};
  wait_until_idle(guard);
  next_ = std::move(taken);
  written_ = std::move(written);
  changed_.notify_all();
}

std::optional<std::string> snapshot_writer::take_failure() {
  std::unique_lock guard{mutex_};
  wait_until_idle(guard);
  return std::exchange(failure_, std::nullopt);
}

void snapshot_writer::serve() {
  std::unique_lock guard{mutex_};
  for (;;) {
    changed_.wait(guard, [this] { return next_ || ends_; });
    if (!next_)
      return;
    std::optional<std::string> failed;
    guard.unlock(); // the other thread does not touch `next_` until it is empty
    try {
      folder_.write(*next_, keep_);
    } catch (const error& e) {
      failed = e.message();
    } catch (const std::bad_alloc&) {
      failed = "no memory to write a snapshot";
    } catch (const std::exception& e) {
      failed = e.what();
    }
    guard.lock();
    next_.reset();
    if (failed && !failure_)
      failure_ = failed;
    const auto tell = std::exchange(written_, nullptr);
    changed_.notify_all();
    if (!tell)
      continue;
    guard.unlock();
    tell(failed);
    guard.lock();
  }
}

} // namespace troupe
