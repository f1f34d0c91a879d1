// recurrent REPETITIONS: forward passes and backpropagation through time of 22-16-GRU16-4 over
// windows, as PPO learns from them, as JSON: nanoseconds a step of one window, taking turns with
// the core's multiply-add peak. `rlt bench layers` pins this program to a core and evaluates what
// it prints.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "measuring.h"
#include "multiply_add_peak.h"
#include "rltools/nn/window_passes.h"
#include RLT_DEVICE_HEADER

namespace {

using namespace rlt;

using Network =
    Sequential<float, 22, Dense<16, Activation::relu>, Gru<16>, Dense<4, Activation::identity>>;
constexpr int kWindows = 32, kSteps = 16, kRows = kWindows * kSteps;
constexpr double kPeakSeconds = 0.02, kPassSeconds = 0.02;  // of one repetition

// Multiply-adds of a step: weights only, and no gradient of the input.
constexpr int kForward = 22 * 16 + 2 * 16 * 48 + 16 * 4, kBoth = 3 * kForward - 22 * 16;

struct Pass {
  HostSimd device;  // what the tag Host selects, with whichever board this is built for
  Network network, gradient;
  Matrix<float, kRows, 22> input;
  Matrix<float, kRows, 4> output, slope, output_gradient;
  Matrix<float, kWindows, 16> state;
  std::uint8_t begins[kRows];
  WindowBuffer<Network, kWindows, kSteps> buffer;
  WindowGradientBuffer<float, kWindows, kSteps, 16, 16> scratch;

  Pass() {
    initialize_kaiming(device, network, 1, 0);
    fill_uniform(device, {1, Purpose::shuffle, 1}, input.data(), kRows * 22, -1.0f, 1.0f);
    fill_uniform(device, {1, Purpose::shuffle, 2}, slope.data(), kRows * 4, -1.0f, 1.0f);
    for (float& value : state.values) value = 0.0f;
    for (int row = 0; row < kRows; row++) begins[row] = row % 200 == 199;
  }
  void forward() { forward_windows(device, network, input, begins, state, output, buffer); }
  void both() {
    forward();
    output_gradient = slope;
    set_zero(gradient);
    backward_windows(device, network, input, begins, output, buffer, output_gradient.data(),
                     gradient, nullptr, nullptr, scratch);
  }
};

// Nanoseconds a step of one window.
template <class Run>
double step_ns(Run&& run) {
  return 1e9 / kRows * seconds_per_run(kPassSeconds / 2, run);
}

}  // namespace

int main(int argument_count, char** arguments) {
  const int repetitions = argument_count == 2 ? std::atoi(arguments[1]) : 0;
  if (repetitions < 1) {
    std::fprintf(stderr, "usage: recurrent REPETITIONS\n");
    return 2;
  }
  const auto pass = std::make_unique<Pass>();
  std::vector<double> peaks, forward, both;
  for (int repetition = 0; repetition < repetitions; repetition++) {
    peaks.push_back(multiply_add_peak::peak_gflops(kPeakSeconds));
    forward.push_back(step_ns([&] { pass->forward(); }));
    both.push_back(step_ns([&] { pass->both(); }));
  }
  std::printf("{\"network\": \"22-16-GRU16-4\", \"windows\": %d, \"steps\": %d", kWindows, kSteps);
  std::printf(", \"lanes\": %d, \"forward_multiply_adds\": %d, \"multiply_adds\": %d, ",
              kernels::kLanes, kForward, kBoth);
  print_list("peak_gflops", peaks);
  std::printf(", ");
  print_list("forward_ns", forward);
  std::printf(", ");
  print_list("step_ns", both);
  std::printf("}\n");
  return 0;
}
