// The kernels that the board's device selects against the reference, bit by bit, on its processor:
// what they have in its own instructions no test on the host compiles. Prints "<operation> <batch>
// <in> <out> <one in so many is zero> same", or "differs".
#include <initializer_list>

#include RLT_DEVICE_HEADER
#include "rltools/core/random.h"
#include "terminal.h"

using namespace rlt;

namespace {

constexpr int kBatch = 20, kWidth = 100;
using Device = RLT_DEVICE;

float weights[kWidth * kWidth], bias[kWidth], input[kBatch * kWidth], gradient[kBatch * kWidth];
float expected[kWidth * kWidth], actual[kWidth * kWidth], expected_bias[kWidth],
    actual_bias[kWidth];
float moments[4][kWidth];

// Random values of which about one in `one_in` is zero, by turns 0 and -0; none where it is 0.
template <int Capacity>
void fill(float (&values)[Capacity], std::uint32_t stream, std::uint32_t one_in = 0) {
  for (int i = 0; i < Capacity; i++) {
    const auto index = static_cast<std::uint32_t>(i);
    values[i] = uniform<float>({42, Purpose::shuffle, stream}, index, -1.0f, 1.0f);
    const auto word = static_cast<std::uint32_t>(
        uniform<float>({43, Purpose::shuffle, stream}, index, 0.0f, 16777216.0f));
    if (one_in != 0 && word % one_in == 0) values[i] = word / one_in % 2 == 0 ? 0.0f : -0.0f;
  }
}

// With NaN equal to NaN: which one an operation gives is not defined.
bool same_number(float a, float b) {
  return (a != a && b != b) || math::to_bits(a) == math::to_bits(b);
}

bool same_numbers(const float* a, const float* b, int count) {
  for (int i = 0; i < count; i++) {
    if (!same_number(a[i], b[i])) return false;
  }
  return true;
}

// Of gradients the sign of a zero is unspecified (nn/dense.h).
bool same_gradients(const float* a, const float* b, int count) {
  for (int i = 0; i < count; i++) {
    if (!same_number(a[i] + 0.0f, b[i] + 0.0f)) return false;
  }
  return true;
}

void report(const char* operation, int batch, int in, int out, std::uint32_t one_in, bool same) {
  terminal::print(operation);
  for (const int number : {batch, in, out, static_cast<int>(one_in)}) {
    terminal::print(" ");
    terminal::print(static_cast<std::uint64_t>(number));
  }
  terminal::print(same ? " same\n" : " differs\n");
}

template <Activation A, int Batch, int In, int Out>
bool check_forward() {
  dense_forward<A, Batch, In, Out>(Generic{}, weights, bias, input, expected);
  dense_forward<A, Batch, In, Out>(Device{}, weights, bias, input, actual);
  return same_numbers(expected, actual, Batch * Out);
}

template <int Batch, int In, int Out>
void check_products(std::uint32_t one_in) {
  report("forward", Batch, In, Out, one_in,
         check_forward<Activation::relu, Batch, In, Out>() &&
             check_forward<Activation::identity, Batch, In, Out>());
  fill(expected, 5), fill(actual, 5), fill(expected_bias, 6), fill(actual_bias, 6);
  dense_backward_weights<Batch, In, Out>(Generic{}, input, gradient, expected, expected_bias);
  dense_backward_weights<Batch, In, Out>(Device{}, input, gradient, actual, actual_bias);
  report("backward_weights", Batch, In, Out, one_in,
         same_gradients(expected, actual, In * Out) &&
             same_gradients(expected_bias, actual_bias, Out));
  const float* none = nullptr;
  dense_backward_input<Activation::relu, Batch, In, Out>(Generic{}, weights, gradient, none, input,
                                                         expected);
  dense_backward_input<Activation::relu, Batch, In, Out>(Device{}, weights, gradient, none, input,
                                                         actual);
  report("backward_input", Batch, In, Out, one_in, same_gradients(expected, actual, Batch * In));
}

template <int Batch, int In, int Out>
void check_products() {
  for (const std::uint32_t one_in : {0u, 13u, 2u, 1u}) {
    fill(weights, 1), fill(bias, 2, one_in), fill(input, 3, one_in), fill(gradient, 4, one_in);
    check_products<Batch, In, Out>(one_in);
  }
}

// Zeros, the smallest numbers around the borders of the normal ones, the largest, and NaN, of
// either sign, as bits.
constexpr std::uint32_t kSpecial[] = {0x00000000, 0x00000001, 0x007fffff, 0x00800000, 0x7f7fffff,
                                      0x7f800000, 0x7f800001, 0x80000000, 0x80000001, 0x807fffff,
                                      0x80800000, 0xff7fffff, 0xff800000, 0xff800001};
constexpr int kSpecialCount = sizeof kSpecial / sizeof *kSpecial;

// Each special number in each of four neighboring places.
void fill_specials(float (&values)[kWidth]) {
  for (int i = 0; i < kWidth; i++) {
    values[i] = math::from_bits(kSpecial[(i + i / kSpecialCount) % kSpecialCount]);
  }
}

void check_relu() {
  constexpr int kCount = kWidth - 1;
  fill_specials(moments[0]), fill_specials(moments[1]), fill_specials(moments[2]);
  fill(expected, 8), fill(actual, 8);
  activation_backward<Activation::relu, kCount>(Generic{}, moments[0], moments[0], expected);
  activation_backward<Activation::relu, kCount>(Device{}, moments[0], moments[0], actual);
  bool same = __builtin_memcmp(expected, actual, sizeof expected) == 0;
  activation_forward<Activation::relu, kCount>(Generic{}, moments[0], moments[1]);
  activation_forward<Activation::relu, kCount>(Device{}, moments[0], moments[2]);
  same &= __builtin_memcmp(moments[1], moments[2], sizeof moments[1]) == 0;
  report("relu", 1, kCount, kCount, 0, same);
}

// `beta` 1 keeps moments as they are, but for those below the normal numbers.
void check_adam(float beta) {
  const AdamStep<float> step{beta, 1 - beta, beta, 1 - beta, 0.003f, 2.5f, 1e-8f};
  fill(moments[0], 9), fill_specials(moments[1]);
  for (int i = 0; i < kWidth / 2; i++) moments[0][i + 20] = moments[1][i];
  for (int i = 0; i < kWidth; i++) moments[2][i] = moments[0][i], moments[3][i] = moments[1][i];
  fill(gradient, 11, 2), fill(expected, 12), fill(actual, 12);
  adam_update<kWidth>(Generic{}, step, gradient, expected, moments[0], moments[1]);
  adam_update<kWidth>(Device{}, step, gradient, actual, moments[2], moments[3]);
  report("adam", 1, kWidth, kWidth, 2,
         same_numbers(expected, actual, kWidth) && same_numbers(moments[0], moments[2], kWidth) &&
             same_numbers(moments[1], moments[3], kWidth));
}

}  // namespace

int main() {
  board::initialize();
  terminal::wait_for_host();
  check_products<20, 64, 64>();
  check_products<20, 4, 64>();
  check_products<20, 64, 1>();
  check_products<1, 64, 64>();
  check_products<13, 100, 37>();
  check_products<9, 3, 100>();
  check_products<8, 100, 100>();
  check_products<3, 17, 16>();
  check_relu();
  check_adam(0.9f);
  check_adam(1.0f);
  terminal::finish();
}
