// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/elastic/host_gates.hpp>

#include <troupe/apps/quiet_thread.hpp>
#include <troupe/base/error.hpp>
#include <troupe/base/files/descriptor.hpp>
#include <troupe/base/net/socket_address.hpp>
#include <troupe/base/quoted_name.hpp>
#include <troupe/comm/tls/job_credentials.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <utility>

#include <sys/socket.h>

namespace troupe::apps {

namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

constexpr auto longest_try = 2s;

/// On the gate's thread.
void tell_once(std::set<std::string>& told, const std::string& what) {
  constexpr std::size_t most = 8; // different ones
  if (told.size() < most && told.insert(what).second)
    std::fprintf(stderr, "warning: %s\n", one_line(what).c_str());
}

class gate_entrance final : public host_network::entrance {
public:
  gate_entrance(const actors::way_in& way,
                std::function<void(actors::passage)> admit)
    : gate_(way,
            {.admit = [admit = std::move(admit)](
                        actors::passage come, std::uint64_t,
                        std::uint16_t) { admit(std::move(come)); },
             .refused =
               [this](const std::string& why) { tell_once(refused_, why); }}) {}

private:
  std::set<std::string> refused_; // of the gate's thread
  actors::gate gate_;             // uses the member above
};

} // namespace

host_gates::host_gates(const comm::rank_environment& found,
                       const std::atomic<bool>& ends)
  : found_(found), ends_(ends) {}

host_gates::~host_gates() {
  if (telling_.joinable())
    telling_.join();
}

actors::way_in host_gates::way_to(const std::string& address,
                                  std::size_t rank) const {
  actors::way_in way;
  way.host = address;
  way.port = found_.port;
  way.interface = found_.interface;
  way.credentials = std::make_shared<comm::job_credentials>(
    comm::read_credentials(found_.credentials, rank));
  return way;
}

actors::admission host_gates::connect(const std::string& address) {
  auto way = way_to(address, found_.rank);
  way.waits = false; // another host may listen meanwhile
  return actors::knock(way, found_.rank, clock::now() + longest_try, [this] {
    if (ends_)
      throw error(errc::peer_failure, "this process ends");
  });
}

std::unique_ptr<host_network::entrance>
host_gates::open(const std::string& address,
                 std::function<void(actors::passage)> admit) {
  return std::make_unique<gate_entrance>(way_to(address, 0), std::move(admit));
}

void host_gates::tell(const std::string& address, const host_report& what) {
  if (!has_told_)
    return;
  if (telling_.joinable())
    telling_.join();
  has_told_ = false;
  telling_ = quiet_thread("troupe-invite", [this, address, what] {
    try {
      host_wire wire{connect(address).through};
      wire.send(to_line(what));
      // Until the other side has read it.
      for (const auto end = clock::now() + longest_try;
           !ends_ && !wire.is_gone() && clock::now() < end;) {
        (void)wire.receive();
        std::this_thread::sleep_for(10ms);
      }
    } catch (const error&) {
      // nobody is there
    }
    has_told_ = true;
  });
}

bool is_first_host(const comm::rank_environment& found) {
  auto addresses = find_host(found.address, 0);
  if (!found.interface.empty())
    return !common_of(addresses, addresses_of_interface(found.interface, 0))
              .empty();
  return std::ranges::any_of(addresses, [](const auto& at) {
    const descriptor socket{
      ::socket(at.get()->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    return socket && ::bind(socket.get(), at.get(), at.size) == 0;
  });
}

} // namespace troupe::apps
