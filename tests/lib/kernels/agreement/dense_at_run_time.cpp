// The checks of dense_at_run_time_agreement.h.
#include "dense_at_run_time_agreement.h"

#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "rltools/core/random.h"
#include "rltools/nn/dense.h"
#include "rltools/nn/window_passes.h"

namespace dense_at_run_time_agreement {
namespace {

// About one in `one_in` is zero, by turns 0 and -0; none where it is 0.
std::vector<float> values(int count, std::uint32_t stream, std::uint32_t one_in = 0) {
  std::vector<float> result(static_cast<std::size_t>(count));
  for (std::uint32_t i = 0; i < result.size(); i++) {
    const std::uint32_t word = random_word({43, Purpose::shuffle, stream}, i) >> 8;
    result[i] = uniform<float>({42, Purpose::shuffle, stream}, i, -1.0f, 1.0f);
    if (one_in != 0 && word % one_in == 0) result[i] = word / one_in % 2 == 0 ? 0.0f : -0.0f;
  }
  return result;
}

// As the reference of nn/dense.h has it, for shapes that only a loop can go through.
std::vector<float> expected_output(Activation activation, int in, int out,
                                   const std::vector<float>& weights,
                                   const std::vector<float>& bias,
                                   const std::vector<float>& input) {
  std::vector<float> output(bias);
  for (int o = 0; o < out; o++) {
    float& sum = output[static_cast<std::size_t>(o)];
    for (int i = 0; i < in; i++) {
      sum = math::fma(input[static_cast<std::size_t>(i)],
                      weights[static_cast<std::size_t>(i * out + o)], sum);
    }
    sum += 0.0f;
    switch (activation) {
      case Activation::identity: break;
      case Activation::relu: sum = activation_value<Activation::relu>(sum); break;
      case Activation::gelu: sum = activation_value<Activation::gelu>(sum); break;
      case Activation::tanh: sum = activation_value<Activation::tanh>(sum); break;
      case Activation::sigmoid: sum = activation_value<Activation::sigmoid>(sum); break;
      case Activation::softplus: sum = activation_value<Activation::softplus>(sum); break;
      case Activation::elu: sum = activation_value<Activation::elu>(sum); break;
      case Activation::silu: sum = activation_value<Activation::silu>(sum); break;
      case Activation::hardtanh: sum = activation_value<Activation::hardtanh>(sum); break;
    }
  }
  return output;
}

constexpr float kUntouched = 12345.0f;

void check(Kernel kernel, Activation activation, int in, int out, std::uint32_t one_in) {
  CAPTURE(static_cast<int>(activation));
  CAPTURE(in);
  CAPTURE(out);
  CAPTURE(one_in);
  const auto weights = values(in * out, 1), bias = values(out, 2, one_in);
  const auto input = values(in, 3, one_in);
  const auto expected = expected_output(activation, in, out, weights, bias, input);
  std::vector<float> actual(static_cast<std::size_t>(out) + 1, kUntouched);
  kernel(activation, in, out, weights.data(), bias.data(), input.data(), actual.data());
  CHECK(std::memcmp(actual.data(), expected.data(), expected.size() * sizeof(float)) == 0);
  CHECK(actual.back() == kUntouched);
}

}  // namespace

void check_shapes(Kernel kernel) {
  for (const int in : {1, 2, 3, 13, 16, 17, 63, 64, 65, 100, 128, 131, 192}) {
    for (const int out : {1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 24, 31, 33, 63, 64, 65, 100, 143}) {
      for (const std::uint32_t one_in : {0u, 13u, 2u, 1u}) {
        check(kernel, Activation::relu, in, out, one_in);
        check(kernel, Activation::identity, in, out, one_in);
      }
    }
  }
  for (const Activation activation :
       {Activation::gelu, Activation::tanh, Activation::sigmoid, Activation::softplus,
        Activation::elu, Activation::silu, Activation::hardtanh}) {
    for (const int out : {1, 4, 19, 80}) check(kernel, activation, 21, out, 0);
  }
}

namespace {

template <Activation A, int In, int Out>
void check_compiled(Kernel kernel) {
  const auto weights = values(In * Out, 4), bias = values(Out, 5), input = values(In, 6, 2);
  std::vector<float> expected(Out), actual(Out);
  dense_forward<A, 1, In, Out>(Generic{}, weights.data(), bias.data(), input.data(),
                               expected.data());
  kernel(A, In, Out, weights.data(), bias.data(), input.data(), actual.data());
  CHECK(std::memcmp(actual.data(), expected.data(), Out * sizeof(float)) == 0);
}

}  // namespace

void check_compiled(Kernel kernel) {
  check_compiled<Activation::relu, 13, 64>(kernel);
  check_compiled<Activation::tanh, 64, 4>(kernel);
}

namespace {

// Inputs are zero by turns; at some steps they are so large that sigmoids are clamped.
template <int In, int Width>
void check_recurrent(RecurrentKernel kernel) {
  CAPTURE(In);
  CAPTURE(Width);
  using Network = Sequential<float, In, Gru<Width>>;
  constexpr int kSteps = 12;
  Network network;
  initialize_kaiming(Generic{}, network, 11, 0);
  const auto inputs = values(kSteps * In, 7, 5);
  WindowBuffer<Network, 1, 1> buffer;
  Matrix<float, 1, Width> expected_state{}, expected;
  float state[Width] = {}, output[Width + 1];
  output[Width] = kUntouched;
  for (int step = 0; step < kSteps; step++) {
    Matrix<float, 1, In> input;
    for (int i = 0; i < In; i++) {
      input.values[i] =
          (step % 4 == 3 ? 300.0f : 3.0f) * inputs[static_cast<std::size_t>(step * In + i)];
    }
    forward_step(Generic{}, network, input, expected_state, expected, buffer);
    kernel(In, Width, network.values, input.values, state, output);
    CHECK(std::memcmp(output, expected.values, sizeof(expected.values)) == 0);
    CHECK(std::memcmp(state, expected_state.values, sizeof(state)) == 0);
  }
  CHECK(output[Width] == kUntouched);
}

}  // namespace

void check_recurrent(RecurrentKernel kernel) {
  check_recurrent<1, 1>(kernel);
  check_recurrent<2, 32>(kernel);
  check_recurrent<5, 7>(kernel);
  check_recurrent<16, 16>(kernel);
  check_recurrent<65, 65>(kernel);
}

namespace {

// A step of torch.nn.LSTM; of double precision without the core's order of additions.
template <class T>
void lstm_step(int in, int width, const float* parameters, const float* input, std::vector<T>& h,
               std::vector<T>& c) {
  const RecurrentParameters p = recurrent_parameters(kLstmGates, in, width, parameters);
  const int columns = kLstmGates * width;
  std::vector<T> gates;
  for (int column = 0; column < columns; column++) {
    T x = p.bias[column], u = p.hidden_bias[column];
    for (int i = 0; i < in; i++) x = math::fma(T{input[i]}, T{p.weights[i * columns + column]}, x);
    for (int i = 0; i < width; i++) {
      const T weight = p.hidden_weights[i * columns + column];
      u = math::fma(h[static_cast<std::size_t>(i)], weight, u);
    }
    const bool is_candidate = column / width == 2;
    gates.push_back(is_candidate ? math::tanh(x + u) : math::sigmoid(x + u));
  }
  for (std::size_t i = 0, w = static_cast<std::size_t>(width); i < w; i++) {
    c[i] = math::fma(gates[w + i], c[i], gates[i] * gates[2 * w + i]) + T{0};
    h[i] = gates[3 * w + i] * math::tanh(c[i]) + T{0};
  }
}

void check_lstm(RecurrentKernel kernel, int in, int width) {
  CAPTURE(in);
  CAPTURE(width);
  constexpr int kSteps = 12;
  const auto w = static_cast<std::size_t>(width);
  auto parameters = values(kLstmGates * width * (in + width + 2), 8);
  for (float& each : parameters) each *= 0.7f;
  const auto inputs = values(kSteps * in, 9, 5);
  std::vector<float> h(w, 0.0f), c(w, 0.0f), state(2 * w, 0.0f), output(w + 1, kUntouched);
  std::vector<double> exact_h(w, 0.0), exact_c(w, 0.0);
  for (int step = 0; step < kSteps; step++) {
    std::vector<float> input(inputs.begin() + step * in, inputs.begin() + (step + 1) * in);
    for (float& each : input) each *= step % 4 == 3 ? 300.0f : 1.0f;  // whose sigmoids are clamped
    lstm_step(in, width, parameters.data(), input.data(), h, c);
    lstm_step(in, width, parameters.data(), input.data(), exact_h, exact_c);
    kernel(in, width, parameters.data(), input.data(), state.data(), output.data());
    CHECK(std::memcmp(output.data(), h.data(), w * sizeof(float)) == 0);
    CHECK(std::memcmp(state.data(), h.data(), w * sizeof(float)) == 0);
    CHECK(std::memcmp(state.data() + w, c.data(), w * sizeof(float)) == 0);
    for (std::size_t i = 0; i < w; i++) {
      CHECK(double{state[i]} == doctest::Approx(exact_h[i]).epsilon(1e-4).scale(1e-1));
      CHECK(double{state[w + i]} == doctest::Approx(exact_c[i]).epsilon(1e-4).scale(1e-1));
    }
  }
  CHECK(output[w] == kUntouched);
}

}  // namespace

void check_lstm(RecurrentKernel kernel) {
  check_lstm(kernel, 1, 1);
  check_lstm(kernel, 2, 32);
  check_lstm(kernel, 5, 7);
  check_lstm(kernel, 16, 16);
  check_lstm(kernel, 65, 65);
}

void check_infinite_numbers(Kernel kernel) {
  for (const float value :
       {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::quiet_NaN()}) {
    for (const int out : {1, 4, 16, 70}) {
      const std::vector<float> weights(static_cast<std::size_t>(66 * out), 0.0f);
      const std::vector<float> bias(static_cast<std::size_t>(out), 1.0f);
      std::vector<float> input(66, 0.0f), output(static_cast<std::size_t>(out));
      input[65] = value;
      for (const Activation activation : {Activation::relu, Activation::tanh}) {
        kernel(activation, 66, out, weights.data(), bias.data(), input.data(), output.data());
        for (const float result : output) CHECK(result != result);
      }
    }
  }
}

}  // namespace dense_at_run_time_agreement
