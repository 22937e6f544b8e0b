// SPDX-License-Identifier: Apache-2.0
#include <troupe/trace/event_codec.hpp>

#include <troupe/base/error.hpp>

namespace troupe::trace {

namespace {

// Of the first byte of an event: the kind, and what follows.
constexpr std::uint8_t kind_bits = 0x1f;
constexpr std::uint8_t has_receiver = 0x20; ///< else no_handle
constexpr std::uint8_t has_place = 0x40;    ///< step and worker; else as before
constexpr std::uint8_t has_amount = 0x80;   ///< else 0
static_assert(event_kinds <= kind_bits + std::size_t{1});

/// Small differences of both signs become small numbers.
std::uint64_t zigzag(std::uint64_t difference) {
  const auto is_negative = static_cast<std::int64_t>(difference) < 0;
  return difference << 1 ^ (is_negative ? ~std::uint64_t{0} : 0);
}
std::uint64_t unzigzag(std::uint64_t number) {
  return number >> 1 ^ (~(number & 1) + 1);
}

void put_number(std::string& out, std::uint64_t number) {
  for (; number >= 0x80; number >>= 7)
    out.push_back(static_cast<char>(number | 0x80));
  out.push_back(static_cast<char>(number));
}

class number_reader {
public:
  explicit number_reader(std::string_view bytes) : rest_(bytes) {}

  std::uint8_t byte() {
    if (rest_.empty())
      throw error(errc::bad_file, "a block of events is cut short");
    const auto first = static_cast<std::uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    return first;
  }
  std::uint64_t number() {
    std::uint64_t result = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto part = byte();
      result |= std::uint64_t{part & 0x7fu} << shift;
      if (part < 0x80)
        return result;
    }
    throw error(errc::bad_file, "a block of events has a malformed number");
  }
  bool is_at_end() const noexcept { return rest_.empty(); }

private:
  std::string_view rest_;
};

/// What the next event is compared with.
trace_event before_first(std::uint64_t first_ticks) {
  trace_event e;
  e.time = first_ticks;
  e.from = 0;
  return e;
}

} // namespace

void encode_events(std::span<const trace_event> events,
                   std::uint64_t first_ticks, std::string& out) {
  auto last = before_first(first_ticks);
  for (const auto& e : events) {
    const bool moves = e.step != last.step || e.worker != last.worker;
    out.push_back(static_cast<char>(
      static_cast<std::uint8_t>(e.kind) | (e.to != no_handle ? has_receiver : 0)
      | (moves ? has_place : 0) | (e.amount != 0 ? has_amount : 0)));
    put_number(out, zigzag(e.time - last.time));
    put_number(out, zigzag(std::uint64_t{e.from} - last.from));
    if (e.to != no_handle)
      put_number(out, zigzag(std::uint64_t{e.to} - e.from));
    if (moves) {
      put_number(out, zigzag(std::uint64_t{e.step} - last.step));
      put_number(out, static_cast<std::uint16_t>(e.worker + 1));
    }
    if (e.amount != 0)
      put_number(out, e.amount);
    last = e;
  }
}

void decode_events(std::string_view bytes, std::size_t count,
                   std::uint64_t first_ticks, std::vector<trace_event>& into) {
  number_reader in{bytes};
  auto last = before_first(first_ticks);
  for (std::size_t i = 0; i < count; ++i) {
    const auto head = in.byte();
    trace_event e;
    e.kind = static_cast<event_kind>(head & kind_bits);
    if (static_cast<std::size_t>(e.kind) >= event_kinds)
      throw error(errc::bad_file, "a block of events has an unknown kind");
    e.time = last.time + unzigzag(in.number());
    e.from = static_cast<handle_id>(last.from + unzigzag(in.number()));
    if (head & has_receiver)
      e.to = static_cast<handle_id>(e.from + unzigzag(in.number()));
    e.step = last.step;
    e.worker = last.worker;
    if (head & has_place) {
      e.step = static_cast<std::uint32_t>(last.step + unzigzag(in.number()));
      e.worker = static_cast<std::uint16_t>(in.number() - 1);
    }
    if (head & has_amount)
      e.amount = in.number();
    into.push_back(e);
    last = e;
  }
  if (!in.is_at_end())
    throw error(errc::bad_file, "a block of events is too long");
}

} // namespace troupe::trace
