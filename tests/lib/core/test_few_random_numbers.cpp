// core/random.h: a few numbers at once, without a loop, are those that are drawn one by one.
#include <doctest/doctest.h>

#include "rltools/core/random.h"

namespace {

using namespace rlt;

constexpr RandomStream kStream{12345u, Purpose::exploration, 678u, 9u};

template <int Count>
void check_few() {
  CAPTURE(Count);
  float few_normals[Count], few_uniforms[Count];
  standard_normals(kStream, few_normals);
  uniforms(kStream, few_uniforms, -2.0f, 3.0f);
  for (int i = 0; i < Count; ++i) {
    const auto index = static_cast<std::uint32_t>(i);
    CHECK(few_normals[i] == standard_normal<float>(kStream, index));
    CHECK(few_uniforms[i] == uniform(kStream, index, -2.0f, 3.0f));
  }
}

}  // namespace

TEST_CASE("a few numbers at once are those that are drawn one by one") {
  check_few<1>();
  check_few<2>();
  check_few<3>();
  check_few<4>();
  check_few<5>();
  check_few<7>();
  check_few<12>();
  check_few<17>();
}
