// SPDX-License-Identifier: Apache-2.0
#include "live_client.hpp"
#include "raw_client.hpp"
#include "served_run.hpp"

#include <support/caught.hpp>
#include <support/files.hpp>
#include <troupe/dashboard/server/certificate_names.hpp>

#include <doctest/doctest.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

using namespace troupe;
using namespace troupe::dashboard;
using namespace troupe::dashboard::test;
using namespace std::chrono_literals;

TEST_SUITE("dashboard.tls") {

namespace {

template <auto Free>
struct freed_by {
  template <class T>
  void operator()(T* made) const {
    Free(made);
  }
};

using key_handle = std::unique_ptr<EVP_PKEY, freed_by<EVP_PKEY_free>>;

template <class Write>
void write_pem(const std::string& path, Write write) {
  const std::unique_ptr<BIO, freed_by<BIO_free_all>> file{
    BIO_new_file(path.c_str(), "w")};
  REQUIRE(file);
  REQUIRE(write(file.get()) == 1);
}

/// A folder with a certificate that signs itself, and its key.
struct identity {
  explicit identity(const char* names = "DNS:node7.example,DNS:*.wild.example,"
                                        "IP:127.0.0.1,IP:2001:db8::1")
    : names_(names) {
    const key_handle own{EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256")};
    write_certificate(own.get());
    write_key(key, own.get());
    const key_handle foreign{
      EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256")};
    write_key(other_key, foreign.get());
  }

  troupe::test::temporary_folder folder;
  std::string certificate = (folder / "certificate").string();
  std::string key = (folder / "key").string();
  std::string other_key = (folder / "other-key").string();
  std::string token = (folder / "token").string();

private:
  const char* names_; ///< null: the certificate has none

  void write_certificate(EVP_PKEY* own) const {
    const std::unique_ptr<X509, freed_by<X509_free>> made{X509_new()};
    auto* const to = made.get();
    X509_set_version(to, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(to), 1);
    X509_gmtime_adj(X509_getm_notBefore(to), -3600);
    X509_gmtime_adj(X509_getm_notAfter(to), 3600);
    X509_set_pubkey(to, own);
    if (names_) {
      const std::unique_ptr<X509_EXTENSION, freed_by<X509_EXTENSION_free>>
        names{
          X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, names_)};
      REQUIRE(X509_add_ext(to, names.get(), -1) == 1);
    }
    REQUIRE(X509_sign(to, own, EVP_sha256()) > 0);
    write_pem(certificate,
              [&](BIO* file) { return PEM_write_bio_X509(file, to); });
  }
  static void write_key(const std::string& path, EVP_PKEY* key) {
    write_pem(path, [&](BIO* file) {
      return PEM_write_bio_PKCS8PrivateKey(file, key, nullptr, nullptr, 0,
                                           nullptr, nullptr);
    });
  }
};

/// A client that speaks TLS, and trusts everybody.
class tls_client {
public:
  explicit tls_client(std::uint16_t port, int newest = TLS1_3_VERSION)
    : raw(port) {
    // Old versions need an old level of security too.
    SSL_CTX_set_security_level(context_.get(), 0);
    SSL_CTX_set_min_proto_version(context_.get(), TLS1_VERSION);
    SSL_CTX_set_max_proto_version(context_.get(), newest);
    ssl_.reset(SSL_new(context_.get()));
    SSL_set_fd(ssl_.get(), raw.socket());
    is_connected = SSL_connect(ssl_.get()) == 1;
    ERR_clear_error();
  }

  std::string version() const { return SSL_get_version(ssl_.get()); }

  /// Sends a text, and returns what comes up to the end or up to `until`.
  std::string exchange(const std::string& text, const std::string& until = {}) {
    SSL_write(ssl_.get(), text.data(), static_cast<int>(text.size()));
    std::string got;
    std::array<char, 4096> some;
    for (;;) {
      const auto n = SSL_read(ssl_.get(), some.data(), some.size());
      if (n > 0)
        got.append(some.data(), static_cast<std::size_t>(n));
      if (n <= 0 || (!until.empty() && got.find(until) != got.npos)) {
        ERR_clear_error();
        return got;
      }
    }
  }

  raw_client raw;
  bool is_connected = false;

private:
  std::unique_ptr<SSL_CTX, freed_by<SSL_CTX_free>> context_{
    SSL_CTX_new(TLS_client_method())};
  std::unique_ptr<SSL, freed_by<SSL_free>> ssl_;
};

served_run tls_run(const identity& own) {
  return served_run{{.certificate = own.certificate,
                     .key = own.key,
                     .patience = client_patience}};
}

error refusal_of(web_server_options options, const std::string& token) {
  return troupe::test::caught([&] {
    web_server{std::move(options), web_access{token}, {}};
  });
}

bool has(const std::string& text, const std::string& part) {
  return troupe::test::contains(text, part);
}

} // namespace

TEST_CASE("with a certificate links, cookies and requests are those of TLS") {
  const identity own;
  const auto run = tls_run(own);
  const auto link = run.server.control_link();
  const auto begin = "https://" + run.host();
  REQUIRE(link.starts_with(begin + "/?token="));
  tls_client client{run.port()};
  REQUIRE(client.is_connected);
  CHECK(client.version() == "TLSv1.3");
  const auto in = client.exchange(
    run.request("GET " + link.substr(begin.size()), "Connection: close\r\n"));
  CHECK(in.starts_with("HTTP/1.1 303 "));
  CHECK(has(in, "; Secure\r\n"));
  const auto answer = tls_client{run.port()}.exchange(
    run.request("GET /one", run.control_cookie() + "Connection: close\r\n"));
  CHECK(answer.starts_with("HTTP/1.1 200 "));
  CHECK(answer.ends_with("GET /one  controls"));
}

TEST_CASE("TLS 1.2 is spoken, older versions and plain requests are not") {
  const identity own;
  const auto run = tls_run(own);
  tls_client client{run.port(), TLS1_2_VERSION};
  CHECK(client.is_connected);
  CHECK(client.version() == "TLSv1.2");
  CHECK_FALSE(tls_client{run.port(), TLS1_1_VERSION}.is_connected);
  raw_client plain{run.port()};
  plain.send(run.request("GET /healthz"));
  CHECK(plain.receive_answer().status == 0);
  CHECK(plain.gets_closed());
}

TEST_CASE("a watcher gets large frames over TLS") {
  const identity own;
  auto run = tls_run(own);
  tls_client client{run.port()};
  const std::string end = "the end";
  run.server.publish(
    std::make_shared<const std::string>(std::string(3'000'000, 'x') + end));
  const auto got = client.exchange(
    run.request("GET /api/v1/live",
                live_client::headers() + run.view_cookie()
                  + "Sec-WebSocket-Protocol: troupe.v1\r\nOrigin: https://"
                  + run.host() + "\r\n"),
    end);
  CHECK(got.starts_with("HTTP/1.1 101 "));
  CHECK(got.size() > 3'000'000);
  CHECK(got.ends_with(end));
  CHECK(run.server.watchers() == 1);
}

TEST_CASE("who does not finish the handshake is cut off") {
  const identity own;
  const served_run run{
    {.certificate = own.certificate, .key = own.key, .patience = 200ms}};
  raw_client silent{run.port()};
  CHECK(silent.gets_closed());
}

TEST_CASE("off loopback the names of the certificate are the server's") {
  const identity own;
  const served_run run{{.address = "0.0.0.0",
                        .certificate = own.certificate,
                        .key = own.key,
                        .patience = client_patience},
                       web_access{own.token}};
  const auto port = ":" + std::to_string(run.port());
  const auto status = [&](const std::string& host) {
    return tls_client{run.port()}
      .exchange("GET /healthz HTTP/1.1\r\nHost: " + host + port
                + "\r\nConnection: close\r\n\r\n")
      .substr(0, 12);
  };
  CHECK(status("node7.example") == "HTTP/1.1 200");
  CHECK(status("NODE7.example") == "HTTP/1.1 200");
  CHECK(status("127.0.0.1") == "HTTP/1.1 200");
  CHECK(status("[2001:db8::1]") == "HTTP/1.1 200");
  CHECK(status("localhost") == "HTTP/1.1 403");
  CHECK(status("rebound.example") == "HTTP/1.1 403");
}

TEST_CASE("off loopback a link has a name of the certificate") {
  const auto link = [](const identity& own) {
    const served_run run{
      {.address = "0.0.0.0", .certificate = own.certificate, .key = own.key},
      web_access{own.token}};
    const auto link = run.server.view_link();
    return link.substr(0, link.find(":" + std::to_string(run.port())));
  };
  CHECK(link(identity{}) == "https://node7.example");
  CHECK(link(identity{"DNS:Node8.example"}) == "https://node8.example");
  CHECK(link(identity{"IP:10.0.0.7,DNS:*.wild.example"}) == "https://10.0.0.7");
  CHECK(link(identity{"IP:2001:db8::1"}) == "https://[2001:db8::1]");
  const auto of_machine = link(identity{nullptr});
  CHECK(of_machine.starts_with("https://"));
  CHECK(of_machine.size() > std::string{"https://"}.size());
  // The machine's own name is one of its names, and stays.
  const auto name = "DNS:first.example,DNS:"
                    + of_machine.substr(std::string{"https://"}.size());
  CHECK(link(identity{name.c_str()}) == of_machine);
}

TEST_CASE("files that are no certificate or no fitting key are refused") {
  const identity own;
  const auto code = [&](const std::string& certificate,
                        const std::string& key) {
    return refusal_of({.certificate = certificate, .key = key}, own.token)
      .code();
  };
  CHECK(code(own.key, own.key) == errc::io_failure);
  CHECK(code(own.certificate, own.certificate) == errc::io_failure);
  CHECK(code(own.certificate, own.other_key) == errc::io_failure);
  CHECK(code(own.certificate, own.key + "-none") == errc::io_failure);
  const auto missing =
    refusal_of({.certificate = own.key + "-none", .key = own.key}, own.token);
  CHECK(missing.code() == errc::io_failure);
  CHECK(troupe::test::says(missing, "cannot use the certificate '"));
  CHECK(troupe::test::says(missing, "No such file"));
}

TEST_CASE("a certificate names hosts and addresses") {
  const identity own;
  const auto covers = names_in_certificate(own.certificate);
  CHECK(covers("node7.example"));
  CHECK(covers("a.wild.example"));
  CHECK(covers("[2001:db8::1]"));
  for (const auto* other : {"", "[]", "node8.example", "wild.example",
                            "127.0.0.2", "[2001:db8::2]", ".wild.example"})
    CHECK_MESSAGE(!covers(other), other);
}
} // TEST_SUITE("dashboard.tls")
