// SPDX-License-Identifier: Apache-2.0
#include <troupe/comm/tls/certificates.hpp>

#include <openssl/err.h>
#include <openssl/pem.h>

#include <charconv>
#include <string_view>

namespace troupe::comm {

namespace {

constexpr std::string_view before_number = "process ";

bio_handle reader_of(const std::string& text) {
  return bio_handle{
    BIO_new_mem_buf(text.data(), static_cast<int>(text.size()))};
}

/// OpenSSL would ask at the terminal.
int no_password(char*, int, int, void*) {
  return -1;
}

/// The text of the only entry of a name, if that is the common name.
std::string_view common_name(const X509_NAME* name) {
  if (!name || X509_NAME_entry_count(name) != 1)
    return {};
  const auto* entry = X509_NAME_get_entry(name, 0);
  if (OBJ_obj2nid(X509_NAME_ENTRY_get_object(entry)) != NID_commonName)
    return {};
  const auto* text = X509_NAME_ENTRY_get_data(entry);
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
          static_cast<std::size_t>(ASN1_STRING_length(text))};
}

} // namespace

std::string openssl_reason() {
  const auto code = ERR_peek_last_error();
  const auto* text = ERR_reason_error_string(code);
  ERR_clear_error();
  return text ? text : "OpenSSL gives no reason";
}

certificate_handle read_certificate(const std::string& pem) {
  const auto from = reader_of(pem);
  certificate_handle read{
    from ? PEM_read_bio_X509(from.get(), nullptr, no_password, nullptr)
         : nullptr};
  ERR_clear_error();
  return read;
}

key_handle read_key(const std::string& pem) {
  const auto from = reader_of(pem);
  key_handle read{
    from ? PEM_read_bio_PrivateKey(from.get(), nullptr, no_password, nullptr)
         : nullptr};
  ERR_clear_error();
  return read;
}

std::string name_of_process(std::size_t process) {
  return std::string{before_number} + std::to_string(process);
}

std::optional<std::size_t> process_in(const X509* certificate) {
  const auto name = common_name(X509_get_subject_name(certificate));
  if (!name.starts_with(before_number))
    return std::nullopt;
  std::size_t number = 0;
  const auto read = std::from_chars(name.data() + before_number.size(),
                                    name.data() + name.size(), number);
  if (read.ec != std::errc{} || name != name_of_process(number))
    return std::nullopt;
  return number;
}

} // namespace troupe::comm
