// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "parties.hpp"

#include <troupe/comm/tls/certificates.hpp>

#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <chrono>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

/// Peers and certificates that Troupe itself does not make.
namespace tls_test {

using context_handle = std::unique_ptr<SSL_CTX, freed_by<SSL_CTX_free>>;

/// Who signs certificates of any content.
class hand_made_authority {
public:
  hand_made_authority() : key_(make_key()) {
    certificate_ = begin(key_, {"an authority"}, std::chrono::hours{-1},
                         std::chrono::hours{1});
    add(NID_basic_constraints, "critical,CA:TRUE");
    X509_sign(certificate_.get(), key_.get(), EVP_sha256());
  }

  /// Someone who signs with what it has as a process.
  explicit hand_made_authority(const job_credentials& own)
    : key_(read_key(own.key)), certificate_(read_certificate(own.certificate)) {
  }

  /// Credentials of a process with these common names, from and until now plus
  /// some hours.
  job_credentials credentials(const std::vector<std::string>& names,
                              std::chrono::hours from = std::chrono::hours{-1},
                              std::chrono::hours until = std::chrono::hours{
                                1}) const {
    const auto key = make_key();
    const auto made = begin(key, names, from, until);
    X509_set_issuer_name(made.get(), X509_get_subject_name(certificate_.get()));
    X509_sign(made.get(), key_.get(), EVP_sha256());
    job_credentials own;
    own.authority = text_of(certificate_);
    own.certificate = text_of(made);
    own.key = text_of(key);
    return own;
  }

private:
  static key_handle make_key() {
    return key_handle{EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256")};
  }

  static certificate_handle begin(const key_handle& key,
                                  const std::vector<std::string>& names,
                                  std::chrono::hours from,
                                  std::chrono::hours until) {
    using std::chrono::seconds;
    certificate_handle made{X509_new()};
    X509_set_version(made.get(), X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(made.get()), 1);
    for (const auto& name : names)
      X509_NAME_add_entry_by_txt(
        X509_get_subject_name(made.get()), "CN", MBSTRING_ASC,
        reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
    X509_set_issuer_name(made.get(), X509_get_subject_name(made.get()));
    X509_gmtime_adj(X509_getm_notBefore(made.get()), seconds{from}.count());
    X509_gmtime_adj(X509_getm_notAfter(made.get()), seconds{until}.count());
    X509_set_pubkey(made.get(), key.get());
    return made;
  }

  void add(int kind, const char* value) {
    const std::unique_ptr<X509_EXTENSION, freed_by<X509_EXTENSION_free>> made{
      X509V3_EXT_conf_nid(nullptr, nullptr, kind, value)};
    X509_add_ext(certificate_.get(), made.get(), -1);
  }

  template <class Handle>
  static std::string text_of(const Handle& what) {
    const bio_handle to{BIO_new(BIO_s_mem())};
    if constexpr (std::is_same_v<Handle, key_handle>)
      PEM_write_bio_PKCS8PrivateKey(to.get(), what.get(), nullptr, nullptr, 0,
                                    nullptr, nullptr);
    else
      PEM_write_bio_X509(to.get(), what.get());
    char* text = nullptr;
    const auto size = BIO_get_mem_data(to.get(), &text);
    return {text, static_cast<std::size_t>(size)};
  }

  key_handle key_;
  certificate_handle certificate_;
};

/// A peer that speaks TLS as it likes: it accepts all certificates, and shows
/// what it is given.
class stranger {
public:
  stranger(side which, descriptor socket, int version = TLS1_3_VERSION)
    : socket(std::move(socket)), which_(which) {
    SSL_CTX_set_min_proto_version(context_.get(), version);
    SSL_CTX_set_max_proto_version(context_.get(), version);
  }

  void show(const job_credentials& own) {
    const auto key = read_key(own.key);
    REQUIRE(SSL_CTX_use_certificate(context_.get(),
                                    read_certificate(own.certificate).get())
            == 1);
    REQUIRE(SSL_CTX_use_PrivateKey(context_.get(), key.get()) == 1);
  }

  /// One more certificate of the chain.
  void show_too(const std::string& certificate) {
    auto added = read_certificate(certificate);
    REQUIRE(SSL_CTX_add_extra_chain_cert(context_.get(), added.release()) == 1);
  }

  void go_on() {
    if (!ssl_)
      begin();
    ERR_clear_error();
    if (SSL_do_handshake(ssl_.get()) != 1)
      note();
  }

  /// The alert that it got or gave, as OpenSSL calls it. Empty: none.
  std::string refusal() {
    char byte = 0;
    ERR_clear_error();
    if (ssl_ && SSL_read(ssl_.get(), &byte, 1) != 1)
      note();
    return refusal_;
  }

  descriptor socket;

private:
  void begin() {
    ssl_.reset(SSL_new(context_.get()));
    SSL_set_fd(ssl_.get(), socket.get());
    ::fcntl(socket.get(), F_SETFL, O_NONBLOCK);
    if (which_ == side::client)
      SSL_set_connect_state(ssl_.get());
    else
      SSL_set_accept_state(ssl_.get());
  }

  void note() {
    if (const auto code = ERR_peek_error(); code != 0 && refusal_.empty())
      refusal_ = openssl_reason();
  }

  side which_;
  context_handle context_{SSL_CTX_new(TLS_method())};
  std::unique_ptr<SSL, freed_by<SSL_free>> ssl_;
  std::string refusal_;
};

} // namespace tls_test
