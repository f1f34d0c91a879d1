// The text that names the state and the action of a step that is not finite: its numbers, and where
// it is cut.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>

#include "app/services/training/non_finite_text.h"

using namespace rlt;

namespace {

std::string written(float value) { return NumberText(value).text(); }

}  // namespace

TEST_CASE("any float, to six digits") {
  std::mt19937 random(1);
  std::size_t longest = 0;
  for (int i = 0; i < 200000; i++) {
    const auto bits = static_cast<std::uint32_t>(random());
    float value;
    std::memcpy(&value, &bits, sizeof value);
    if (!std::isfinite(value)) continue;
    const std::string text = written(value);
    longest = std::max(longest, text.size());
    const double size = std::abs(static_cast<double>(value));
    const double error = std::abs(std::strtod(text.c_str(), nullptr) - static_cast<double>(value));
    CAPTURE(text);
    REQUIRE(error <= 6.1e-6 * size + 1e-50);
  }
  CHECK(longest <= 12);
}

namespace {

using Vector = float[30];
#define MANY_FIELDS(X) X(std::uint8_t, mode) X(std::uint32_t, steps) X(double, time_s) X(Vector, v)
RLT_DEFINE_FIELDS(Many, MANY_FIELDS)

}  // namespace

TEST_CASE("fields of every kind, and a state that is too long") {
  Many many{7, 12, 0.5, {1.0f, -2.0f}};
  NonFiniteText text;
  detail::AddFields<NonFiniteText> fields{text};
  many.for_each_field(fields);
  const std::string begins = " mode 7, steps 12, time_s 0.5, v 1 -2 0 0";
  CHECK(std::string(text.text()).substr(0, begins.size()) == begins);
  for (float& value : many.v) value = -1.23456e-20f;
  NonFiniteText longer;
  detail::AddFields<NonFiniteText> again{longer};
  many.for_each_field(again);
  const std::string cut = longer.text();
  CHECK(cut.size() <= kNonFiniteTextBytes);
  CHECK(cut.size() > kNonFiniteTextBytes - 16);
  CHECK(cut.substr(cut.size() - 16) == "-1.23456e-20 ...");
}
