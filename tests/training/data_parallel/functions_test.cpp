// SPDX-License-Identifier: Apache-2.0
#include <troupe/training/data_parallel/functions.hpp>

#include <support/caught.hpp>
#include <support/veiled_device.hpp>
#include <training/data_parallel/values.hpp>

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::test;
using namespace troupe::parallel;

namespace fields {

/// A struct that says what it consists of.
struct sample {
  tensor image;
  std::string name;
  float weight = 0;
};

auto members_of(sample& s) {
  return std::tie(s.image, s.name, s.weight);
}

} // namespace fields

TEST_SUITE("training.data_parallel.functions") {

namespace {

using floats = std::vector<float>;
using tensors = std::vector<tensor>;

devices cpus(int count) {
  return std::make_shared<device_group>(
    parse_devices("cpu:" + std::to_string(count)));
}

} // namespace

TEST_CASE("chunks have the extents of torch.chunk") {
  const torch_values torch;
  const auto& table = torch["chunks"];
  for (std::int64_t b = 0; b < 12; ++b)
    for (std::int64_t n = 1; n < 6; ++n) {
      std::vector<std::int64_t> expected;
      for (std::int64_t i = 0; i < 6; ++i)
        if (const auto extent =
              table.values<std::int64_t>()[static_cast<std::size_t>(
                (b * 6 + n) * 6 + i)];
            extent >= 0)
          expected.push_back(extent);
      CAPTURE(b);
      CAPTURE(n);
      CHECK(chunk_extents(b, static_cast<std::size_t>(n)) == expected);
    }
}

TEST_CASE("chunks of axis 0 are views, and joined they are the tensor") {
  const auto on = cpus(4);
  const auto x = counting({5, 2});
  const auto cut = scatter(on, x);
  REQUIRE(cut.outputs.size() == 3);
  CHECK(values_of(cut.outputs[0]) == floats{0, 1, 2, 3});
  CHECK(values_of(cut.outputs[2]) == floats{8, 9});
  CHECK(cut.outputs[1].raw() == x.rows(2, 2).raw());
  const auto again = gather(on, cut.outputs);
  CHECK(again.outputs.size() == 1);
  CHECK(again.outputs[0].raw() != x.raw());
  CHECK(distance(again.outputs[0], x) == 0);
}

TEST_CASE("chunks of another axis are those of torch.chunk") {
  const torch_values torch;
  const auto on = cpus(3);
  const auto cut = scatter(on, torch["axis1"], {.axis = 1});
  REQUIRE(cut.outputs.size() == 3);
  for (std::size_t i = 0; i < 3; ++i)
    CHECK(distance(cut.outputs[i], torch["axis1." + std::to_string(i)]) == 0);
  CHECK(distance(gather(on, cut.outputs, 1).outputs[0], torch["axis1"]) == 0);
}

TEST_CASE(
  "the gradient of a scatter is a gather, whose gradient is a scatter") {
  const auto on = cpus(2);
  const auto cut = scatter(on, counting({3, 2}));
  const tensors dy{counting({2, 2}, 10), counting({1, 2}, 20)};
  const auto dx = cut.backward(dy);
  REQUIRE(dx.outputs.size() == 1);
  CHECK(dx.outputs[0].dims() == shape{3, 2});
  CHECK(values_of(dx.outputs[0]) == floats{10, 11, 12, 13, 20, 21});
  const auto ddy = dx.backward({counting({3, 2}, 7)});
  REQUIRE(ddy.outputs.size() == 2);
  CHECK(values_of(ddy.outputs[0]) == floats{7, 8, 9, 10});
  CHECK(values_of(ddy.outputs[1]) == floats{11, 12});
  // Of a chunk that nobody needs, the gradient is zero; of none, nothing.
  CHECK(values_of(cut.backward({tensor{}, dy[1]}).outputs[0])
        == floats{0, 0, 0, 0, 20, 21});
  const auto none = cut.backward({tensor{}, tensor{}});
  CHECK_FALSE(none.outputs[0]);
  CHECK(values_of(none.backward({counting({3, 2}, 7)}).outputs[1])
        == floats{11, 12});
  CHECK_FALSE(none.backward({tensor{}}).outputs[1]);
  CHECK(caught([&] { cut.backward({dy[0]}); }).code()
        == errc::invalid_argument);
}

TEST_CASE("scalars are gathered to a vector, and their gradients are scalars") {
  const auto on = cpus(3);
  const auto joined =
    gather(on, {tensor_of({}, {1}), tensor_of({}, {2}), tensor_of({}, {3})});
  CHECK(joined.outputs[0].dims() == shape{3});
  CHECK(values_of(joined.outputs[0]) == floats{1, 2, 3});
  const auto parts = joined.backward({tensor_of({3}, {5, 6, 7})});
  REQUIRE(parts.outputs.size() == 3);
  CHECK(parts.outputs[2].dims() == shape{});
  CHECK(values_of(parts.outputs[2]) == floats{7});
  CHECK(values_of(parts.backward(parts.outputs).outputs[0]) == floats{5, 6, 7});
  const auto none = joined.backward({tensor{}});
  CHECK_FALSE(none.outputs[2]);
  CHECK(values_of(
          none.backward({tensor{}, tensor_of({}, {4}), tensor{}}).outputs[0])
        == floats{0, 4, 0});
}

TEST_CASE("extents of chunks can be given") {
  const auto on = cpus(2);
  const auto x = counting({5, 1});
  CHECK(scatter(on, x, {.extents = {1, 4}}).outputs[1].dims() == shape{4, 1});
  for (auto& wrong : std::vector<std::vector<std::int64_t>>{
         {2, 2}, {5, 0}, {6, -1}, {1, 2, 2}}) {
    const auto e = caught([&] { scatter(on, x, {.extents = wrong}); });
    CHECK(e.code() == errc::invalid_argument);
    CHECK(says(e, "an axis of extent 5 and 2 devices"));
  }
}

TEST_CASE("what cannot be cut or joined is refused with its shapes") {
  const auto on = cpus(2);
  auto e = caught([&] { scatter(on, tensor_of({}, {1})); });
  CHECK(e.code() == errc::shape_mismatch);
  CHECK(says(e, "shape [] cannot be cut along axis 0"));
  CHECK(caught([&] { scatter(on, tensor{}); }).code()
        == errc::invalid_argument);
  e = caught([&] { gather(on, {counting({2, 2}), counting({1, 3})}); });
  CHECK(e.code() == errc::shape_mismatch);
  CHECK(says(e, "chunk 0 has shape [2, 2] and chunk 1 [1, 3]"));
  e = caught([&] {
    gather(on, {counting({1}), tensor_of<std::int64_t>({1}, {1})});
  });
  CHECK(e.code() == errc::dtype_mismatch);
  CHECK(caught([&] { gather(on, {}); }).code() == errc::invalid_argument);
  CHECK(caught([&] { gather(on, tensors(3, counting({1}))); }).code()
        == errc::invalid_argument);
  e = caught([&] { gather(on, tensors(2, counting({1})), 0, 2); });
  CHECK(e.code() == errc::invalid_argument);
  CHECK(says(e, "device number 2 of 2"));
}

TEST_CASE("functions without devices are refused") {
  const devices none;
  const auto x = counting({2});
  for (auto& e :
       {caught([&] { scatter(none, x); }), caught([&] { gather(none, {x}); }),
        caught([&] { broadcast(none, {x}); }),
        caught([&] { broadcast(none, {x}, 1); }),
        caught([&] { reduce_add(none, {x}, 1); }), caught([&] {
          scatter_nested(none, std::pair{x, 1});
        })})
    CHECK(e.code() == errc::invalid_argument);
}

TEST_CASE("the gradient of a broadcast is a sum in the order of devices") {
  const auto on = cpus(3);
  const auto x = counting({2}), y = counting({1}, 9);
  const auto copies = broadcast(on, {x, y});
  REQUIRE(copies.outputs.size() == 6);
  CHECK(distance(copies.outputs[4], x) == 0);
  CHECK(distance(copies.outputs[5], y) == 0);
  // In float32 the order matters: (1e8 + 1) + -1e8 is 0.
  const auto sums = copies.backward({tensor_of({2}, {1e8f, 1}), tensor{},
                                     tensor_of({2}, {1, 2}), tensor{},
                                     tensor_of({2}, {-1e8f, 3}), tensor{}});
  REQUIRE(sums.outputs.size() == 2);
  CHECK(values_of(sums.outputs[0]) == floats{0, 6});
  CHECK_FALSE(sums.outputs[1]);
  CHECK(broadcast(on, {x, y}, 2).outputs.size() == 4);
  // The gradient of the sum is a broadcast; what is missing stays so.
  const auto again = sums.backward({x, tensor{}});
  REQUIRE(again.outputs.size() == 6);
  CHECK(distance(again.outputs[4], x) == 0);
  CHECK_FALSE(again.outputs[5]);
  CHECK(values_of(again.backward(copies.outputs).outputs[0]) == floats{0, 3});
}

TEST_CASE("a kernel that writes a copy of a broadcast writes other memory") {
  const auto copies = broadcast(cpus(2), {counting({2})});
  for (auto& copy : copies.outputs)
    CHECK(copy.is_shared());
}

TEST_CASE("a sum over devices leaves its terms as they are, and its gradient "
          "is a broadcast") {
  const auto on = cpus(2);
  const tensors terms{counting({2}), counting({1}, 5), counting({2}, 10),
                      counting({1}, 6)};
  const auto sums = reduce_add(on, terms, 2);
  REQUIRE(sums.outputs.size() == 2);
  CHECK(values_of(sums.outputs[0]) == floats{10, 12});
  CHECK(values_of(sums.outputs[1]) == floats{11});
  CHECK(values_of(terms[0]) == floats{0, 1});
  CHECK(values_of(reduce_add(on, terms, 2, 1).outputs[1]) == floats{11});
  const auto back = sums.backward({counting({2}, 3), counting({1}, 4)});
  REQUIRE(back.outputs.size() == 4);
  CHECK(values_of(back.outputs[2]) == floats{3, 4});
  auto e = caught([&] { reduce_add(on, {terms[0], terms[1]}, 1); });
  CHECK(e.code() == errc::shape_mismatch);
  CHECK(caught([&] { reduce_add(on, terms, 3); }).code()
        == errc::invalid_argument);
  CHECK(caught([&] { reduce_add(on, terms, 2, 2); }).code()
        == errc::invalid_argument);
}

TEST_CASE("a function of one's own keeps values for its gradient, which can be "
          "differentiated") {
  // y = x^2, so dx = 2 x dy, of which the gradient is 2 x again.
  const auto times = [](float factor, const tensor& a, const tensor& b) {
    auto values = values_of(a);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] *= factor * values_of(b)[i];
    return tensor_of(a.dims(), values);
  };
  const auto square = [&](const tensor& x) {
    return differentiable{{times(1, x, x)}, [times, x](const tensors& dy) {
                            return differentiable{
                              {times(2, x, dy[0])},
                              [times, x](const tensors& ddx) {
                                return differentiable{{times(2, x, ddx[0])}};
                              }};
                          }};
  };
  const auto on = cpus(2);
  const auto cut = scatter(on, counting({3}, 1));
  tensors chunks, gradients;
  std::vector<differentiable> squares;
  for (auto& chunk : cut.outputs)
    squares.push_back(square(chunk));
  for (auto& s : squares)
    chunks.push_back(s.outputs[0]);
  const auto y = gather(on, chunks);
  CHECK(values_of(y.outputs[0]) == floats{1, 4, 9});
  const auto dy = y.backward({tensor_of({3}, {1, 1, 10})});
  for (std::size_t i = 0; i < 2; ++i)
    gradients.push_back(squares[i].backward({dy.outputs[i]}).outputs[0]);
  CHECK(values_of(cut.backward(gradients).outputs[0]) == floats{2, 4, 60});
  const auto second =
    squares[1].backward({dy.outputs[1]}).backward({tensor_of({1}, {5})});
  CHECK(values_of(second.outputs[0]) == floats{30});
}

TEST_CASE("nested values keep their containers, and all that is no tensor is "
          "copied") {
  using nested =
    std::tuple<tensor, std::vector<tensor>,
               std::map<std::string, std::pair<tensor, int>>, fields::sample,
               std::optional<tensor>, std::array<tensor, 1>, std::string>;
  const auto on = cpus(2);
  const nested value{counting({3}),
                     {counting({4, 1}), counting({3, 2})},
                     {{"b", {counting({3}, 30), 7}}},
                     {counting({3}, 60), "six", 0.5f},
                     std::nullopt,
                     {counting({3}, 90)},
                     "all"};
  const auto parts = scatter_nested(on, value);
  REQUIRE(parts.size() == 2);
  const auto& [x, list, map, sample, nothing, array, text] = parts[1];
  CHECK(values_of(x) == floats{2});
  CHECK(values_of(list[0]) == floats{2, 3});
  CHECK(values_of(list[1]) == floats{4, 5});
  CHECK(values_of(map.at("b").first) == floats{32});
  CHECK(map.at("b").second == 7);
  CHECK(values_of(sample.image) == floats{62});
  CHECK(sample.name == "six");
  CHECK(sample.weight == 0.5f);
  CHECK_FALSE(nothing);
  CHECK(values_of(array[0]) == floats{92});
  CHECK(text == "all");
  const auto whole = gather_nested(on, parts);
  CHECK(values_of(std::get<0>(whole)) == floats{0, 1, 2});
  CHECK(std::get<3>(whole).name == "six");
  CHECK(distance(std::get<1>(whole)[1], counting({3, 2})) == 0);
}

TEST_CASE("a value without tensors gives one part") {
  const auto parts = scatter_nested(cpus(2), std::pair{1, std::string{"a"}});
  REQUIRE(parts.size() == 1);
  CHECK(parts[0].second == "a");
}

TEST_CASE("tensors that give different numbers of chunks are refused with "
          "both shapes") {
  const auto e = caught([&] {
    scatter_nested(cpus(4), std::pair{counting({5, 1}), counting({4, 2})});
  });
  CHECK(e.code() == errc::shape_mismatch);
  CHECK(says(e, "tensor 0 of shape [5, 1] gives 3 chunks, tensor 1 of shape "
                "[4, 2] gives 4"));
}

TEST_CASE("maps with other keys, and lists of other sizes, are not gathered") {
  using map = std::map<std::string, tensor>;
  const auto on = cpus(2);
  const map one{{"a", counting({1})}};
  CHECK(gather_nested(on, std::vector<map>{one, one}).at("a").dims()
        == shape{2});
  for (auto& other : {map{{"b", counting({1})}},
                      map{{"a", counting({1})}, {"b", counting({1})}}})
    CHECK(caught([&] {
            gather_nested(on, std::vector<map>{one, other});
          }).code()
          == errc::invalid_argument);
  CHECK(caught([&] {
          gather_nested(on, std::vector<tensors>{{counting({1})}, {}});
        }).code()
        == errc::invalid_argument);
}

TEST_CASE("sequences are cut between samples, and joined with their levels") {
  const auto on = cpus(2);
  auto x = counting({5, 1});
  x.set_levels(std::make_shared<const lod>(lod{{0, 1, 3, 5}}));
  const auto cut = scatter(on, x);
  REQUIRE(cut.outputs.size() == 2);
  CHECK(cut.outputs[0].dims() == shape{3, 1});
  CHECK(cut.outputs[1].num_samples() == 1);
  const auto whole = gather(on, cut.outputs).outputs[0];
  CHECK(whole.num_samples() == 3);
  CHECK(distance(whole, x) == 0);
}

TEST_CASE("chunks go to devices whose memory the host cannot read, and come "
          "back") {
  const auto veiled = std::make_shared<veiled_device>();
  const auto on = std::make_shared<device_group>(
    std::vector<std::shared_ptr<device>>{make_cpu_device(0), veiled});
  const auto x = counting({3, 2});
  for (std::size_t axis : {0u, 1u}) {
    const auto cut = scatter(on, x, {axis});
    CHECK(cut.outputs[0].memory().is_host());
    CHECK(veiled->memory().owns(cut.outputs[1].memory()));
    CHECK(distance(gather(on, cut.outputs, axis).outputs[0], x) == 0);
    const auto there = gather(on, cut.outputs, axis, 1);
    CHECK(veiled->memory().owns(there.outputs[0].memory()));
    // Its gradient is cut there, and comes back to where the tensor lay.
    const auto dy = there.backward(there.outputs);
    CHECK(distance(cut.backward(dy.outputs).outputs[0], x) == 0);
    const auto again = scatter(on, there.outputs[0], {axis});
    CHECK(
      veiled->memory().owns(again.backward(again.outputs).outputs[0].memory()));
  }
}

TEST_CASE("devices are distinct and known") {
  CHECK(caught([] { device_group(std::vector<device_id>{}); }).code()
        == errc::invalid_argument);
  CHECK(caught([] { device_group(std::vector<device_id>(2)); }).code()
        == errc::invalid_argument);
  const device_group two{parse_devices("cpu:2")};
  CHECK(two.index_of({device_kind::cpu, 1}) == 1);
  const auto e = caught([&] { two.index_of({device_kind::cpu, 2}); });
  CHECK(e.code() == errc::not_found);
  CHECK(e.where().device == "cpu:2");
}

} // TEST_SUITE("training.data_parallel.functions")
