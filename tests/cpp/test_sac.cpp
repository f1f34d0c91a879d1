// SAC: whole updates against PyTorch (tests/goldens/generate_sac.py), its derivatives, and the
// rules of the algorithm.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "pytorch_comparison.h"
#include "rltools/devices/host.h"
#include "rltools/policy/runtime.h"
#include "rltools/rl/evaluation.h"
#include "rltools/rl/policy_of_training.h"
#include "sac_golden_run.h"

using namespace rlt;
using training_run::Run;

namespace {

// Sums of up to 6,400 products in another order. StepReport has its losses in float.
constexpr golden::Tolerances kDouble{1e-11, 1e-7, 1e-13, 1e-12, 1e-10, true};
// Rounding is 6e-8 for each of some dozen operations, and Adam divides by small gradients. The
// targets have moved by about 1e-4 of their size, so that their rounding is 1e-3 of that. Rewards
// come from 100 steps of the pendulum.
constexpr golden::Tolerances kFloat{1e-4, 5e-5, 3e-4, 3e-4, 2e-3, false};
constexpr std::size_t kStride = 21;  // as in generate_sac.py

// The updates of a case of sac_golden_run.h, each one compared.
template <class T>
void compare_with_pytorch(const std::string& name, const golden::Tolerances& tolerances) {
  CAPTURE(name);
  golden::PyTorchComparison comparison("sac.bin", name + "/", tolerances);
  Run<sac_golden::Experiment<T>> run;
  const auto& learner = *run.learner;
  sac_golden::run(
      run, name,
      [&](const std::string& array, const golden::Array& values) {
        comparison.check_input(array, values);
      },
      [&](int update, const StepReport& report) {
        const std::string prefix = std::to_string(update) + "/";
        CHECK(report.updated);
        CHECK(report.actor_updated);
        comparison.check_loss(prefix + "critic_1_loss", report.critic_1_loss);
        comparison.check_loss(prefix + "critic_2_loss", report.critic_2_loss);
        comparison.check_loss(prefix + "actor_loss", report.actor_loss);
        const auto check_step = [&](const char* network, const char* initial,
                                    const auto& parameters, double tolerance) {
          comparison.check_step(prefix + network, initial, parameters, kStride, tolerance);
        };
        check_step("actor", "actor", learner.actor, tolerances.parameters);
        check_step("critic_1", "critic_1", learner.critic_1, tolerances.parameters);
        check_step("critic_2", "critic_2", learner.critic_2, tolerances.parameters);
        check_step("critic_1_target", "critic_1", learner.critic_1_target, tolerances.targets);
        check_step("critic_2_target", "critic_2", learner.critic_2_target, tolerances.targets);
        const auto check_moments = [&](const char* optimizer, const auto& state) {
          comparison.check_moments(prefix + optimizer, state, kStride);
        };
        check_moments("actor_optimizer", learner.actor_optimizer);
        check_moments("critic_1_optimizer", learner.critic_1_optimizer);
        check_moments("critic_2_optimizer", learner.critic_2_optimizer);
        check_moments("temperature_optimizer", learner.temperature_optimizer);
        comparison.check_array(prefix + "log_temperature",
                               golden::to_array(learner.log_temperature.values, 1),
                               tolerances.parameters);
      });
}

#define LINE_STATE(X) X(float, position)

// A point on a line, pushed by the sum of two actions, that must not leave [-1, 1]: it terminates
// early.
struct Line {
  using Scalar = float;
  RLT_DEFINE_FIELDS(State, LINE_STATE)
  RLT_DEFINE_CONSTANTS(Parameters, RLT_NO_FIELDS)
  static constexpr const char* kName = "line";
  static constexpr int kObservationDim = 1, kActionDim = 2;
  static constexpr std::uint32_t kStepInterval_us = 1000;
  static constexpr Channel kObservations[] = {{"position", "m", -1.0f, 1.0f}};
  static constexpr Channel kActions[] = {{"left", "N", -1.0f, 1.0f}, {"right", "N", -1.0f, 1.0f}};
  Parameters parameters;
};

}  // namespace

namespace rlt {

Line::State initial_state(Generic, const Line&, RandomStream random) {
  return {uniform<float>(random, 0, -0.25f, 0.25f)};
}
Line::State step(Generic, const Line&, const Line::State& state, const float* action) {
  return {state.position + 0.25f * (action[0] + action[1])};
}
void observe(Generic, const Line&, const Line::State& state, float* observation) {
  observation[0] = state.position;
}
float reward(Generic, const Line&, const Line::State&, const float*, const Line::State& next) {
  return 1.0f - math::absolute(next.position);
}
bool terminated(Generic, const Line&, const Line::State& state) {
  return math::absolute(state.position) > 1.0f;
}

}  // namespace rlt

namespace {

struct LineSac : PendulumSac {
  static constexpr const char* kName = "line-sac";
  using Environment = Line;
  using Actor = Mlp<float, Dimensions<1, 8, 4>, Activation::tanh, Activation::identity>;
  using Critic = Mlp<float, Dimensions<3, 12, 1>, Activation::gelu, Activation::identity>;
  static constexpr int kEpisodeSteps = 20, kBatchSize = 30, kTileRows = 15, kReplayCapacity = 400;
};

template <class E, class Device>
std::string hash_after(Device device, std::uint32_t steps, std::uint32_t seed = 1) {
  Run<E> run(seed);
  initialize(device, run.training);
  run.train(device, steps);
  return run.state_sha256();
}

// Five samples of three actions, with the noise that makes u = mean + std noise reach beyond 10.
constexpr int kRows = 5, kAction = 3;
struct Samples {
  std::vector<double> output = numeric::random_values(kRows * 2 * kAction, 1, -1.5, 1.5);
  std::vector<double> noise = numeric::random_values(kRows * kAction, 2, -3.0, 3.0);
  double action[kRows * kAction], log_probability[kRows];

  void draw() {
    sac::sample_actions<kRows, kAction>(Generic{}, output.data(), noise.data(), action,
                                        log_probability);
  }
  double& mean(int row, int i) { return output[row * 2 * kAction + i]; }
  double& log_std(int row, int i) { return output[row * 2 * kAction + kAction + i]; }
};

// The mean of log pi over states of the run, as an average over many draws.
template <class E>
double mean_log_probability(Run<E>& run) {
  double sum = 0;
  constexpr int kDraws = 20;
  for (int draw = 0; draw < kDraws; draw++) {
    run.learner->progress.updates += 1000;
    gather_batch(Host{}, run.training);
    fill_standard_normal(Host{}, {7, Purpose::shuffle, static_cast<std::uint32_t>(draw)},
                         run.scratch->policy_noise.data(), E::kBatchSize);
    for (int first = 0; first < E::kBatchSize; first += E::kTileRows) {
      sac::sample_policy(Host{}, run.training, rows<E::kTileRows>(run.scratch->observation, first),
                         run.scratch->policy_noise.row(first));
      for (int row = 0; row < E::kTileRows; row++) {
        sum += static_cast<double>(run.scratch->log_probability(row, 0));
      }
    }
  }
  return sum / (kDraws * E::kBatchSize);
}

}  // namespace

TEST_CASE("two updates in double are PyTorch's") {
  for (const char* name : sac_golden::kCases) compare_with_pytorch<double>(name, kDouble);
}

TEST_CASE("two updates in float are PyTorch's in double, but for rounding") {
  for (const char* name : sac_golden::kCases) compare_with_pytorch<float>(name, kFloat);
}

TEST_CASE("the golden's second case goes beyond both bounds of log_std") {
  using E = sac_golden::Experiment<double>;
  Run<E> run;
  sac_golden::configure("bounded", run.training);
  run.train(Generic{}, run.training.hyperparameters.learning_starts);
  int below = 0, above = 0;
  for (std::uint32_t slot = 0; slot < run.replay->size; slot++) {
    const MatrixView<const double, 1, 3> observation{run.replay->observation + slot * 3};
    Matrix<double, 1, 2> output;
    forward(Generic{}, run.learner->actor, observation, output, run.scratch->acting_buffer);
    below += output(0, 1) < -20;
    above += output(0, 1) > 2;
  }
  CHECK(below >= 10);
  CHECK(above >= 10);
  CHECK(below + above <= 80);
}

TEST_CASE("a sample's log-probability is the density of the squashed Gaussian") {
  Samples samples;
  samples.draw();
  for (int row = 0; row < kRows; row++) {
    double expected = 0;
    for (int i = 0; i < kAction; i++) {
      const double noise = samples.noise[row * kAction + i];
      const double std = std::exp(samples.log_std(row, i));
      const double action = samples.action[row * kAction + i];
      CHECK(action ==
            doctest::Approx(std::tanh(samples.mean(row, i) + std * noise)).epsilon(1e-14));
      const double density = std::exp(-noise * noise / 2) / (std * std::sqrt(2 * std::acos(-1.0)));
      expected += std::log(density / (1 - action * action));  // change of variables
    }
    CHECK(samples.log_probability[row] == doctest::Approx(expected).epsilon(1e-6));
  }
}

TEST_CASE("the density of the squashed Gaussian integrates to one") {
  // Over noise, of which the action is a monotone function: the integral of pi(action) d action.
  constexpr int kSteps = 4000;
  for (const double mean : {-1.5, 0.0, 0.75}) {
    for (const double log_std : {-3.0, -0.5, 1.0}) {
      double integral = 0, previous_action = -1, previous_density = 0;
      for (int k = 0; k <= kSteps; k++) {
        const double noise = -8 + 16.0 * k / kSteps;
        double action, log_probability;
        sac::squash_gaussian(mean, log_std, noise, action, log_probability);
        const double density = std::exp(log_probability);
        integral += (density + previous_density) / 2 * (action - previous_action);
        previous_action = action;
        previous_density = density;
      }
      CAPTURE(mean);
      CAPTURE(log_std);
      CHECK(integral == doctest::Approx(1).epsilon(1e-3));
    }
  }
}

TEST_CASE("log-probability and action are finite, and not cancelled, however large u is") {
  for (const float mean : {-1e4f, -100.0f, 100.0f, 1e4f}) {
    for (const float log_std : {-1e3f, -20.0f, 2.0f, 1e3f}) {
      for (const float noise : {-6.76f, 0.0f, 6.76f}) {
        float action, log_probability;
        sac::squash_gaussian(mean, log_std, noise, action, log_probability);
        double precise_action, precise;
        sac::squash_gaussian<double>(mean, log_std, noise, precise_action, precise);
        CHECK(std::abs(action) == 1.0f);
        CHECK(log_probability == doctest::Approx(precise).epsilon(1e-6));
        // u dominates: log pi = 2 |u| - log 4 - ..., since 1 - tanh(u)^2 = 4 exp(-2 |u|)
        const double bounded = std::min(std::max(log_std, -20.0f), 2.0f);
        const double u = mean + std::exp(bounded) * noise;
        const double expected = -0.5 * noise * noise - bounded -
                                0.5 * std::log(2 * std::acos(-1.0)) + 2 * std::abs(u) -
                                std::log(4.0);
        CHECK(precise == doctest::Approx(expected).epsilon(1e-12));
      }
    }
  }
  float action, log_probability;
  sac::squash_gaussian(math::kQuietNan, 0.0f, 0.0f, action, log_probability);
  CHECK(action != action);
  CHECK(log_probability != log_probability);
}

TEST_CASE("the gradient of actions and log-probability is that of numeric differentiation") {
  Samples samples;
  const std::vector<double> weight = numeric::random_values(kRows * kAction, 3);
  constexpr double kLogProbabilityWeight = 0.37;
  // A loss that depends on every action and log-probability: as J does, with weights for dQ / d
  // action.
  const auto loss = [&] {
    samples.draw();
    double sum = 0;
    for (int k = 0; k < kRows * kAction; k++) sum += weight[k] * samples.action[k];
    for (int row = 0; row < kRows; row++) {
      sum += kLogProbabilityWeight * samples.log_probability[row];
    }
    return sum;
  };
  samples.draw();
  std::vector<double> gradient(samples.output.size()), expected(samples.output.size());
  sac::sample_actions_backward<kRows, kAction>(Generic{}, samples.output.data(),
                                               samples.noise.data(), samples.action, weight.data(),
                                               kLogProbabilityWeight, gradient.data());
  for (std::size_t k = 0; k < expected.size(); k++) {
    expected[k] = numeric::derivative(samples.output[k], loss);
  }
  CHECK(numeric::relative_difference(gradient, expected) <= numeric::kTolerance);
}

TEST_CASE("beyond its bounds log_std neither counts nor has a gradient") {
  for (const double log_std : {-25.0, 3.0}) {
    const double bound = log_std < 0 ? -20.0 : 2.0;
    double action, log_probability, bounded_action, bounded_log_probability;
    sac::squash_gaussian(0.25, log_std, 0.125, action, log_probability);
    sac::squash_gaussian(0.25, bound, 0.125, bounded_action, bounded_log_probability);
    CHECK(action == doctest::Approx(bounded_action).epsilon(1e-14));
    CHECK(log_probability == doctest::Approx(bounded_log_probability).epsilon(1e-14));
    double mean_gradient, log_std_gradient;
    sac::squash_gaussian_backward(log_std, 0.125, action, 1.0, 1.0, mean_gradient,
                                  log_std_gradient);
    CHECK(log_std_gradient == 0);
    CHECK(mean_gradient != 0);
    sac::squash_gaussian_backward(bound, 0.125, action, 1.0, 1.0, mean_gradient, log_std_gradient);
    CHECK(log_std_gradient != 0);
  }
}

TEST_CASE("the reference and the host's kernels end 300 steps with the same bits") {
  const std::string reference = hash_after<PendulumSac>(Generic{}, 300);
  CHECK(hash_after<PendulumSac>(Host{}, 300) == reference);
  // The same on every machine and with every compiler. A change to the core's numerics changes it,
  // and the message of that commit says so.
  CHECK(reference == "911d74e4aa447b12469518470046dab8144d5096eb0fb1ae3b9db8bafb547b80");
  CHECK(hash_after<LineSac>(Host{}, 300) == hash_after<LineSac>(Generic{}, 300));
}

TEST_CASE("the tile size changes no bit") {
  const std::string expected = hash_after<PendulumSac>(Host{}, 200);
  CHECK(hash_after<WithTileRows<PendulumSac, 100>>(Host{}, 200) == expected);
  CHECK(hash_after<WithTileRows<PendulumSac, 10>>(Host{}, 200) == expected);
  CHECK(hash_after<WithTileRows<PendulumSac, 4>>(Host{}, 200) == expected);
  CHECK(hash_after<WithTileRows<LineSac, 5>>(Host{}, 300) == hash_after<LineSac>(Host{}, 300));
}

TEST_CASE("a run that continues from a copy of its state ends with the same bits") {
  const std::string expected = hash_after<PendulumSac>(Host{}, 260, 3);
  for (const std::uint32_t pause : {1u, 100u, 101u, 199u, 200u, 231u}) {
    CAPTURE(pause);
    Run<PendulumSac> first(3), second(3);
    initialize(Host{}, first.training);
    first.train(Host{}, pause);
    evaluate(Host{}, first.training);
    policy(first.training);
    std::memset(static_cast<void*>(second.learner.get()), 0xa5, sizeof(*second.learner));
    std::memset(static_cast<void*>(second.scratch.get()), 0xff, sizeof(*second.scratch));
    second.set_state(first.state());
    REQUIRE(steps_done(second.training) == pause);
    second.train(Host{}, 260 - pause);
    CHECK(second.state_sha256() == expected);
  }
}

TEST_CASE("while warming up nothing is learned, then every step updates all networks") {
  Run<PendulumSac> run(1);
  auto& h = run.training.hyperparameters;
  h.learning_starts = 150;
  initialize(Host{}, run.training);
  const Learner<PendulumSac> before_updates = *run.learner;
  for (std::uint32_t step = 0; step < h.learning_starts; step++) {
    const StepReport report = run.step(Host{});
    CHECK_FALSE(report.updated);
    CHECK_FALSE(report.actor_updated);
    CHECK(run.replay->action[step] ==
          uniform<float>({1, Purpose::warmup_action, step}, 0, -1.0f, 1.0f));
  }
  const auto same = [](const auto& a, const auto& b) {
    return std::memcmp(a.values, b.values, sizeof a.values) == 0;
  };
  CHECK(same(run.learner->actor, before_updates.actor));
  CHECK(same(run.learner->critic_1, before_updates.critic_1));
  CHECK(same(run.learner->critic_2, before_updates.critic_2));
  for (std::uint32_t update = 1; update <= 5; update++) {
    const Learner<PendulumSac> before = *run.learner;
    const StepReport report = run.step(Host{});
    const Learner<PendulumSac>& after = *run.learner;
    CHECK(report.updated);
    CHECK(report.actor_updated);
    CHECK(after.progress.updates == update);
    CHECK_FALSE(same(before.actor, after.actor));
    CHECK_FALSE(same(before.critic_1, after.critic_1));
    CHECK_FALSE(same(before.critic_2, after.critic_2));
    CHECK_FALSE(same(before.critic_1_target, after.critic_1_target));
    CHECK_FALSE(same(before.critic_2_target, after.critic_2_target));
    CHECK_FALSE(same(before.log_temperature, after.log_temperature));
  }
}

TEST_CASE("exploration draws from the policy") {
  Run<LineSac> run(3);
  auto& h = run.training.hyperparameters;
  h.learning_starts = 1;
  h.learning_rate = 0;  // the policy stays
  initialize(Host{}, run.training);
  double sum[2] = {}, sum_of_squares[2] = {}, product = 0;
  constexpr int kSteps = 300;
  std::uint32_t slot = 0;
  for (int step = 0; step < kSteps; step++) {
    const StepReport report = run.step(Host{});
    Matrix<float, 1, 4> output;
    const MatrixView<const float, 1, 1> observation{run.replay->observation + slot};
    forward(Host{}, run.learner->actor, observation, output, run.scratch->acting_buffer);
    double noise[2];
    for (int i = 0; i < 2; i++) {
      const double taken = static_cast<double>(run.replay->action[slot * 2 + i]);
      REQUIRE(std::abs(taken) <= 1);
      noise[i] = (std::atanh(taken) - output(0, i)) / std::exp(output(0, 2 + i));
      if (step == 0) continue;  // uniform
      sum[i] += noise[i] / (kSteps - 1);
      sum_of_squares[i] += noise[i] * noise[i] / (kSteps - 1);
    }
    if (step > 0) product += noise[0] * noise[1] / (kSteps - 1);
    slot += report.episode_ended ? 2 : 1;
  }
  // Five standard deviations of each statistic for standard normal noise.
  for (int i = 0; i < 2; i++) {
    CHECK(std::abs(sum[i]) < 5 / std::sqrt(kSteps));
    CHECK(std::abs(sum_of_squares[i] - 1) < 5 * std::sqrt(2.0 / kSteps));
  }
  CHECK(std::abs(product) < 5 / std::sqrt(kSteps));
}

TEST_CASE(
    "the temperature rises while the entropy is below its target, and falls while it is above") {
  for (const float target_entropy : {0.69f, -20.0f}) {
    CAPTURE(target_entropy);
    Run<LineSac> run(4);
    run.training.hyperparameters.target_entropy = target_entropy;
    run.training.hyperparameters.alpha = 0.5f;
    initialize(Host{}, run.training);
    CHECK(run.learner->log_temperature.values[0] == math::log(0.5f));
    run.train(Host{}, run.training.hyperparameters.learning_starts);
    for (int update = 0; update < 20; update++) {
      const float before = run.learner->log_temperature.values[0];
      run.step(Host{});
      // Adam's step is about the learning rate while the gradient keeps its sign.
      const float change = run.learner->log_temperature.values[0] - before;
      CHECK((target_entropy > 0 ? change : -change) == doctest::Approx(1e-3).epsilon(0.1));
    }
  }
}

TEST_CASE("the target entropy is one per dimension of the action") {
  // Two dimensions: -log pi is to be -2, so that at a mean log pi of 1.5 it is too large by 0.5.
  for (const float mean_log_probability : {1.5f, 2.5f}) {
    CAPTURE(mean_log_probability);
    Run<LineSac> run(4);
    REQUIRE(run.training.hyperparameters.target_entropy == -1.0f);
    initialize(Host{}, run.training);
    REQUIRE(run.learner->log_temperature.values[0] == 0.0f);
    sac::update_temperature(Host{}, run.training, mean_log_probability);
    const float change = run.learner->log_temperature.values[0];
    CHECK((mean_log_probability < 2.0f ? -change : change) == doctest::Approx(1e-3));
    // Adam's first moment is the gradient's share: the difference itself.
    const float moment = run.learner->temperature_optimizer.first_moment.values[0];
    CHECK(moment == doctest::Approx(-0.1 * (mean_log_probability - 2.0)));
  }
}

TEST_CASE("the deployed policy is the actor's squashed mean, bit by bit") {
  Run<LineSac> run(5);
  initialize(Host{}, run.training);
  run.train(Host{}, 150);
  static_assert(
      std::is_same_v<PolicyNetwork<LineSac>,
                     Mlp<float, Dimensions<1, 8, 2>, Activation::tanh, Activation::tanh>>);
  const PolicyNetwork<LineSac>& network = policy(run.training);
  alignas(4) static std::uint8_t image[kPolicyImageBytes<LineSac>];
  const std::uint8_t state_sha256[32] = {};
  build_policy_image(Host{}, run.training, state_sha256, image);
  static Policy<kPolicyImageBytes<LineSac>, 64> deployed(policy_contract<Line>());
  REQUIRE(deployed.accept(Generic{}, image, sizeof(image)).accepted());
  for (int k = 0; k < 50; k++) {
    Matrix<float, 1, 1> observation{{-1.0f + 0.04f * static_cast<float>(k)}};
    Matrix<float, 1, 4> output;
    Matrix<float, 1, 2> action, network_action;
    float deployed_action[2];
    act(Host{}, run.training, observation, action);
    forward(Generic{}, run.learner->actor, observation, output, run.scratch->acting_buffer);
    MlpBuffer<PolicyNetwork<LineSac>, 1> buffer;
    forward(Host{}, network, observation, network_action, buffer);
    REQUIRE(deployed.act(Generic{}, observation.values, deployed_action) ==
            ActionSource::from_policy);
    for (int i = 0; i < 2; i++) {
      CHECK(action(0, i) == math::tanh(output(0, i)));
      CHECK(network_action(0, i) == action(0, i));
      CHECK(deployed_action[i] == action(0, i));
    }
  }
}

TEST_CASE("the report says so when a number is not finite") {
  Run<PendulumSac> run(6);
  run.training.hyperparameters.learning_starts = 20;
  initialize(Host{}, run.training);
  run.train(Host{}, 40);
  REQUIRE(run.step(Host{}).finite);
  const std::vector<std::uint8_t> state = run.state();
  for (const float poison : {math::kQuietNan, math::kInfinity, -math::kInfinity}) {
    CAPTURE(poison);
    const auto stays_finite = [&](float& value) {
      value = poison;
      bool finite = true;
      for (int i = 0; i < 4; i++) finite = finite && run.step(Host{}).finite;
      run.set_state(state);
      return finite;
    };
    CHECK_FALSE(stays_finite(run.learner->critic_1.bias(2)[0]));
    CHECK_FALSE(stays_finite(run.learner->critic_2.bias(2)[0]));
    CHECK_FALSE(stays_finite(run.learner->actor.bias(2)[0]));
    CHECK_FALSE(stays_finite(run.learner->environment_state.velocity_rad_s));
    if (poison > 0 || poison != poison) {  // log_temperature = -infinity is a temperature of zero
      CHECK_FALSE(stays_finite(run.learner->log_temperature.values[0]));
    }
  }
}

TEST_CASE("the state's tensors have unlike names and as many bytes as state_bytes says") {
  Run<PendulumSac> run;
  std::set<std::string> names;
  std::size_t tensors = 0;
  for_each_state_tensor(run.training, [&](const TensorInfo& info, void*) {
    std::string name;
    write_full_name(info, [&](char c) { name += c; });
    names.insert(name);
    tensors++;
  });
  CHECK(names.size() == tensors);
  CHECK(state_bytes(run.training) == run.state().size());
}

TEST_CASE("seeds learn Pendulum-v1 in 10000 steps to a return of -200 at the entropy asked for") {
#if defined(__SANITIZE_ADDRESS__)
  constexpr std::uint32_t kSeeds = 1;  // slow
#else
  constexpr std::uint32_t kSeeds = 3;
#endif
  for (std::uint32_t seed = 0; seed < kSeeds; seed++) {
    CAPTURE(seed);
    Run<PendulumSac> run(seed);
    run.training.hyperparameters.eval_episodes = 100;
    initialize(Host{}, run.training);
    const float untrained = evaluate(Host{}, run.training).mean;
    run.train(Host{}, run.training.hyperparameters.steps);
    const EvaluationReport report = evaluate(Host{}, run.training);
    const double entropy = -mean_log_probability(run);
    CAPTURE(entropy);
    CAPTURE(sac::temperature(run.training));
    CHECK(untrained < -900);
    CHECK(report.mean >= -200);
    CHECK(std::abs(entropy - -1) < 0.25);  // target_entropy, which it follows with a delay
  }
}
