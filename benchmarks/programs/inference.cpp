// inference CASE REPETITIONS: latency of one forward pass of a 13-64-64-4 policy and time per
// sample in batches, as JSON. CASE is a file of floats: the parameters in the order of Mlp::values,
// then kBatch inputs. `rlt bench inference` pins this program to a core and compares.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "measuring.h"
#include "rltools/nn/mlp.h"
#include RLT_DEVICE_HEADER

namespace {

using Network = rlt::Mlp<float, rlt::Dimensions<13, 64, 64, 4>, rlt::Activation::relu,
                         rlt::Activation::identity>;
constexpr int kBatch = 256;
constexpr double kSeconds = 0.02;  // of one repetition

template <int Rows>
struct Pass {
  Network network;
  rlt::Matrix<float, Rows, Network::kInputDim> input;
  rlt::Matrix<float, Rows, Network::kOutputDim> output;
  rlt::MlpBuffer<Network, Rows> buffer;

  // A call, as in a control loop: inlined, compilers keep weights for what comes after the loop.
  [[gnu::noinline]] void run() { forward(rlt::RLT_DEVICE{}, network, input, output, buffer); }
};

// Nanoseconds of a pass. Each takes a first input that depends on the last output, so that one
// begins where the one before has ended; a tiny factor keeps the numbers as they are.
template <int Rows>
double pass_ns(Pass<Rows>& pass) {
  const volatile float tiny = 1e-30f;
  const float factor = tiny, first = pass.input(0, 0);
  const double pass_s = rlt::seconds_per_run(kSeconds / 2, [&] {
    pass.input(0, 0) = first + factor * pass.output(Rows - 1, Network::kOutputDim - 1);
    pass.run();
  });
  pass.input(0, 0) = first;
  return 1e9 * pass_s;
}

bool read_floats(std::FILE* file, float* destination, std::size_t count) {
  return std::fread(destination, sizeof(float), count, file) == count;
}

}  // namespace

int main(int argument_count, char** arguments) {
  const int repetitions = argument_count == 3 ? std::atoi(arguments[2]) : 0;
  std::FILE* file = repetitions > 0 ? std::fopen(arguments[1], "rb") : nullptr;
  if (file == nullptr) {
    std::fprintf(stderr, "usage: inference CASE REPETITIONS\n");
    return 2;
  }
  auto single = std::make_unique<Pass<1>>();
  auto batched = std::make_unique<Pass<kBatch>>();
  constexpr std::size_t kParameters = Network::kParameterCount;
  const bool read = read_floats(file, batched->network.values, kParameters) &&
                    read_floats(file, batched->input.values, kBatch * Network::kInputDim);
  std::fclose(file);
  if (!read) {
    std::fprintf(stderr, "%s is too short\n", arguments[1]);
    return 1;
  }
  single->network = batched->network;
  std::copy_n(batched->input.values, Network::kInputDim, single->input.values);

  std::vector<double> latencies, batches;
  for (int repetition = 0; repetition < repetitions; repetition++) {
    latencies.push_back(pass_ns(*single));
    batches.push_back(pass_ns(*batched) / kBatch);
  }
  std::printf("{\"latency_ns\": %.9g, \"batched_ns\": %.9g, \"batch\": %d, \"output\": [",
              rlt::median(latencies), rlt::median(batches), kBatch);
  single->run();
  batched->run();
  const bool agree = std::equal(single->output.values, single->output.values + Network::kOutputDim,
                                batched->output.values);
  for (int i = 0; i < kBatch * Network::kOutputDim; i++) {
    std::printf("%s%.9g", i ? ", " : "", static_cast<double>(batched->output.values[i]));
  }
  std::printf("], \"same_bits\": %s}\n", agree ? "true" : "false");
  return 0;
}
