// The error of every float function of core/math.h over all 2^32 floats, against the C library in
// double precision. Prints for each its largest error in ulp (as ulp_error.h defines it) and the
// argument there; exits with 1 if one is above 2 ulp.
//
// From the repository's root, about 10 minutes on one core; naming functions checks only those:
//   g++ -std=c++17 -O3 -march=native -ffp-contract=off -fno-math-errno -fno-trapping-math
//     -Ilib/rltools/include tests/lib/core/exhaustive_math.cpp -o build/exhaustive_math
//   build/exhaustive_math [exp log log1p tanh sigmoid elu softplus erf sin cos]
#include <chrono>
#include <cstdio>

#include "ulp_error.h"

namespace {

using namespace ulp_error;

struct Worst {
  double ulp = -1.0;
  float argument = 0.0f;
};

Worst worst_over_all_floats(const Function& function) {
  constexpr int kBlock = 4096;
  static float x[kBlock], y[kBlock];
  Worst worst;
  for (std::uint64_t first = 0; first < (std::uint64_t{1} << 32); first += kBlock) {
    for (int i = 0; i < kBlock; ++i) {
      x[i] =
          rlt::math::from_bits(static_cast<std::uint32_t>(first) + static_cast<std::uint32_t>(i));
    }
    function.apply(x, y, kBlock);
    for (int i = 0; i < kBlock; ++i) {
      const double error = ulp_error::ulp_error(y[i], function.exact(static_cast<double>(x[i])));
      if (error > worst.ulp) worst = {error, x[i]};
    }
  }
  return worst;
}

bool chosen(const Function& function, int argument_count, char** arguments) {
  for (int i = 1; i < argument_count; ++i) {
    if (std::strcmp(function.name, arguments[i]) == 0) return true;
  }
  return argument_count <= 1;
}

}  // namespace

int main(int argument_count, char** arguments) {
  int checked = 0;
  bool good = true;
  std::printf("%-9s %10s  %-22s %8s\n", "function", "worst ulp", "at", "seconds");
  for (const Function& function : kFunctions) {
    if (!chosen(function, argument_count, arguments)) continue;
    ++checked;
    const auto start = std::chrono::steady_clock::now();
    const Worst worst = worst_over_all_floats(function);
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    const bool within = worst.ulp <= kLargestAllowed;
    good = good && within;
    std::printf("%-9s %10.4f  %-22a %8.1f%s\n", function.name, worst.ulp,
                static_cast<double>(worst.argument), elapsed.count(), within ? "" : "  TOO LARGE");
    std::fflush(stdout);
  }
  if (checked == 0) std::fprintf(stderr, "No function of that name.\n");
  return good && checked > 0 ? 0 : 1;
}
