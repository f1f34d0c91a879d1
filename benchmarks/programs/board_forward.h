// The program behind `rlt bench inference --board`: what one forward pass of 13-64-64-4 costs on a
// board, by three implementations and as a policy image, whose shape is known at run time only.
// Asks for a byte, then prints a JSON object for each, and an empty one at the end. The last layer
// is tanh; hidden layers are ReLU or tanh.
#pragma once

#include RLT_DEVICE_HEADER

#include "board_api.h"
#include "rltools/nn/mlp.h"
#include "rltools/policy/image.h"
#include "rltools/policy/runtime.h"

#if defined(RLT_CMSIS_DSP)
#include "dsp/matrix_functions.h"
#endif

namespace rlt {

namespace forward_benchmark {

constexpr int kIn = 13, kHidden = 64, kOut = 4;
template <Activation Hidden>
using Network = Mlp<float, Dimensions<kIn, kHidden, kHidden, kOut>, Hidden, Activation::tanh>;

// -- text -----------------------------------------------------------------------------------------

inline void print(const char* text) {
  board::write(reinterpret_cast<const std::uint8_t*>(text), __builtin_strlen(text));
}
inline void print(std::uint64_t number) {
  char text[24];
  char* first = text + sizeof(text);
  *--first = '\0';
  do {
    *--first = static_cast<char>('0' + number % 10);
    number /= 10;
  } while (number > 0);
  print(first);
}

// -- one pass by each -----------------------------------------------------------------------------

#if defined(RLT_CMSIS_DSP)
// As its users write a layer: a matrix times a vector, the bias, the activation.
template <Activation A, int In, int Out>
void dsp_layer(const float* transposed, const float* bias, const float* input, float* output) {
  arm_matrix_instance_f32 matrix{Out, In, const_cast<float*>(transposed)};
  arm_mat_vec_mult_f32(&matrix, input, output);
  for (int o = 0; o < Out; o++) output[o] = activation_value<A>(output[o] + bias[o]);
}
// The same with the general product, of a matrix and one column.
template <Activation A, int In, int Out>
void dsp_product_layer(const float* transposed, const float* bias, const float* input,
                       float* output) {
  const arm_matrix_instance_f32 matrix{Out, In, const_cast<float*>(transposed)};
  const arm_matrix_instance_f32 column{In, 1, const_cast<float*>(input)};
  arm_matrix_instance_f32 result{Out, 1, output};
  arm_mat_mult_f32(&matrix, &column, &result);
  for (int o = 0; o < Out; o++) output[o] = activation_value<A>(output[o] + bias[o]);
}
#endif

struct Place {
  static constexpr const char* kName = "benchmark";
  static constexpr Channel kElement = {"element", "1", -1.0f, 1.0f};
};

// Everything that a measurement needs; static, as a stack may be small.
template <Activation Hidden>
struct Bench {
  Network<Hidden> network;
  float transposed[Network<Hidden>::kParameterCount];  // the weights of each layer (out, in)
  Matrix<float, 1, kIn> input;
  Matrix<float, 1, kOut> output, expected;
  MlpBuffer<Network<Hidden>, 1> buffer;
  Channel observations[kIn], actions[kOut];
  alignas(4) std::uint8_t image[policy_image_bytes<Network<Hidden>>()];
  float scratch[4 * kHidden];
  float hidden[2][kHidden];
};

// With weights that are all positive no unit of a ReLU is zero; with random ones about half are.
template <Activation Hidden>
void initialize(Bench<Hidden>& bench, bool without_zeros) {
  initialize_kaiming(Generic{}, bench.network, 7, 0);
  for (int i = 0; i < kIn; i++) {
    bench.input.values[i] =
        uniform<float>({1, Purpose::shuffle, 0}, static_cast<std::uint32_t>(i), -1.0f, 1.0f);
  }
  if (without_zeros) {
    for (float& value : bench.network.values) value = math::absolute(value);
    for (float& value : bench.input.values) value = math::absolute(value);
  }
  float* transposed = bench.transposed;
  for (int layer = 0; layer < 3; layer++) {
    const int in = Network<Hidden>::input_dim(layer), out = Network<Hidden>::output_dim(layer);
    for (int i = 0; i < in; i++) {
      for (int o = 0; o < out; o++) {
        transposed[o * in + i] = bench.network.weights(layer)[i * out + o];
      }
    }
    transposed += in * out;
  }
}

struct Cost {
  std::uint64_t counts;
  std::uint32_t output_crc32;
};

// The second of two passes: the first one warms caches up, where there are some.
template <class Pass>
Cost cost_of(const float* output, Pass&& pass) {
  pass();
  const std::uint64_t begin = board::counter();
  pass();
  const std::uint64_t end = board::counter();
  return {end - begin, crc32(output, kOut * sizeof(float))};
}

template <Activation Hidden>
void report(const Bench<Hidden>& bench, const char* input, const char* implementation, Cost cost,
            Cost nothing) {
  float difference = 0;
  for (int i = 0; i < kOut; i++) {
    difference = math::maximum(difference,
                               math::absolute(bench.output.values[i] - bench.expected.values[i]));
  }
  print("{\"hidden\": \"");
  print(Hidden == Activation::relu ? "relu" : "tanh");
  print("\", \"input\": \"");
  print(input);
  print("\", \"implementation\": \"");
  print(implementation);
  print("\", \"counts\": ");
  print(cost.counts - nothing.counts);
  print(", \"output_crc32\": ");
  print(cost.output_crc32);
  print(", \"difference_1e9\": ");
  print(static_cast<std::uint64_t>(difference * 1e9f));
  print("}\n");
}

template <Activation Hidden>
void measure(Bench<Hidden>& bench, const char* name, bool without_zeros) {
  initialize(bench, without_zeros);
  float* const output = bench.output.values;
  const auto run = [&](const char* implementation, auto&& pass) {
    const Cost nothing = cost_of(output, [] {});
    report(bench, name, implementation, cost_of(output, pass), nothing);
  };
  forward(Generic{}, bench.network, bench.input, bench.expected, bench.buffer);
  run("generic",
      [&] { forward(Generic{}, bench.network, bench.input, bench.output, bench.buffer); });
#if defined(RLT_CMSIS_DSP)
  const auto dsp = [&](auto&& first, auto&& second, auto&& last) {
    const float* weights = bench.transposed;
    first(weights, bench.network.bias(0), bench.input.values, bench.hidden[0]);
    weights += kIn * kHidden;
    second(weights, bench.network.bias(1), bench.hidden[0], bench.hidden[1]);
    weights += kHidden * kHidden;
    last(weights, bench.network.bias(2), bench.hidden[1], output);
  };
  run("cmsis-dsp arm_mat_vec_mult_f32", [&] {
    dsp(dsp_layer<Hidden, kIn, kHidden>, dsp_layer<Hidden, kHidden, kHidden>,
        dsp_layer<Activation::tanh, kHidden, kOut>);
  });
  run("cmsis-dsp arm_mat_mult_f32", [&] {
    dsp(dsp_product_layer<Hidden, kIn, kHidden>, dsp_product_layer<Hidden, kHidden, kHidden>,
        dsp_product_layer<Activation::tanh, kHidden, kOut>);
  });
#endif
  run("optimized",
      [&] { forward(RLT_DEVICE{}, bench.network, bench.input, bench.output, bench.buffer); });

  for (Channel& channel : bench.observations) channel = Place::kElement;
  for (Channel& channel : bench.actions) channel = Place::kElement;
  const PolicyContract contract{2000, kIn, kOut, bench.observations, bench.actions};
  constexpr std::uint8_t kNoState[32] = {};
  write_policy_image(RLT_DEVICE{}, bench.network, contract, PolicyNormalizer{nullptr, nullptr},
                     PolicyOrigin{Place::kName, Place::kName, 0, 0, 0, kNoState}, bench.image);
  PolicyView view;
  if (!parse_policy(bench.image, sizeof(bench.image), view).accepted()) return;
  run("policy image", [&] {
    policy_forward(RLT_DEVICE{}, view, bench.input.values, nullptr, output, bench.scratch);
  });
}

}  // namespace forward_benchmark

namespace program {

// One after another, as memory is scarce.
inline union {
  forward_benchmark::Bench<Activation::relu> relu;
  forward_benchmark::Bench<Activation::tanh> tanh;
} benches;

inline void run() {
  using namespace forward_benchmark;
  board::initialize();
  std::uint8_t byte;
  while (board::read(&byte, 1) == 0) {
    print("?");
    board::idle();
  }
  measure(benches.relu, "half of the hidden units zero", false);
  measure(benches.relu, "no zeros", true);
  measure(benches.tanh, "no zeros", false);
  print("{}\n");
  while (!board::should_exit()) board::idle();
}

}  // namespace program
}  // namespace rlt
