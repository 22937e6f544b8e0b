// SPDX-License-Identifier: Apache-2.0
#include "live_client.hpp"
#include "raw_client.hpp"
#include "served_run.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

using namespace troupe::dashboard;
using namespace troupe::dashboard::test;

TEST_SUITE("dashboard.crowd") {

TEST_CASE("two hundred slow clients keep nobody from being served") {
  const auto files = open_files();
  {
    const served_run run;
    std::vector<std::unique_ptr<raw_client>> slow;
    for (int i = 0; i < 200; ++i) {
      slow.push_back(std::make_unique<raw_client>(run.port()));
      slow.back()->send("GET /healthz HTTP/1.1\r\nHost: " + run.host());
    }
    CHECK(run.get("/one", run.view_cookie()).status == 200);
    for (auto& client : slow) {
      client->send("\r\nConnection: close\r\n\r\n");
      CHECK(client->receive_answer().status == 200);
      CHECK(client->gets_closed());
    }
    CHECK(run.get("/one", run.view_cookie()).status == 200);
  }
  CHECK(open_files() == files);
}

TEST_CASE("those who come too fast wait, and are served in their turn") {
  const auto files = open_files();
  {
    const served_run run{
      {.connections_at_once = 1, .patience = client_patience}};
    std::vector<std::unique_ptr<raw_client>> crowd;
    for (int i = 0; i < 100; ++i)
      crowd.push_back(std::make_unique<raw_client>(run.port()));
    CHECK(run.get("/one", run.view_cookie()).status == 200);
  }
  CHECK(open_files() == files);
}

TEST_CASE("the server takes no connection that comes too fast") {
  const served_run run{{.connections_at_once = 2,
                        .connections_per_second = 1e-9,
                        .patience = client_patience}};
  const auto files = open_files();
  const auto request = run.request("GET /one", run.view_cookie());
  raw_client first{run.port()};
  first.send(request);
  CHECK(first.receive_answer().status == 200);
  // The server has found nobody else meanwhile, which does not count.
  raw_client second{run.port()}, third{run.port()};
  for (int i = 0; i < 10; ++i)
    for (auto* client : {&first, &second}) {
      client->send(request);
      CHECK(client->receive_answer().status == 200);
    }
  CHECK(open_files() == files + 3 + 2); // of three clients and two connections
}

TEST_CASE("ten thousand connections in turn leave nothing behind") {
  const served_run run{{.connections_at_once = 10'001}};
  const auto files = open_files();
  const auto request = run.request("GET /one", run.view_cookie());
  for (int i = 0; i < 10'000; ++i) {
    raw_client client{run.port()};
    if (i % 4 == 0)
      continue; // sends nothing
    client.send(i % 4 == 1 ? "GET / HTTP" : i % 4 == 2 ? "\r\r\r" : request);
    if (i % 4 == 3 && client.receive_answer().status != 200)
      FAIL_CHECK("connection ", i, " was not served");
  }
  CHECK(comes_true([&] { return open_files() == files; }));
  CHECK(run.get("/one", run.view_cookie()).status == 200);
}

TEST_CASE("frames reach watchers that come and go while others publish") {
  served_run run;
  std::atomic<bool> ends = false;
  std::vector<std::thread> publishers;
  for (int p = 0; p < 2; ++p)
    publishers.emplace_back([&] {
      while (!ends)
        run.server.publish(
          std::make_shared<const std::string>(std::string(100'000, 'x')));
    });
  for (int i = 0; i < 50; ++i) {
    live_client client{run};
    CHECK(client.receive_message().size() == 100'000);
    CHECK(client.receive_message().size() == 100'000);
  }
  ends = true;
  for (auto& each : publishers)
    each.join();
  CHECK(comes_true([&] { return run.server.watchers() == 0; }));
}
} // TEST_SUITE("dashboard.crowd")
