// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/remote/entry.hpp>
#include <troupe/actors/remote/run_pass.hpp>
#include <troupe/base/files/descriptor.hpp>
#include <troupe/base/net/socket_address.hpp>
#include <troupe/comm/tls/job_credentials.hpp>
#include <troupe/comm/tls/tls_identity.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace troupe::actors {

/// Where process 0 lets others in, and what they must show.
struct way_in {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;  ///< 0: any
  std::string folder = {}; ///< of the pass; not used with credentials
  /// Set if processes are on several hosts: they talk over TLS, and the host
  /// must not be one of loopback.
  std::shared_ptr<const comm::job_credentials> credentials = nullptr;
  /// Network interface of this process's host, for processes on several hosts.
  /// Process 0 listens on its addresses alone, and others come from one of
  /// them. Empty: any.
  std::string interface = {};
  /// If processes are on several hosts: others wait until process 0 listens.
  bool waits = true;

  ///@{
  /// Where process 0 is found, and on which of these addresses it listens. Not
  /// empty. Throw what `parse_loopback`, `find_host` and
  /// `addresses_of_interface` throw, and error(invalid_argument) if the host
  /// leads to no address of the interface.
  std::vector<socket_address> find_addresses() const;
  std::vector<socket_address> find_own_addresses() const;
  ///@}
  std::string text() const; ///< "127.0.0.1:7777"
};

/// Admits connections that send the pass of the run.
///
/// Data from strangers gets no further than this class: a socket is passed on
/// only after TLS has accepted the certificate, if there are several hosts, and
/// the correct 32 bytes have arrived. A connection that has not sent them after
/// two seconds is closed. If there are too many connections, the oldest is
/// closed.
class gate {
public:
  /// Both are called on the gate's thread.
  struct listener {
    /// Takes each admitted connection, and the gate's port. `process` is the
    /// number that the other process names; its certificate names the same one.
    std::function<void(passage, std::uint64_t process, std::uint16_t port)>
      admit;
    /// Told why a connection was refused, if that says more than that a
    /// stranger came. May be empty.
    std::function<void(const std::string& why)> refused = {};
  };

  /// Listens and, without credentials, writes the file of the pass.
  ///
  /// Throws error(peer_failure) if it cannot listen there, or if another gate
  /// has its pass in the folder of a run that leaves the port open: no other
  /// run may use that folder. Throws error(io_failure |
  /// invalid_argument) if it cannot write the pass, and what
  /// `find_addresses` and `tls_identity` throw.
  gate(const way_in& way, listener listens);
  /// Stops listening and removes the file.
  ~gate();
  gate(const gate&) = delete;
  gate& operator=(const gate&) = delete;

  std::uint16_t port() const noexcept { return port_; }
  /// The address on which it listens, in figures.
  std::string address() const;

private:
  struct visitor;

  void serve();
  void let_in(std::list<visitor>& outside);
  bool go_on_with(visitor& v);
  bool may_enter(const visitor& v) const;
  void tell_refusal(const visitor& v, const std::string& why);

  listener listens_;
  std::optional<comm::tls_identity> identity_; // if there are several hosts
  descriptor listening_;
  descriptor wake_, woken_; // a pipe: a byte in it ends the gate's thread
  std::uint16_t port_ = 0;
  std::string path_; // of the pass; empty: there is none
  run_pass pass_;
  std::thread thread_;
};

/// The port of the run whose pass is in `folder`, where there is no other:
/// waits until a gate listens there. Throws error(peer_failure) if there is
/// none until `deadline`, and error(invalid_argument | io_failure) for a folder
/// that is not this user's own.
/// @param check called now and then, if set; what it throws ends the wait
std::uint16_t find_run(const std::string& host, const std::string& folder,
                       std::chrono::steady_clock::time_point deadline,
                       const std::function<void()>& check = {});

/// A connection that a gate has admitted.
struct admission {
  passage through;
  std::string own_address; ///< under which process 0 sees this one, in figures
};

/// Connects to the gate of a run, sends the pass and checks the answer, until
/// `deadline`. Among several hosts, it tries all addresses of the host, from
/// the interface if one is named, and again while nobody listens.
/// @param process number of this process
/// @param check as in `find_run`
///
/// Throws error(peer_failure) if nobody listens, if there is no answer, or if
/// whoever answers does not belong to the run. Throws error(invalid_argument |
/// io_failure) if the pass cannot be read, and what `addresses_of_interface`
/// throws.
admission knock(const way_in& way, std::uint64_t process,
                std::chrono::steady_clock::time_point deadline,
                const std::function<void()>& check = {});

} // namespace troupe::actors
