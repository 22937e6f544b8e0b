// SPDX-License-Identifier: Apache-2.0
#pragma once

// Nested values: tensors in tuples, pairs, vectors, arrays, optionals, ordered
// maps, and structs. A struct says what it consists of by a function that
// argument-dependent lookup finds:
//
//     struct pair_of_images { tensor left, right; float scale; };
//     auto members_of(pair_of_images& p) {
//       return std::tie(p.left, p.right, p.scale);
//     }

#include <troupe/base/error.hpp>
#include <troupe/kernels/tensor.hpp>

#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace troupe::parallel {

/// True if `members_of(value)` returns a tuple of references to the members.
template <class T>
concept has_members = requires(T& value) {
  members_of(value);
};

///@{
/// Calls `visit(leaf)` for each part of a value that is not a container, in a
/// fixed order: that of elements, members, or keys.
template <class T, class Visit>
void for_each_leaf(T& value, const Visit& visit);
template <class... Ts, class Visit>
void for_each_leaf(std::tuple<Ts...>& value, const Visit& visit);
template <class T, class U, class Visit>
void for_each_leaf(std::pair<T, U>& value, const Visit& visit);
template <class T, class Visit>
void for_each_leaf(std::vector<T>& value, const Visit& visit);
template <class T, std::size_t N, class Visit>
void for_each_leaf(std::array<T, N>& value, const Visit& visit);
template <class T, class Visit>
void for_each_leaf(std::optional<T>& value, const Visit& visit);
template <class K, class T, class C, class Visit>
void for_each_leaf(std::map<K, T, C>& value, const Visit& visit);
///@}

///@{
/// True if two values of the same type have the same containers: sizes, keys,
/// and which optionals hold something.
template <class T>
bool same_structure(const T& a, const T& b);
template <class... Ts>
bool same_structure(const std::tuple<Ts...>& a, const std::tuple<Ts...>& b);
template <class T, class U>
bool same_structure(const std::pair<T, U>& a, const std::pair<T, U>& b);
template <class T>
bool same_structure(const std::vector<T>& a, const std::vector<T>& b);
template <class T, std::size_t N>
bool same_structure(const std::array<T, N>& a, const std::array<T, N>& b);
template <class T>
bool same_structure(const std::optional<T>& a, const std::optional<T>& b);
template <class K, class T, class C>
bool same_structure(const std::map<K, T, C>& a, const std::map<K, T, C>& b);
///@}

/// The tensors of a nested value, in the order of `for_each_leaf`. They share
/// its memory.
template <class T>
std::vector<tensor> tensors_in(T value) {
  std::vector<tensor> found;
  for_each_leaf(value, [&]<class Leaf>(Leaf& leaf) {
    if constexpr (std::is_same_v<Leaf, tensor>)
      found.push_back(leaf);
  });
  return found;
}

/// The value with other tensors in place of its own, in the order of
/// `for_each_leaf`. All else is copied. Throws error(invalid_argument) unless
/// there are as many tensors.
template <class T>
T with_tensors(T value, const std::vector<tensor>& tensors) {
  std::size_t next = 0;
  for_each_leaf(value, [&]<class Leaf>(Leaf& leaf) {
    if constexpr (std::is_same_v<Leaf, tensor>) {
      if (next < tensors.size())
        leaf = tensors[next];
      ++next;
    }
  });
  if (next != tensors.size())
    throw error(errc::invalid_argument, std::to_string(tensors.size())
                                          + " tensors for a value of "
                                          + std::to_string(next));
  return value;
}

// Definitions.

template <class T, class Visit>
void for_each_leaf(T& value, const Visit& visit) {
  if constexpr (has_members<T>)
    std::apply([&](auto&... member) { (for_each_leaf(member, visit), ...); },
               members_of(value));
  else
    visit(value);
}
template <class... Ts, class Visit>
void for_each_leaf(std::tuple<Ts...>& value, const Visit& visit) {
  std::apply([&](auto&... part) { (for_each_leaf(part, visit), ...); }, value);
}
template <class T, class U, class Visit>
void for_each_leaf(std::pair<T, U>& value, const Visit& visit) {
  for_each_leaf(value.first, visit);
  for_each_leaf(value.second, visit);
}
template <class T, class Visit>
void for_each_leaf(std::vector<T>& value, const Visit& visit) {
  for (auto& part : value)
    for_each_leaf(part, visit);
}
template <class T, std::size_t N, class Visit>
void for_each_leaf(std::array<T, N>& value, const Visit& visit) {
  for (auto& part : value)
    for_each_leaf(part, visit);
}
template <class T, class Visit>
void for_each_leaf(std::optional<T>& value, const Visit& visit) {
  if (value)
    for_each_leaf(*value, visit);
}
template <class K, class T, class C, class Visit>
void for_each_leaf(std::map<K, T, C>& value, const Visit& visit) {
  for (auto& entry : value)
    for_each_leaf(entry.second, visit);
}

template <class T>
bool same_structure(const T& a, const T& b) {
  if constexpr (has_members<T>) {
    // members_of takes references that can be written; nothing is.
    auto &one = const_cast<T&>(a), &other = const_cast<T&>(b);
    return same_structure(members_of(one), members_of(other));
  } else {
    return true;
  }
}
template <class... Ts>
bool same_structure(const std::tuple<Ts...>& a, const std::tuple<Ts...>& b) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return (same_structure(std::get<I>(a), std::get<I>(b)) && ...);
  }
  (std::index_sequence_for<Ts...>{});
}
template <class T, class U>
bool same_structure(const std::pair<T, U>& a, const std::pair<T, U>& b) {
  return same_structure(a.first, b.first) && same_structure(a.second, b.second);
}
template <class T>
bool same_structure(const std::vector<T>& a, const std::vector<T>& b) {
  bool same = a.size() == b.size();
  for (std::size_t i = 0; same && i < a.size(); ++i)
    same = same_structure(a[i], b[i]);
  return same;
}
template <class T, std::size_t N>
bool same_structure(const std::array<T, N>& a, const std::array<T, N>& b) {
  bool same = true;
  for (std::size_t i = 0; same && i < N; ++i)
    same = same_structure(a[i], b[i]);
  return same;
}
template <class T>
bool same_structure(const std::optional<T>& a, const std::optional<T>& b) {
  return a.has_value() == b.has_value() && (!a || same_structure(*a, *b));
}
template <class K, class T, class C>
bool same_structure(const std::map<K, T, C>& a, const std::map<K, T, C>& b) {
  bool same = a.size() == b.size();
  for (auto i = a.begin(), j = b.begin(); same && i != a.end(); ++i, ++j)
    same = i->first == j->first && same_structure(i->second, j->second);
  return same;
}

} // namespace troupe::parallel
