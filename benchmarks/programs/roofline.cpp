// roofline STEPS REPETITIONS BUFFER_MB: where TD3 on Pendulum-v1 stands against the core that it
// runs on (Williams, Waterman and Patterson 2009), as JSON. Measures in turn the core's
// multiply-add peak, a training run as it is, and a training run that reads the clock between its
// phases; the phases give shares, the run without clocks gives the time. `rlt bench roofline` pins
// this program to a core and evaluates what it prints.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "app/services/training/state_bytes.h"
#include "measuring.h"
#include "pendulum_td3.h"
#include "rltools/kernels/simd/vector.h"
#include RLT_DEVICE_HEADER

namespace rlt {

namespace roofline {

// As firmware/app/train/trained_experiment.h does where memory is plenty.
using Experiment = WithTileRows<PendulumTd3, PendulumTd3::kBatchSize>;

// ---- Phases -------------------------------------------------------------------------------------

enum Phase {
  kAct,
  kSimulate,
  kSample,
  kTargetValues,
  kCriticForward,
  kCriticBackward,
  kActor,
  kOptimizer,
  kTargets,
  kOutside,
  kPhaseCount = kOutside
};

constexpr const char* kPhaseNames[kPhaseCount] = {
    "act",   "simulate",  "sample", "target values", "critic forward", "critic backward",
    "actor", "optimizer", "targets"};

inline std::uint64_t ticks() {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#else
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
}

// Charges the time since the last change to the phase that it was spent in.
struct Profile {
  std::uint64_t spent[kPhaseCount + 1] = {};  // in the present step
  Phase phase = kOutside;
  std::uint64_t since = ticks();

  Phase enter(Phase next) {
    const std::uint64_t now = ticks();
    spent[phase] += now - since;
    since = now;
    const Phase previous = phase;
    phase = next;
    return previous;
  }
};

Profile profile;

// A phase until the end of the block, then the one before again.
class Section {
 public:
  explicit Section(Phase phase) : previous_(profile.enter(phase)) {}
  ~Section() { profile.enter(previous_); }
  Section(const Section&) = delete;
  Section& operator=(const Section&) = delete;

 private:
  Phase previous_;
};

}  // namespace roofline

// Tags that run td3.h on the host's kernels and charge what is nested in its functions to a phase
// of its own. What has no overload here is charged to the phase of the function that it is part of.
struct ProfiledTargetValues : RLT_DEVICE {};
struct ProfiledCritic : RLT_DEVICE {};
struct ProfiledActor : RLT_DEVICE {};

template <class T>
decltype(auto) fill_standard_normal(ProfiledTargetValues device, RandomStream random,
                                    T* destination, int count) {
  const roofline::Section section(roofline::kSample);
  return fill_standard_normal(RLT_DEVICE(device), random, destination, count);
}

template <class Network, class Input, class Output, class Buffer>
void forward(ProfiledCritic device, const Network& network, const Input& input, Output&& output,
             Buffer& buffer) {
  const roofline::Section section(roofline::kCriticForward);
  forward(RLT_DEVICE(device), network, input, output, buffer);
}

template <class Network>
void adam_step(ProfiledCritic device, const AdamParameters<typename Network::Scalar>& parameters,
               AdamState<Network>& state, const Network& gradient, Network& network) {
  const roofline::Section section(roofline::kOptimizer);
  adam_step(RLT_DEVICE(device), parameters, state, gradient, network);
}

template <class Network>
void adam_step(ProfiledActor device, const AdamParameters<typename Network::Scalar>& parameters,
               AdamState<Network>& state, const Network& gradient, Network& network) {
  const roofline::Section section(roofline::kOptimizer);
  adam_step(RLT_DEVICE(device), parameters, state, gradient, network);
}

namespace roofline {

// train_step of td3.h, phase by phase; main() checks that it ends in the same bits.
template <class E>
void profiled_train_step(Training<E>& training) {
  const RLT_DEVICE device{};
  auto& learner = training.learner;
  StepReport<E> report;
  Actions<E> action;
  profile.enter(kAct);
  Td3::explore(device, training, action);
  profile.enter(kSimulate);
  collect(device, training, action.data(), report);
  if (learner.progress.step > training.hyperparameters.learning_starts) {
    profile.enter(kSample);
    gather_batch(device, training);
    profile.enter(kTargetValues);
    Td3::compute_target_values(ProfiledTargetValues{}, training);
    profile.enter(kCriticBackward);  // with the loss
    Td3::update_critics(ProfiledCritic{}, training, report);
    learner.progress.updates++;
    if (learner.progress.updates % training.hyperparameters.policy_delay == 0) {
      profile.enter(kActor);
      Td3::update_actor(ProfiledActor{}, training);
      profile.enter(kTargets);
      Td3::update_targets(device, training);
    }
  }
  profile.enter(kOutside);
}

// ---- Arithmetic, from the shapes ----------------------------------------------------------------

// Multiply-adds of one sample's forward pass: a layer's bias is where its sums start. As many are
// in the weights' gradient; sums of the bias gradient are additions and not counted.
template <class Network>
constexpr double forward_multiply_adds() {
  double count = 0;
  for (int layer = 0; layer < Network::kLayerCount; layer++) {
    count += static_cast<double>(Network::input_dim(layer)) * Network::output_dim(layer);
  }
  return count;
}

// Return the multiply-adds of the gradient handed back through all layers but the first, and to so
// many of the inputs.
template <class Network>
constexpr double input_gradient_multiply_adds(int inputs = 0) {
  const double others = static_cast<double>(Network::input_dim(0)) - inputs;
  return forward_multiply_adds<Network>() - others * Network::output_dim(0);
}

// adam_element has four: two moments, the denominator, the parameter.
template <class Network>
constexpr double adam_multiply_adds() {
  return 4.0 * Network::kParameterCount;
}

// In one execution of the phase (kOptimizer: of the critics; see kActorOptimizer).
template <class E>
struct Arithmetic {
  using Actor = typename E::Actor;
  using Critic = typename E::Critic;
  static constexpr double kBatch = E::kBatchSize;
  static constexpr double kAct = forward_multiply_adds<Actor>();
  static constexpr double kTargetValues =
      kBatch * (forward_multiply_adds<Actor>() + 2 * forward_multiply_adds<Critic>());
  static constexpr double kCriticForward = kBatch * 2 * forward_multiply_adds<Critic>();
  static constexpr double kCriticBackward =
      kBatch * 2 * (forward_multiply_adds<Critic>() + input_gradient_multiply_adds<Critic>());
  static constexpr double kActor =
      kBatch * (forward_multiply_adds<Actor>() + forward_multiply_adds<Critic>() +
                input_gradient_multiply_adds<Critic>(E::Environment::kActionDim) +
                forward_multiply_adds<Actor>() + input_gradient_multiply_adds<Actor>());
  static constexpr double kCriticOptimizer = 2 * adam_multiply_adds<Critic>();
  static constexpr double kActorOptimizer = adam_multiply_adds<Actor>();
  static constexpr double kTargets = Actor::kParameterCount + 2.0 * Critic::kParameterCount;
};

// Floating-point operations of each phase in a run: two per multiply-add.
template <class E>
void count_operations(const Training<E>& training, double (&operations)[kPhaseCount]) {
  using Count = Arithmetic<E>;
  const auto& progress = training.learner.progress;
  const double updates = progress.updates;
  const double actor_updates = progress.updates / training.hyperparameters.policy_delay;
  const double policy_steps =
      progress.step -
      std::min<double>(progress.step,
                       training.hyperparameters.learning_starts);  // the others random
  operations[kAct] = 2 * policy_steps * Count::kAct;
  operations[kSimulate] = 0;
  operations[kSample] = 0;
  operations[kTargetValues] = 2 * updates * Count::kTargetValues;
  operations[kCriticForward] = 2 * updates * Count::kCriticForward;
  operations[kCriticBackward] = 2 * updates * Count::kCriticBackward;
  operations[kActor] = 2 * actor_updates * Count::kActor;
  operations[kOptimizer] =
      2 * (updates * Count::kCriticOptimizer + actor_updates * Count::kActorOptimizer);
  operations[kTargets] = 2 * actor_updates * Count::kTargets;
}

// ---- What the core can do -----------------------------------------------------------------------

// Independent fused multiply-adds of the widest vector, in registers: the horizontal roof. Enough
// sums to hide the latency of the multiply-add, few enough for the registers.
constexpr int kSums = kernels::kLanes == 16 || kernels::kLanes == 4 ? 24 : 12;

float add_products(long iterations, float factor, float term) {
  using kernels::Vector;
  const Vector factors = kernels::broadcast(factor), terms = kernels::broadcast(term);
  Vector sums[kSums];
#pragma GCC unroll 32
  for (int i = 0; i < kSums; i++) sums[i] = kernels::broadcast(static_cast<float>(i));
  for (long iteration = 0; iteration < iterations; iteration++) {
#pragma GCC unroll 32
    for (int i = 0; i < kSums; i++) sums[i] = kernels::multiply_add(sums[i], factors, terms);
  }
  float lanes[kernels::kLanes], total = 0.0f;
  for (int i = 0; i < kSums; i++) {
    kernels::store(lanes, sums[i]);
    for (const float lane : lanes) total += lane;
  }
  return total;
}

volatile float sink;  // results go here, so that no compiler leaves their computation out

double peak_gflops(double duration_s) {
  const volatile float factor = 0.999f, term = 0.001f;
  constexpr long kIterations = 100000;  // some 0.5 ms
  const double run_s =
      seconds_per_run(duration_s / 2, [&] { sink = add_products(kIterations, factor, term); });
  return 2e-9 * kSums * kernels::kLanes * kIterations / run_s;
}

// ---- What the memory can do ---------------------------------------------------------------------

// McCalpin's triad a = b + s c: three floats moved per element.
double triad_gb_s(std::vector<float>& a, const std::vector<float>& b, const std::vector<float>& c) {
  const volatile float factor = 3.0f;
  const float s = factor;
  const Seconds elapsed = timed([&] {
    for (std::size_t i = 0; i < a.size(); i++) a[i] = b[i] + s * c[i];
  });
  sink = a[a.size() / 2];
  return 3.0 * sizeof(float) * static_cast<double>(a.size()) / elapsed.processor / 1e9;
}

// ---- The run ------------------------------------------------------------------------------------

Learner<Experiment> learner;
Replay<Experiment> replay;
Scratch<Experiment> scratch;

struct Digest {
  std::uint8_t bytes[32];
};

Digest state_digest(Training<Experiment>& training) {
  Digest digest;
  hash_state(training, digest.bytes);
  return digest;
}

// Return the processor time of a run from its first step to its last.
template <class Step>
double timed_run(Training<Experiment>& training, Step&& step) {
  initialize(RLT_DEVICE{}, training);
  return timed([&] {
           while (!finished(training)) step();
         })
      .processor;
}

// The time that each step spent in each phase. A phase's total is its median times its executions,
// so that a step during which another process had the core counts like any other.
class StepLog {
 public:
  explicit StepLog(std::size_t steps) {
    for (auto& log : ticks_) log.reserve(steps);
  }
  void add(Profile& profile) {
    for (int phase = 0; phase < kPhaseCount; phase++) {
      if (profile.spent[phase] > 0) ticks_[phase].push_back(profile.spent[phase]);
      profile.spent[phase] = 0;
    }
  }
  double total(int phase) {
    auto& values = ticks_[phase];
    if (values.empty()) return 0.0;
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return static_cast<double>(*middle) * static_cast<double>(values.size());
  }

 private:
  std::vector<std::uint64_t> ticks_[kPhaseCount];
};

int run(std::uint32_t steps, int repetitions, std::size_t buffer_bytes) {
  Training<Experiment> training{{}, learner, replay, scratch};
  training.hyperparameters.steps = steps;
  constexpr double kPeakSeconds = 0.1;
  std::vector<double> peaks, plain_s, profiled_s, bandwidths;
  StepLog log(std::size_t(steps) * static_cast<std::size_t>(repetitions));
  bool same_bits = true;

  std::vector<float> a(buffer_bytes / 3 / sizeof(float)), b(a.size(), 1.0f), c(a.size(), 2.0f);
  peaks.push_back(peak_gflops(kPeakSeconds));
  for (int repetition = 0; repetition < repetitions; repetition++) {
    bandwidths.push_back(triad_gb_s(a, b, c));
    plain_s.push_back(timed_run(training, [&] { train_step(RLT_DEVICE{}, training); }));
    const Digest plain = state_digest(training);
    peaks.push_back(peak_gflops(kPeakSeconds));
    profile = Profile{};
    profiled_s.push_back(timed_run(training, [&] {
      profiled_train_step(training);
      log.add(profile);
    }));
    const Digest profiled = state_digest(training);
    same_bits = same_bits && std::memcmp(plain.bytes, profiled.bytes, sizeof plain.bytes) == 0;
    peaks.push_back(peak_gflops(kPeakSeconds));
  }

  double operations[kPhaseCount];
  count_operations(training, operations);
  std::printf(
      "{\"lanes\": %d, \"kind_of_core\": \"%s\", \"steps\": %u, \"updates\": %u, \"same_bits\": "
      "%s, ",
      kernels::kLanes, kernels::kKindOfCore, training.learner.progress.step,
      training.learner.progress.updates, same_bits ? "true" : "false");
  print_list("peak_gflops", peaks);
  std::printf(", ");
  print_list("plain_s", plain_s);
  std::printf(", ");
  print_list("profiled_s", profiled_s);
  std::printf(", ");
  print_list("bandwidth_gb_s", bandwidths);
  std::printf(", \"phases\": [");
  for (int phase = 0; phase < kPhaseCount; phase++) {
    std::printf("%s{\"name\": \"%s\", \"ticks\": %.17g, \"operations\": %.17g}", phase ? ", " : "",
                kPhaseNames[phase], log.total(phase), operations[phase]);
  }
  std::printf("]}\n");
  return 0;
}

}  // namespace roofline

}  // namespace rlt

int main(int argument_count, char** arguments) {
  const auto number = [&](int index) {
    return argument_count == 4 ? std::strtoul(arguments[index], nullptr, 10) : 0;
  };
  const unsigned long steps = number(1), repetitions = number(2), buffer_mb = number(3);
  if (steps < 1 || repetitions < 1 || buffer_mb < 1) {
    std::fprintf(stderr, "usage: roofline STEPS REPETITIONS BUFFER_MB\n");
    return 2;
  }
  return rlt::roofline::run(static_cast<std::uint32_t>(steps), static_cast<int>(repetitions),
                            static_cast<std::size_t>(buffer_mb) << 20);
}
