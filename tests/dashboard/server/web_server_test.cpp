// SPDX-License-Identifier: Apache-2.0
#include "raw_client.hpp"
#include "served_run.hpp"

#include <support/caught.hpp>
#include <support/files.hpp>
#include <troupe/dashboard/server/web_server.hpp>

#include <doctest/doctest.h>

#include <fcntl.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::dashboard;
using namespace troupe::dashboard::test;
using namespace std::chrono_literals;

TEST_SUITE("dashboard.web_server") {

namespace {

error refusal_of(web_server_options options, web_access access = {}) {
  return troupe::test::caught([&] {
    web_server{std::move(options), std::move(access), {}};
  });
}

/// The status of the answer to any bytes. 0: the connection just ends.
unsigned status_of(const served_run& run, const std::string& bytes) {
  raw_client client{run.port()};
  client.send(bytes);
  const auto answer = client.receive_answer();
  CHECK(client.gets_closed());
  return answer.status;
}

} // namespace

TEST_CASE("health is answered on a port that the system chooses") {
  const served_run run;
  CHECK(run.port() != 0);
  const auto answer = run.get("/healthz", "");
  CHECK(answer.status == 200);
  CHECK(answer.body == "ok\n");
}

TEST_CASE("a link leads to a session, which reaches the handler") {
  const served_run run;
  const auto link = run.server.view_link();
  const auto begin = "http://" + run.host();
  REQUIRE(link.starts_with(begin + "/?token="));
  const auto in = run.get(link.substr(begin.size()), "");
  CHECK(in.status == 303);
  CHECK(in.header("Location") == "/");
  const auto cookie = in.header("Set-Cookie");
  const auto answer = run.get(
    "/app.js", "Cookie: " + cookie.substr(0, cookie.find(';')) + "\r\n");
  CHECK(answer.status == 200);
  CHECK(answer.body == "GET /app.js  views");
  CHECK(run.get(link.substr(begin.size()), "").status == 401);
}

TEST_CASE("all answers tell browsers to keep to themselves what they get") {
  const served_run run;
  raw_client malformed{run.port()};
  malformed.send("nonsense\r\n\r\n");
  for (const auto& answer :
       {run.get("/", run.view_cookie()), run.get("/", ""),
        run.get("/healthz", ""), malformed.receive_answer()}) {
    CHECK(answer.header("Content-Security-Policy")
            .starts_with("default-src 'none';"));
    CHECK(answer.header("X-Content-Type-Options") == "nosniff");
    CHECK(answer.header("Referrer-Policy") == "no-referrer");
    CHECK(answer.header("Cache-Control") == "no-store");
    CHECK(answer.header("Cross-Origin-Resource-Policy") == "same-origin");
  }
}

TEST_CASE("a connection serves several requests, also sent at once") {
  const served_run run;
  raw_client client{run.port()};
  const auto one = run.request("GET /one", run.view_cookie());
  const auto two = run.request("GET /two", run.control_cookie());
  client.send(one + two);
  CHECK(client.receive_answer().body == "GET /one  views");
  CHECK(client.receive_answer().body == "GET /two  controls");
  client.send(one);
  CHECK(client.receive_answer().body == "GET /one  views");
  client.send(run.request("GET /healthz", "Connection: close\r\n"));
  CHECK(client.receive_answer().status == 200);
  CHECK(client.gets_closed());
}

TEST_CASE("HEAD is GET without a body") {
  const served_run run;
  raw_client client{run.port()};
  client.send(run.request("HEAD /one", run.view_cookie()));
  const auto answer = client.receive_answer(false);
  CHECK(answer.status == 200);
  CHECK(answer.header("Content-Length") == "15");
  client.send(run.request("GET /healthz"));
  CHECK(client.receive_answer().body == "ok\n"); // nothing came before
}

TEST_CASE("a command reaches the handler with its body") {
  const served_run run;
  const std::string body = R"({"command":"pause"})";
  const auto headers = "Content-Type: application/json\r\nContent-Length: "
                       + std::to_string(body.size()) + "\r\n";
  raw_client client{run.port()};
  const auto line = "POST /api/v1/control";
  client.send(run.request(line, headers + run.control_cookie()) + body);
  CHECK(client.receive_answer().body
        == "POST /api/v1/control " + body + " controls");
  client.send(run.request(line, headers + run.view_cookie()) + body);
  CHECK(client.receive_answer().status == 403);
  client.send(run.request(line, headers) + body);
  CHECK(client.receive_answer().status == 401);
}

TEST_CASE("an answer larger than the system's buffers arrives whole") {
  const served_run run;
  const auto answer = run.get("/large", run.view_cookie());
  CHECK(answer.status == 200);
  CHECK(answer.body == std::string(20'000'000, 'x'));
}

TEST_CASE("a handler that throws gives 500, and the next request is served") {
  const served_run run;
  const auto answer = run.get("/throws", run.view_cookie());
  CHECK(answer.status == 500);
  CHECK(answer.body == "the handler is broken\n");
  CHECK(run.get("/throws-number", run.view_cookie()).status == 500);
  CHECK(run.get("/none", run.view_cookie()).status == 404);
  CHECK(run.get("/one", run.view_cookie()).status == 200);
}

TEST_CASE("requests to another Host or from another Origin get 403") {
  const served_run run;
  CHECK(status_of(run, "GET / HTTP/1.1\r\nHost: rebound.example\r\n"
                       "Connection: close\r\n"
                         + run.view_cookie() + "\r\n")
        == 403);
  CHECK(status_of(run, "GET / HTTP/1.1\r\nConnection: close\r\n\r\n") == 400);
  CHECK(
    run.get("/", run.view_cookie() + "Origin: http://other.example\r\n").status
    == 403);
  CHECK(run.get("/", run.view_cookie() + "Host: " + run.host() + "\r\n").status
        == 400);
}

TEST_CASE("malformed requests get 400 and the connection ends") {
  const served_run run;
  for (const auto* wrong :
       {"nonsense\r\n\r\n", "\r\n\r\n\r\n", "GET /\r\n\r\n",
        "GET  / HTTP/1.1\r\n\r\n", "GET / HTTP/9.9\r\n\r\n",
        "GET / HTTP/1.1\r\nno colon\r\n\r\n",
        "GET / HTTP/1.1\r\nA: b\nC: d\r\n\r\n",
        "POST /api/v1/control HTTP/1.1\r\nContent-Length: x\r\n\r\n",
        "POST /api/v1/control HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        "POST /api/v1/control HTTP/1.1\r\nTransfer-Encoding: "
        "chunked\r\n\r\nx\r\n",
        "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"})
    CHECK_MESSAGE(status_of(run, wrong) == 400, wrong);
  CHECK(run.get("/healthz", "").status == 200);
}

TEST_CASE("a head that is too large gets 431, a body 413") {
  const served_run run;
  const std::string large(16 * 1024, 'x');
  CHECK(status_of(run, run.request("GET /healthz", "A: " + large + "\r\n"))
        == 431);
  CHECK(status_of(run, "GET /" + large + large) == 431);
  const std::string fits(15 * 1024, 'x');
  CHECK(run.get("/healthz", "A: " + fits + "\r\n").status == 200);
  const auto post = [&](std::size_t bytes) {
    return run.request("POST /api/v1/control",
                       run.control_cookie()
                         + "Connection: close\r\n"
                           "Content-Type: application/json\r\n"
                           "Content-Length: "
                         + std::to_string(bytes) + "\r\n")
           + std::string(bytes, 'x');
  };
  CHECK(status_of(run, post(4096)) == 200);
  CHECK(status_of(run, post(4097)) == 413);
  CHECK(status_of(run, post(1'000'000)) == 413);
  CHECK(status_of(run, run.request("POST /api/v1/control",
                                   run.control_cookie()
                                     + "Transfer-Encoding: chunked\r\n")
                         + "2000\r\n" + std::string(0x2000, 'x'))
        == 413);
}

TEST_CASE("who is silent, or sends a head byte by byte, is cut off") {
  const served_run run{{.patience = 200ms}};
  raw_client silent{run.port()}, slow{run.port()};
  CHECK(silent.gets_closed());
  std::unique_ptr<raw_client> idle;
  CHECK(comes_true([&] { // if this thread is quick enough
    idle = std::make_unique<raw_client>(run.port());
    idle->send(run.request("GET /healthz"));
    return idle->receive_answer().status == 200;
  }));
  CHECK(idle->gets_closed());
  const auto request = run.request("GET /healthz", std::string(10'000, 'x'));
  auto left = std::string_view{request};
  while (!left.empty() && slow.send(left.substr(0, 1))) {
    left.remove_prefix(1);
    std::this_thread::sleep_for(10ms);
  }
  CHECK_FALSE(left.empty());
}

TEST_CASE("who does not read an answer is cut off") {
  const served_run run{{.patience = 200ms}};
  const auto files = open_files();
  std::unique_ptr<raw_client> client;
  CHECK(comes_true([&] { // if this thread is quick enough
    client = std::make_unique<raw_client>(run.port(), 4096);
    client->send(run.request("GET /large", run.view_cookie()));
    return client->receive(9) == "HTTP/1.1 ";
  }));
  // The answer has begun. Then only this side of the connection is open.
  CHECK(comes_true([&] { return open_files() == files + 1; }));
}

TEST_CASE("more connections than allowed are closed at once") {
  const served_run run{{.connections = 3, .patience = client_patience}};
  const auto request = run.request("GET /one", run.view_cookie());
  std::vector<std::unique_ptr<raw_client>> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(std::make_unique<raw_client>(run.port()));
    clients.back()->send(request);
    CHECK(clients.back()->receive_answer().status == 200);
  }
  raw_client more{run.port()};
  CHECK(more.gets_closed());
  clients.pop_back();
  CHECK(comes_true([&] {
    raw_client again{run.port()};
    again.send(request);
    return again.receive_answer().status == 200;
  }));
}

TEST_CASE("of too many connections, the first without a secret makes room") {
  const served_run run{{.connections = 3, .patience = client_patience}};
  const auto own = run.request("GET /one", run.view_cookie());
  raw_client viewer{run.port()};
  viewer.send(own);
  CHECK(viewer.receive_answer().status == 200);
  raw_client first{run.port()}, second{run.port()};
  for (auto* stranger : {&first, &second}) {
    stranger->send(run.request("GET /healthz"));
    CHECK(stranger->receive_answer().status == 200);
  }
  raw_client more{run.port()};
  more.send(own);
  CHECK(more.receive_answer().status == 200);
  CHECK(first.gets_closed());
  for (auto* kept : {&viewer, &more}) {
    kept->send(own);
    CHECK(kept->receive_answer().status == 200);
  }
  second.send(run.request("GET /healthz"));
  CHECK(second.receive_answer().status == 200);
}

TEST_CASE("silent strangers keep no viewer out") {
  const served_run run{{.connections = 3, .patience = client_patience}};
  std::vector<std::unique_ptr<raw_client>> silent;
  for (int i = 0; i < 10; ++i)
    silent.push_back(std::make_unique<raw_client>(run.port()));
  CHECK(run.get("/one", run.view_cookie()).status == 200);
}

TEST_CASE("a server ends with its thread while clients are connected") {
  const auto files = open_files();
  const auto running = threads();
  std::vector<std::unique_ptr<raw_client>> clients;
  {
    const served_run run;
    for (int i = 0; i < 20; ++i)
      clients.push_back(std::make_unique<raw_client>(run.port()));
    clients[0]->send(run.request("GET /healthz"));
    CHECK(clients[0]->receive_answer().status == 200);
    clients[1]->send(run.request("GET /large", run.view_cookie()));
    clients[2]->send("GET / HT");
  }
  CHECK(comes_true([&] { return threads() <= running; }));
  for (auto& client : clients)
    CHECK(client->gets_closed());
  clients.clear();
  CHECK(open_files() == files);
}

TEST_CASE("programs that this process starts get no socket of the server") {
  std::set<int> before;
  for (int file = 0; file < 1024; ++file)
    if (::fcntl(file, F_GETFD) >= 0)
      before.insert(file);
  const served_run run;
  raw_client client{run.port()};
  client.send(run.request("GET /healthz"));
  CHECK(client.receive_answer().status == 200);
  int opened = 0;
  for (int file = 0; file < 1024; ++file)
    if (const auto flags = ::fcntl(file, F_GETFD);
        flags >= 0 && !before.contains(file)) {
      CHECK((flags & FD_CLOEXEC) != 0);
      ++opened;
    }
  CHECK(opened >= 4); // among them two that listen and serve
}

TEST_CASE("a port can be used again as soon as a server has ended") {
  std::uint16_t port = 0;
  std::unique_ptr<raw_client> client;
  for (int i = 0; i < 3; ++i) {
    const served_run run{{.port = port}};
    port = run.port();
    client = std::make_unique<raw_client>(port);
    client->send(run.request("GET /healthz"));
    CHECK(client->receive_answer().status == 200);
  }
}

TEST_CASE("a port in use, and an address of other machines, are refused") {
  const served_run run;
  const auto in_use = refusal_of({.port = run.port()});
  CHECK(in_use.code() == errc::io_failure);
  CHECK(troupe::test::says(in_use, "cannot listen at '127.0.0.1' port "
                                     + std::to_string(run.port())
                                     + ": Address already in use"));
  const auto wrong = refusal_of({.address = "127.0.0.1.2"});
  CHECK(wrong.code() == errc::invalid_argument);
  CHECK(troupe::test::says(wrong, "no address in figures"));
}

TEST_CASE("off loopback a server needs TLS and a token file") {
  const troupe::test::temporary_folder folder;
  const auto token = (folder / "token").string();
  for (const auto* address : {"0.0.0.0", "::", "192.0.2.1"}) {
    const auto open = refusal_of({.address = address}, web_access{token});
    CHECK(open.code() == errc::invalid_argument);
    CHECK(troupe::test::says(open, "needs a certificate, its key and a token"));
    CHECK(
      refusal_of({.address = address, .certificate = "c", .key = "k"}).code()
      == errc::invalid_argument);
  }
  CHECK(refusal_of({.certificate = "c"}).code() == errc::invalid_argument);
  CHECK(refusal_of({.key = "k"}).code() == errc::invalid_argument);
}

TEST_CASE("a server listens on the loopback of IPv6, if there is one"
          * doctest::skip(!std::filesystem::exists("/proc/net/if_inet6"))) {
  std::unique_ptr<web_server> server;
  try {
    server = std::make_unique<web_server>(web_server_options{.address = "::1"},
                                          web_access{}, web_handler{});
  } catch (const error& none) {
    CHECK(none.code() == errc::io_failure);
    return;
  }
  CHECK(server->view_link().starts_with(
    "http://[::1]:" + std::to_string(server->port()) + "/?token="));
}

TEST_CASE("the thread's processor time grows with the requests") {
  const served_run run;
  const auto before = run.server.cpu_seconds();
  CHECK(before >= 0);
  CHECK(comes_true([&] {
    return run.get("/large", run.view_cookie()).status == 200
           && run.server.cpu_seconds() > before;
  }));
}
} // TEST_SUITE("dashboard.web_server")
