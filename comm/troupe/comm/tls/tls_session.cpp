// SPDX-License-Identifier: Apache-2.0
#include <troupe/comm/tls/tls_session.hpp>

#include <troupe/base/assert.hpp>
#include <troupe/base/error.hpp>
#include <troupe/comm/tls/certificates.hpp>
#include <troupe/comm/tls/wire.hpp>

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <cerrno>
#include <optional>
#include <string>
#include <system_error>

namespace troupe::comm {

namespace {

using ssl_handle = std::unique_ptr<SSL, freed_by<SSL_free>>;

[[noreturn]] void fail(const std::string& why) {
  throw error(errc::peer_failure, why);
}

// -- texts --------------------------------------------------------------------

/// Why a certificate of the other side is not accepted.
std::string why_not_accepted(long verdict) {
  switch (verdict) {
  case X509_V_ERR_CERT_HAS_EXPIRED: return "its certificate has expired";
  case X509_V_ERR_CERT_NOT_YET_VALID:
    return "its certificate is not yet valid (do the clocks differ?)";
  case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
  case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
  case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
  case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
  case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
  case X509_V_ERR_CERT_SIGNATURE_FAILURE:
    return "its certificate is of another job";
  default:
    return std::string{"its certificate is not accepted: "}
           + X509_verify_cert_error_string(verdict);
  }
}

/// What the other side has against this process, from the number of an alert.
std::string refusal(int alert) {
  const std::string certificate =
    "it does not accept the certificate of this process: ";
  const std::string text = SSL_alert_desc_string_long(alert);
  switch (alert) {
  case SSL_AD_CERTIFICATE_EXPIRED: return certificate + "it has expired";
  case SSL_AD_UNKNOWN_CA: return certificate + "it is of another job";
  case SSL_AD_CERTIFICATE_REQUIRED: return certificate + "none was shown";
  case SSL_AD_BAD_CERTIFICATE: // for a time in the future, too
  case SSL_AD_UNSUPPORTED_CERTIFICATE:
  case SSL_AD_CERTIFICATE_REVOKED:
  case SSL_AD_CERTIFICATE_UNKNOWN: return certificate + text;
  case SSL_AD_PROTOCOL_VERSION: return "it does not accept TLS 1.3";
  default:
    return "it refuses the connection: "
           + (text == "unknown" ? "alert " + std::to_string(alert) : text);
  }
}

/// What a broken socket means.
std::string broken_by(int failure) {
  return failure == EPIPE || failure == ECONNRESET
           ? "it has closed the connection"
           : "the connection is broken: "
               + std::system_category().message(failure);
}

/// Reason of the last error of this thread, if TLS itself failed, otherwise 0.
int tls_reason() {
  const auto code = ERR_peek_last_error();
  return ERR_GET_LIB(code) == ERR_LIB_SSL ? ERR_GET_REASON(code) : 0;
}

/// What the other side did wrong, from the reason of an error.
std::string mistake(int reason, const SSL* connection) {
  if (reason >= SSL_AD_REASON_OFFSET)
    return refusal(reason - SSL_AD_REASON_OFFSET);
  switch (reason) {
  case SSL_R_CERTIFICATE_VERIFY_FAILED:
    return why_not_accepted(SSL_get_verify_result(connection));
  case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
    return "it shows no certificate";
  case SSL_R_UNSUPPORTED_PROTOCOL:
  case SSL_R_VERSION_TOO_LOW: return "it does not offer TLS 1.3";
  case SSL_R_DECRYPTION_FAILED_OR_BAD_RECORD_MAC:
    return "its bytes are not genuine";
  default: return "it breaks the rules of TLS: " + openssl_reason();
  }
}

} // namespace

// -- state --------------------------------------------------------------------

struct tls_session::state {
  state(const tls_identity& own, side which, int socket)
    : sock(socket), ssl(SSL_new(own.context())) {
    auto bio = sock.bio();
    if (!ssl || !bio)
      throw error(errc::io_failure, "no TLS connection: " + openssl_reason());
    auto* const both = bio.release();
    SSL_set_bio(ssl.get(), both, both);
    if (which == side::client)
      SSL_set_connect_state(ssl.get());
    else
      SSL_set_accept_state(ssl.get());
  }

  /// What `result` of a function of OpenSSL means: 1 is done.
  progress after(int result, std::size_t bytes) {
    if (result == 1)
      return {.bytes = bytes};
    if (!sock.carries_tls()) // OpenSSL may wait for more of it
      fail("it speaks no TLS");
    switch (SSL_get_error(ssl.get(), result)) {
    case SSL_ERROR_WANT_READ: return {.waits = wish::to_read};
    case SSL_ERROR_WANT_WRITE: return {.waits = wish::to_write};
    case SSL_ERROR_ZERO_RETURN: return {.is_over = true};
    default: fail_with_reason();
    }
  }

  [[noreturn]] void fail_with_reason() {
    const auto reason = tls_reason();
    if (sock.is_at_end() && reason < SSL_AD_REASON_OFFSET)
      fail("it has closed the connection");
    if (reason == 0 && sock.failure() != 0)
      fail(broken_by(sock.failure()));
    fail(mistake(reason, ssl.get()));
  }

  /// What the other side said before it closed a connection that no longer
  /// takes bytes.
  void look_for_alert() {
    char byte = 0;
    std::size_t bytes = 0;
    ERR_clear_error();
    SSL_peek_ex(ssl.get(), &byte, 1, &bytes);
  }

  /// Throws if there is none.
  void set_peer() {
    const certificate_handle shown{SSL_get1_peer_certificate(ssl.get())};
    peer = shown ? process_in(shown.get()) : std::nullopt;
    if (!peer)
      fail("its certificate names no process");
  }

  wire sock;
  ssl_handle ssl;
  std::optional<std::size_t> peer{};
  bool is_told = false; ///< the other side knows that no more comes
};

tls_session::tls_session(const tls_identity& own, side which, int socket)
  : state_(std::make_unique<state>(own, which, socket)) {}

tls_session::~tls_session() = default;
tls_session::tls_session(tls_session&&) noexcept = default;
tls_session& tls_session::operator=(tls_session&&) noexcept = default;

tls_session::wish tls_session::shake_hands() {
  ERR_clear_error();
  const auto made = state_->after(SSL_do_handshake(state_->ssl.get()), 0);
  if (made.is_over)
    fail("it has closed the connection");
  if (made.waits == wish::nothing && !state_->peer)
    state_->set_peer();
  return made.waits;
}

std::size_t tls_session::peer() const {
  TROUPE_ASSERT(state_->peer.has_value());
  return *state_->peer;
}

tls_session::progress tls_session::read(std::span<std::byte> into) {
  if (into.empty())
    return {};
  std::size_t bytes = 0;
  ERR_clear_error();
  const auto result =
    SSL_read_ex(state_->ssl.get(), into.data(), into.size(), &bytes);
  return state_->after(result, bytes);
}

tls_session::progress tls_session::write(std::span<const std::byte> from) {
  if (from.empty())
    return {};
  std::size_t bytes = 0;
  ERR_clear_error();
  const auto result =
    SSL_write_ex(state_->ssl.get(), from.data(), from.size(), &bytes);
  if (result != 1 && state_->sock.failure() != 0) {
    state_->look_for_alert();
    state_->fail_with_reason();
  }
  return state_->after(result, bytes);
}

tls_session::wish tls_session::close() noexcept {
  if (state_->is_told)
    return wish::nothing;
  ERR_clear_error();
  const auto result = SSL_shutdown(state_->ssl.get());
  const auto waits =
    result < 0
    && SSL_get_error(state_->ssl.get(), result) == SSL_ERROR_WANT_WRITE;
  ERR_clear_error();
  state_->is_told = !waits;
  return waits ? wish::to_write : wish::nothing;
}

} // namespace troupe::comm
