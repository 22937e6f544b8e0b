// SPDX-License-Identifier: Apache-2.0
#include <troupe/dashboard/server/access.hpp>

#include <troupe/base/error.hpp>
#include <troupe/base/files/descriptor.hpp>
#include <troupe/base/quoted_name.hpp>

#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <system_error>

namespace troupe::dashboard {

namespace {

constexpr std::size_t secret_bytes = 16;
constexpr std::size_t shortest_secret = 2 * secret_bytes; // in hexadecimal
constexpr std::size_t longest_secret = 256;

[[noreturn]] void fail(errc code, const std::string& path,
                       const std::string& why) {
  throw error(code, "token file " + quoted_name(path) + ": " + why);
}

std::string reason(int number) {
  return std::system_category().message(number);
}

template <std::size_t Bytes>
std::string in_hexadecimal(const std::array<unsigned char, Bytes>& bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const auto byte : bytes) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

std::string make_secret() {
  std::array<unsigned char, secret_bytes> random{};
  if (RAND_priv_bytes(random.data(), random.size()) != 1)
    throw error(errc::io_failure, "the system gives no random numbers");
  return in_hexadecimal(random);
}

/// A secret that follows from another. Nobody learns the one from the other.
std::string derive(const std::string& secret, std::string_view purpose) {
  std::array<unsigned char, 32> sum{};
  unsigned size = sum.size();
  if (!HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
            reinterpret_cast<const unsigned char*>(purpose.data()),
            purpose.size(), sum.data(), &size))
    throw error(errc::io_failure, "OpenSSL cannot compute HMAC-SHA256");
  return in_hexadecimal(sum);
}

// -- the token file -----------------------------------------------------------

bool is_secret(std::string_view text) {
  constexpr std::string_view characters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~+/=";
  return text.size() >= shortest_secret && text.size() <= longest_secret
         && text.find_first_not_of(characters) == text.npos;
}

/// Throws if the file is not one of this user alone.
void require_own_file(int file, const std::string& path) {
  struct stat found {};
  if (::fstat(file, &found) != 0)
    fail(errc::io_failure, path, reason(errno));
  if (!S_ISREG(found.st_mode))
    fail(errc::bad_file, path, "not a regular file");
  if (found.st_uid != ::geteuid())
    fail(errc::invalid_argument, path, "belongs to another user");
  if ((found.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    fail(errc::invalid_argument, path,
         "other users may use it: run chmod 600 on it");
}

std::string read_secret(int file, const std::string& path) {
  require_own_file(file, path);
  std::array<char, longest_secret + 2> bytes{}; // more is too long
  const auto size = ::read(file, bytes.data(), bytes.size());
  if (size < 0)
    fail(errc::io_failure, path, reason(errno));
  std::string_view text{bytes.data(), static_cast<std::size_t>(size)};
  if (text.ends_with('\n'))
    text.remove_suffix(1);
  if (!is_secret(text))
    fail(errc::bad_file, path,
         "not one line of 32 to 256 letters, digits and -._~+/=");
  return std::string{text};
}

/// Makes the file unless there is one. It appears whole: ranks of a job do this
/// at the same time, and no other one may read a part.
void make_secret_file(const std::string& path) {
  auto name = path + ".XXXXXX";
  const descriptor file{::mkostemp(name.data(), O_CLOEXEC)}; // mode 0600
  if (!file)
    fail(errc::io_failure, path, reason(errno));
  const auto line = make_secret() + '\n';
  const auto is_made = ::write(file.get(), line.data(), line.size())
                         == static_cast<ssize_t>(line.size())
                       && ::link(name.c_str(), path.c_str()) == 0;
  const auto failed = errno;
  ::unlink(name.c_str());
  if (!is_made && failed != EEXIST)
    fail(errc::io_failure, path, reason(failed));
}

std::string secret_of_file(const std::string& path) {
  struct stat found {};
  if (::lstat(path.c_str(), &found) != 0) {
    if (errno != ENOENT)
      fail(errc::io_failure, path, reason(errno));
    make_secret_file(path);
  }
  // Does not wait for whoever writes to a pipe.
  const descriptor file{
    ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)};
  if (!file)
    fail(errc::io_failure, path, reason(errno));
  return read_secret(file.get(), path);
}

} // namespace

bool equal_in_constant_time(std::string_view one,
                            std::string_view other) noexcept {
  return one.size() == other.size()
         && CRYPTO_memcmp(one.data(), other.data(), one.size()) == 0;
}

web_access::web_access() : web_access(std::string{}) {}

web_access::web_access(const std::string& token_file)
  : file_secret_(token_file.empty() ? "" : secret_of_file(token_file)),
    view_token_(make_secret()), control_token_(make_secret()) {
  const auto key = file_secret_.empty() ? make_secret() : file_secret_;
  view_cookie_ = derive(key, "troupe dashboard: view");
  // Whoever knows the secret of the file must not be able to derive it.
  control_cookie_ = view_cookie_ + make_secret();
}

right web_access::redeem(std::string_view token) {
  // Both are compared, whatever the first comparison says.
  const auto views = equal_in_constant_time(token, view_token_);
  const auto controls = equal_in_constant_time(token, control_token_);
  if (token.empty())
    return right::none; // which a used token equals
  if (controls)
    control_token_.clear();
  else if (views)
    view_token_.clear();
  return controls ? right::control : views ? right::view : right::none;
}

const std::string& web_access::cookie_of(right which) const noexcept {
  return which == right::control ? control_cookie_ : view_cookie_;
}

right web_access::right_of_cookie(std::string_view value) const noexcept {
  const auto controls = equal_in_constant_time(value, control_cookie_);
  if (value.size() == control_cookie_.size())
    value = value.substr(0, view_cookie_.size());
  const auto views = equal_in_constant_time(value, view_cookie_);
  return controls ? right::control : views ? right::view : right::none;
}

right web_access::right_of_bearer(std::string_view secret) const noexcept {
  return has_token_file() && equal_in_constant_time(secret, file_secret_)
           ? right::view
           : right::none;
}

} // namespace troupe::dashboard
