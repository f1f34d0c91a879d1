// training_loop ALGORITHM STEPS: a training run on Pendulum-v1 in one process, exactly as firmware
// does it but without link, screen and log, as JSON. `rlt bench train` compares `rlt train` with
// it, `rlt bench vertical` devices.
// Also training_loop_avx2 on x86: -mno-avx512f
// Also training_loop_scalar: -URLT_DEVICE -DRLT_DEVICE=Generic -fno-tree-vectorize
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#include "app/services/training/state_bytes.h"
#include "measuring.h"
#include "pendulum_sac.h"
#include "pendulum_td3.h"
#include "pendulum_xqc.h"
#include "rltools/rl/evaluation.h"
#include RLT_DEVICE_HEADER

namespace {

// As the firmware of the boards host and host-threads has it: a batch is worked through at once.
template <class E>
using Whole = rlt::WithTileRows<E, E::kBatchSize>;
template <class E>
using Trained = std::conditional_t<(rlt::WorkersOf<rlt::RLT_DEVICE>::kMaxParts > 1),
                                   rlt::WithSecondCriticScratch<Whole<E>>, Whole<E>>;

// Lanes of the device's vectors, in numbers of 32 bits.
constexpr int kLanes = std::is_base_of_v<rlt::HostSimd, rlt::RLT_DEVICE> ? rlt::kernels::kLanes : 1;

template <class E>
int run(std::uint32_t steps) {
  static rlt::Learner<E> learner;
  static rlt::Replay<E> replay;
  static rlt::Scratch<E> scratch;
  rlt::Training<E> training{{}, learner, replay, scratch};
  training.hyperparameters.steps = steps;
  rlt::initialize(rlt::RLT_DEVICE{}, training);
  const rlt::Seconds loop = rlt::timed([&] {
    while (!rlt::finished(training)) rlt::train_step(rlt::RLT_DEVICE{}, training);
  });
  rlt::EvaluationReport report{};
  const rlt::Seconds evaluation =
      rlt::timed([&] { report = rlt::evaluate(rlt::RLT_DEVICE{}, training); });
  // One every eval_freq steps, and one at the end where none falls there.
  const std::uint32_t every = training.hyperparameters.eval_freq;
  const std::uint32_t evaluations = steps / every + (steps % every != 0 ? 1 : 0);
  std::uint8_t digest[rlt::Sha256::kDigestBytes];
  rlt::hash_state(training, digest);
  std::printf(
      "{\"steps\": %u, \"wall_s\": %.9g, \"cpu_s\": %.9g, \"evaluations_s\": %.9g, "
      "\"return_mean\": %.9g, \"lanes\": %d, \"state_sha256\": \"",
      steps, loop.wall, loop.processor, evaluations * evaluation.processor,
      static_cast<double>(report.mean), kLanes);
  for (const std::uint8_t byte : digest) std::printf("%02x", byte);
  std::printf("\"}\n");
  return 0;
}

}  // namespace

int main(int argument_count, char** arguments) {
  const unsigned long steps = argument_count == 3 ? std::strtoul(arguments[2], nullptr, 10) : 0;
  if (steps > 0 && std::strcmp(arguments[1], "td3") == 0) {
    return run<Trained<rlt::PendulumTd3>>(static_cast<std::uint32_t>(steps));
  }
  if (steps > 0 && std::strcmp(arguments[1], "sac") == 0) {
    return run<Trained<rlt::PendulumSac>>(static_cast<std::uint32_t>(steps));
  }
  if (steps > 0 && std::strcmp(arguments[1], "xqc") == 0) {
    return run<Trained<rlt::PendulumXqc>>(static_cast<std::uint32_t>(steps));
  }
  std::fprintf(stderr, "usage: training_loop td3|sac|xqc STEPS\n");
  return 2;
}
