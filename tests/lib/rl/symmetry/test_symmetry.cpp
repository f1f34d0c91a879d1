// Networks that are symmetric in an environment's mirrors: what a batch with all images of its rows
// would teach, bits that stay each other's image, and mirrors that an environment states rightly.
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "crazyflie_ppo.h"
#include "quadrotor_sac.h"
#include "rltools/devices/generic.h"
#include "rltools/rl/fingerprint.h"
#include "rltools/rl/symmetry/symmetry.h"
#include "training_run.h"

using namespace rlt;
using training_run::Run;

namespace {

// The Crazyflie's, of a size for tests.
struct Plain : CrazyfliePpo {
  using Actor = Mlp<float, Dimensions<Environment::kObservationDim, 12, 8, 4>, Activation::relu,
                    Activation::identity>;
  using Critic = Mlp<float, Dimensions<kCriticObservationDim<Environment>, 8, 12, 1>,
                     Activation::relu, Activation::identity>;
  static constexpr int kEnvironments = 16, kRolloutSteps = 8, kBatchSize = 64, kTileRows = 32;
  static constexpr bool kMirrored = false;
};
struct Symmetric : Plain {
  static constexpr bool kMirrored = true;
};

// The same of an algorithm whose critics see an action too, and of an actor that gives deviations.
struct SymmetricSac : QuadrotorSac {
  using Actor = Mlp<float, Dimensions<Environment::kObservationDim, 12, 8, 8>, Activation::relu,
                    Activation::identity>;
  using Critic = Mlp<float, Dimensions<kCriticObservationDim<Environment> + 4, 8, 12, 1>,
                     Activation::relu, Activation::identity>;
  static constexpr int kEnvironments = 8, kBatchSize = 32, kTileRows = 16, kReplayCapacity = 800;
  static constexpr bool kNormalized = true, kMirrored = true;
};

template <class E>
using ActorImages = detail::ActorImages<E, typename E::Actor>;
template <class E>
using CriticImages = detail::CriticImages<E, typename E::Critic>;

// Parameters, of biases too, whose image has other bits.
template <class Images, class Network>
int parameters_that_differ(const Network& network, int mirrors) {
  int count = 0;
  for (int mirror = 0; mirror < mirrors; mirror++) {
    detail::for_each_parameter<Network>([&](int layer, int i, int o) {
      const Mirrored input = Images::input(mirror, layer, i);
      const Mirrored output = Images::output(mirror, layer, o);
      const int width = Network::output_dim(layer);
      const float own = network.weights(layer)[i * width + o];
      const float image = network.weights(layer)[input.element * width + output.element];
      count += own == static_cast<float>(input.sign * output.sign) * image ? 0 : 1;
    });
  }
  return count;
}

template <class Environment>
std::vector<float> mirrored_row(int mirror, const std::vector<float>& row) {
  std::vector<float> result(row.size());
  for (int i = 0; i < static_cast<int>(row.size()); i++) {
    const Mirrored image = Environment::mirrored_observation(mirror, i);
    result[static_cast<std::size_t>(image.element)] =
        static_cast<float>(image.sign) * row[static_cast<std::size_t>(i)];
  }
  return result;
}

template <class Network>
std::vector<float> output_of(const Network& network, const std::vector<float>& row) {
  Matrix<float, 1, Network::kInputDim> input;
  Matrix<float, 1, Network::kOutputDim> output;
  MlpBuffer<Network, 1> buffer;
  for (int i = 0; i < Network::kInputDim; i++) input(0, i) = row[static_cast<std::size_t>(i)];
  forward(Generic{}, network, input, output, buffer);
  return {output.values, output.values + Network::kOutputDim};
}

std::vector<float> random_row(int count, std::uint32_t number) {
  std::vector<float> row(static_cast<std::size_t>(count));
  fill_uniform(Generic{}, RandomStream{5, Purpose::exploration, number}, row.data(),
               static_cast<std::uint32_t>(count), -1.0f, 1.0f);
  return row;
}

// Through a rollout and its minibatches, `iterations` times.
template <class E>
void train_iterations(Run<E>& run, std::uint32_t iterations) {
  while (run.training.learner.iteration < iterations) {
    const auto report = run.step(Generic{});
    REQUIRE(report.finite);
  }
}

}  // namespace

TEST_CASE("symmetric networks: parameters and their images have the same bits, however long") {
  Run<Symmetric> run(3);
  initialize(Generic{}, run.training);
  auto& learner = run.training.learner;
  const auto begun = learner.actor;
  for (const std::uint32_t iterations : {0u, 1u, 25u}) {
    train_iterations(run, iterations);
    CHECK(parameters_that_differ<ActorImages<Symmetric>>(learner.actor, 2) == 0);
    CHECK(parameters_that_differ<CriticImages<Symmetric>>(learner.critic, 2) == 0);
    for (int i = 1; i < 4; i++) {
      CHECK(learner.log_std.values[i] == learner.log_std.values[0]);  // each is any other's image
    }
  }
  int changed = 0, zeros = 0;
  for (int i = 0; i < Symmetric::Actor::kParameterCount; i++) {
    changed += learner.actor.values[i] == begun.values[i] ? 0 : 1;
    zeros += learner.actor.values[i] == 0.0f ? 1 : 0;
  }
  CHECK(changed > Symmetric::Actor::kParameterCount / 2);
  CHECK(zeros == 0);
  CHECK(learner.log_std.values[0] != run.training.hyperparameters.log_std_init);

  Run<Plain> plain(3);
  initialize(Generic{}, plain.training);
  CHECK(parameters_that_differ<ActorImages<Plain>>(plain.training.learner.actor, 2) > 100);
}

TEST_CASE("symmetric networks of SAC stay so, and critics see mirrored actions") {
  using E = SymmetricSac;
  Run<E> run(4);
  run.training.hyperparameters.learning_starts = 80;
  initialize(Generic{}, run.training);
  const auto& learner = run.training.learner;
  using Environment = E::Environment;
  constexpr int kSeen = kCriticObservationDim<Environment>;
  for (const std::uint32_t steps : {0u, 40u}) {
    run.train(Generic{}, steps);
    CHECK(parameters_that_differ<ActorImages<E>>(learner.actor, 2) == 0);
    CHECK(parameters_that_differ<CriticImages<E>>(learner.critic_1, 2) == 0);
    CHECK(parameters_that_differ<CriticImages<E>>(learner.critic_2, 2) == 0);
    CHECK(parameters_that_differ<CriticImages<E>>(learner.critic_2_target, 2) == 0);
  }
  CHECK(learner.progress.updates > 20);
  CHECK(learner.normalizer.mean[0] == 0.0);  // of the position between left and right, or front
  for (std::uint32_t number = 0; number < 20; number++) {
    const auto row = random_row(kSeen, number);
    const auto action = random_row(4, 100 + number);
    const auto joined = [](std::vector<float> seen, const std::vector<float>& taken) {
      seen.insert(seen.end(), taken.begin(), taken.end());
      return seen;
    };
    const float value = output_of(learner.critic_1, joined(row, action))[0];
    const auto output = output_of(learner.actor, row);
    for (int mirror = 0; mirror < 2; mirror++) {
      auto taken = action;
      for (int i = 0; i < 4; i++) {
        const auto to = static_cast<std::size_t>(Environment::mirrored_action(mirror, i).element);
        taken[to] = action[static_cast<std::size_t>(i)];
      }
      const auto image = mirrored_row<Environment>(mirror, row);
      CHECK(output_of(learner.critic_1, joined(image, taken))[0] ==
            doctest::Approx(value).epsilon(1e-5).scale(1.0));
      const auto image_output = output_of(learner.actor, image);
      for (std::size_t i = 0; i < output.size(); i++) {
        const int of = static_cast<int>(i) % 4;
        const auto to = static_cast<std::size_t>(Environment::mirrored_action(mirror, of).element);
        CHECK(image_output[i / 4 * 4 + to] == doctest::Approx(output[i]).epsilon(1e-5).scale(1.0));
      }
    }
  }
}

TEST_CASE("symmetric networks: a gradient is that of a batch with all images of its rows") {
  using Environment = Symmetric::Environment;
  using Actor = Symmetric::Actor;
  constexpr int kIn = Environment::kObservationDim, kOut = 4, kRows = 3;
  Run<Symmetric> run(6);
  initialize(Generic{}, run.training);
  const Actor& actor = run.training.learner.actor;
  // The gradient of the sum of (output . direction), of one row.
  const auto add_gradient = [&](const std::vector<float>& row, const std::vector<float>& direction,
                                Actor& gradient) {
    Matrix<float, 1, kIn> input;
    Matrix<float, 1, kOut> output, slope;
    MlpBuffer<Actor, 1> buffer;
    GradientBuffer<float, 1, 12> gradient_buffer;
    for (int i = 0; i < kIn; i++) input(0, i) = row[static_cast<std::size_t>(i)];
    for (int i = 0; i < kOut; i++) slope(0, i) = direction[static_cast<std::size_t>(i)];
    forward(Generic{}, actor, input, output, buffer);
    backward(Generic{}, actor, input, output, buffer, slope.data(), gradient, nullptr,
             gradient_buffer);
  };
  Actor gradient, of_images;
  Symmetric::Critic unused;
  LogStd<float, 4> log_std{{1.0f, 2.0f, 3.0f, 6.0f}};
  set_zero(Generic{}, gradient);
  set_zero(Generic{}, of_images);
  set_zero(Generic{}, unused);
  for (std::uint32_t number = 0; number < kRows; number++) {
    const auto row = random_row(kIn, number), direction = random_row(kOut, 100 + number);
    add_gradient(row, direction, gradient);
    for (int images = 0; images < 4; images++) {
      auto image = row;
      auto image_direction = direction;
      for (int mirror = 0; mirror < 2; mirror++) {
        if ((images >> mirror & 1) == 0) continue;
        image = mirrored_row<Environment>(mirror, image);
        const auto before = image_direction;
        for (int i = 0; i < kOut; i++) {
          const Mirrored to = Environment::mirrored_action(mirror, i);
          image_direction[static_cast<std::size_t>(to.element)] =
              before[static_cast<std::size_t>(i)];
        }
      }
      add_gradient(image, image_direction, of_images);
    }
  }
  average_over_mirrors(Generic{}, run.training, gradient, unused, log_std);
  for (int i = 0; i < Actor::kParameterCount; i++) {
    CHECK(gradient.values[i] ==
          doctest::Approx(of_images.values[i] / 4.0f).epsilon(1e-5).scale(1.0));
  }
  for (const float value : log_std.values) CHECK(value == 3.0f);
}

TEST_CASE("symmetric networks: the normalizer is that of the observations and of their images") {
  using Environment = Symmetric::Environment;
  constexpr int kDim = kCriticObservationDim<Environment>, kRows = 50;
  Run<Symmetric> run(7);
  initialize(Generic{}, run.training);
  Normalizer<float, kDim> normalizer, of_all;
  initialize(normalizer);
  initialize(of_all);
  for (std::uint32_t batch = 0; batch < 2; batch++) {
    std::vector<float> rows, all;
    for (std::uint32_t number = 0; number < kRows; number++) {
      auto row = random_row(kDim, 1000 * batch + number);
      for (float& value : row) value = 0.5f + value;
      const auto left = mirrored_row<Environment>(0, row);
      rows.insert(rows.end(), row.begin(), row.end());
      for (const auto& image :
           {row, left, mirrored_row<Environment>(1, row), mirrored_row<Environment>(1, left)}) {
        all.insert(all.end(), image.begin(), image.end());
      }
    }
    update_moments(Generic{}, normalizer, rows.data(), kRows);
    average_over_mirrors(Generic{}, run.training, normalizer);
    update_moments(Generic{}, of_all, all.data(), 4 * kRows);
  }
  CHECK(normalizer.count == 2 * kRows);
  for (int i = 0; i < kDim; i++) {
    CHECK(normalizer.mean[i] == doctest::Approx(of_all.mean[i]).epsilon(1e-9).scale(1.0));
    CHECK(normalizer.scale[i] == doctest::Approx(of_all.scale[i]).epsilon(1e-6));
    for (int mirror = 0; mirror < 2; mirror++) {
      const Mirrored image = Environment::mirrored_observation(mirror, i);
      CHECK(normalizer.shift[image.element] ==
            static_cast<float>(image.sign) * normalizer.shift[i]);
      CHECK(normalizer.scale[image.element] == normalizer.scale[i]);
    }
  }
  CHECK(normalizer.shift[1] == 0.0f);  // y
  CHECK(normalizer.shift[2] != 0.0f);  // z
}

TEST_CASE("symmetric networks: mirrors that are none are found") {
  const auto holds = [](auto image) {
    return detail::are_mirrors<Symmetric::Environment>(4, 4, image);
  };
  CHECK(holds([](int mirror, int i) { return Mirrored{i ^ 1 << mirror, 1}; }));
  CHECK(holds([](int, int i) { return Mirrored{i, i == 0 ? -1 : 1}; }));
  // turned by one place; out of range; a sign that does not come back
  CHECK_FALSE(holds([](int mirror, int i) { return Mirrored{mirror == 0 ? (i + 1) % 4 : i, 1}; }));
  CHECK_FALSE(holds([](int, int i) { return Mirrored{i + 4, 1}; }));
  CHECK_FALSE(holds([](int, int i) { return Mirrored{i ^ 1, i == 0 ? -1 : 1}; }));
  // each undoes itself, and their order matters: 0 <-> 1, then 1 <-> 2
  CHECK_FALSE(holds([](int mirror, int i) {
    return Mirrored{i == mirror ? mirror + 1 : i == mirror + 1 ? mirror : i, 1};
  }));
  CHECK_FALSE(holds([](int mirror, int i) {  // signs
    return mirror == 0 ? Mirrored{i ^ 1, 1} : Mirrored{i, i == 0 ? -1 : 1};
  }));
  // from what a policy sees to what it does not
  CHECK_FALSE(detail::are_mirrors<Symmetric::Environment>(
      4, 3, [](int, int i) { return Mirrored{i ^ 1, 1}; }));
}
