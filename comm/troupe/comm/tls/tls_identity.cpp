// SPDX-License-Identifier: Apache-2.0
#include <troupe/comm/tls/tls_identity.hpp>

#include <troupe/base/error.hpp>
#include <troupe/comm/tls/certificates.hpp>

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <string>

namespace troupe::comm {

namespace {

/// A stranger may send that much before it is known to be one.
constexpr long most_bytes_of_certificates = 16 * 1024;

void require(bool done) {
  if (!done)
    throw error(errc::io_failure, "cannot use TLS: " + openssl_reason());
}

/// Throws unless the credentials are what they should be.
void require_usable(bool they_are, const char* why_not) {
  ERR_clear_error();
  if (!they_are)
    throw error(errc::bad_file,
                std::string{"unusable credentials of a process: "} + why_not);
}

std::shared_ptr<SSL_CTX> make_context() {
  std::shared_ptr<SSL_CTX> made{SSL_CTX_new(TLS_method()), SSL_CTX_free};
  auto* const context = made.get();
  require(context != nullptr);
  require(SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1);
  require(SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION) == 1);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
                     nullptr);
  SSL_CTX_set_max_cert_list(context, most_bytes_of_certificates);
  // Each connection begins with certificates: there is nothing to resume.
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context, 0);
  SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION
                                 | SSL_OP_NO_RENEGOTIATION);
  // Everybody has the authority's certificate already: it is not sent.
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE
                              | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER
                              | SSL_MODE_NO_AUTO_CHAIN);
  return made;
}

/// The only authority: nobody asks the system for others.
void trust(SSL_CTX* context, X509* authority) {
  require(X509_STORE_add_cert(SSL_CTX_get_cert_store(context), authority) == 1);
}

} // namespace

tls_identity::tls_identity(const job_credentials& own)
  : context_(make_context()) {
  const auto authority = read_certificate(own.authority);
  const auto certificate = read_certificate(own.certificate);
  const auto key = read_key(own.key);
  require_usable(authority != nullptr, "no certificate of the job");
  require_usable(certificate != nullptr, "no certificate of the process");
  require_usable(key != nullptr, "no private key");
  require_usable(process_in(certificate.get()).has_value(),
                 "the certificate names no process");
  require_usable(X509_check_private_key(certificate.get(), key.get()) == 1,
                 "the private key is of another certificate");
  require_usable(
    X509_verify(certificate.get(), X509_get0_pubkey(authority.get())) == 1,
    "the certificate is of another job");
  trust(context(), authority.get());
  require(SSL_CTX_use_certificate(context(), certificate.get()) == 1);
  require(SSL_CTX_use_PrivateKey(context(), key.get()) == 1);
}

std::string tls_library_version() {
  return OpenSSL_version(OPENSSL_VERSION_STRING);
}

} // namespace troupe::comm
