// Test: threads
// Distillation: the teacher's run within the run, whose actions a rollout has, the gradient of the
// student, who acts, and that neither tiles, devices, threads nor checkpoints change a bit.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "any_threads.h"
#include "point_environment.h"
#include "resumed_run.h"
#include "rltools/rl/algorithms/distillation/distillation.h"
#include "rltools/rl/environments/masked_pendulum.h"
#include "rltools/rl/evaluation.h"
#include "training_run.h"

using namespace rlt;
using training_run::Run;

namespace rlt {

// The point whose strength is known: an action is what moves it, with any strength.
struct KnownPoint : RandomPoint {
  static constexpr const char* kName = "known-point";
};
inline void translate_action(Generic, const KnownPoint&, const RandomPoint::Parameters& parameters,
                             const float* action, float* result) {
  for (int i = 0; i < 2; i++) result[i] = 0.25f / parameters.strength * action[i];
}
inline StepResult<float> step(Generic device, const KnownPoint& point,
                              const RandomPoint::Parameters& parameters, RandomPoint::State& state,
                              const float* action, RandomStream random) {
  float translated[2];
  translate_action(device, point, parameters, action, translated);
  return step(device, static_cast<const Point<float>&>(point), parameters, state, translated,
              random);
}

// The same by other steps, for which an action is half of it.
struct OtherPoint : KnownPoint {};
inline void translate_action(Generic device, const OtherPoint&,
                             const RandomPoint::Parameters& parameters, const float* action,
                             float* result) {
  translate_action(device, KnownPoint{}, parameters, action, result);
  for (int i = 0; i < 2; i++) result[i] *= 0.5f;
}

}  // namespace rlt

namespace {

// Episodes of 7 steps end within windows of 4, and at their ends.
template <class T>
struct SmallTeacher {
  static constexpr const char* kName = "small-teacher";
  using Scalar = T;
  using Environment = Pendulum<T>;
  using Algorithm = Ppo;
  using Actor = Mlp<T, Dimensions<3, 6, 1>, Activation::tanh, Activation::identity>;
  using Critic = Mlp<T, Dimensions<3, 5, 1>, Activation::relu, Activation::identity>;
  struct Hyperparameters : PpoHyperparameters {
    Hyperparameters() {
      steps = 30;
      n_epochs = 2;
      learning_rate = 2e-3f;
    }
  };
  static constexpr int kEnvironments = 2;
  static constexpr int kRolloutSteps = 8;
  static constexpr int kEpisodeSteps = 9;
  static constexpr int kBatchSize = 8;
  static constexpr int kTileRows = 4;
};
template <class T>
struct SmallOf {
  static constexpr const char* kName = "small";
  using Scalar = T;
  using Environment = MaskedPendulum<T>;
  using Algorithm = Distillation;
  using Teacher = SmallTeacher<T>;
  using Actor =
      Sequential<T, 2, Dense<4, Activation::relu>, Gru<5>, Dense<1, Activation::identity>>;
  struct Hyperparameters : DistillationDefaults<Teacher> {
    Hyperparameters() {
      this->steps = 300;
      this->teacher_acts = 0.5f;
      this->student_epochs = 2;
    }
  };
  static constexpr int kEnvironments = 3;
  static constexpr int kRolloutSteps = 16;
  static constexpr int kEpisodeSteps = 7;
  static constexpr int kBatchSize = 16;
  static constexpr int kTileRows = 8;
  static constexpr int kWindowSteps = 4;
};
using Small = SmallOf<float>;
using Exact = SmallOf<double>;
struct WithoutState : Small {
  using Actor = Mlp<float, Dimensions<2, 6, 1>, Activation::relu, Activation::identity>;
  static constexpr int kWindowSteps = 1;
};

// An action of the teacher's environment is another one of the student's, or the same.
template <class Seen>
struct PointTeacher : SmallTeacher<float> {
  using Environment = Seen;
  using Actor = Mlp<float, Dimensions<3, 6, 2>, Activation::tanh, Activation::identity>;
};
template <class Seen>
struct PointStudent : WithoutState {
  using Environment = RandomPoint;
  using Teacher = PointTeacher<Seen>;
  using Actor = Mlp<float, Dimensions<3, 6, 2>, Activation::relu, Activation::identity>;
};

struct OtherStudent : PointStudent<KnownPoint> {
  using AskedIn = OtherPoint;
};

// Half of the episodes that terminated begin again with their parameters.
struct Retrying : PointStudent<RandomPoint> {
  struct Hyperparameters : WithoutState::Hyperparameters {
    Hyperparameters() { retry = 0.5f; }
  };
};

constexpr int kTeachersCalls = 2 * (8 + 2 * 2);  // two iterations: 32 steps
constexpr int kStudentsCalls = 16 + 2 * 3;       // an iteration: two epochs of three minibatches

template <class E, class Device>
std::string hash_of(Device device, std::uint32_t calls) {
  Run<E> run(5);
  initialize(device, run.training);
  run.train(device, calls);
  return run.state_sha256();
}

// The student's loss over the rows of the minibatch that scratch.row has.
double loss_of(Training<Exact>& training) {
  return Distillation::compute_gradient(Generic{}, training);
}

}  // namespace

TEST_CASE("the first part of a run is the teacher's, bit by bit") {
  Run<Small> run(3);
  Run<SmallTeacher<float>> alone(3);
  initialize(Generic{}, run.training);
  initialize(Generic{}, alone.training);
  const auto teachers_state = [&] {
    std::vector<std::uint8_t> bytes;
    auto teacher = distillation::teacher_of(run.training);
    for_each_state_tensor(teacher, [&](const TensorInfo& info, void* data) {
      for_each_piece(info, data, [&](const std::uint8_t* piece, std::uint32_t count) {
        bytes.insert(bytes.end(), piece, piece + count);
      });
    });
    return bytes;
  };
  int calls = 0;
  for (; !finished(alone.training); calls++) {
    const auto report = run.step(Generic{});
    const auto expected = alone.step(Generic{});
    CHECK(is_known(report.metrics.kl) == is_known(expected.metrics.kl));
    CHECK(report.episodes_ended == expected.episodes_ended);
    CHECK(steps_done(run.training) == steps_done(alone.training));
    REQUIRE(teachers_state() == alone.state());
  }
  CHECK(calls == kTeachersCalls);
  CHECK(steps_done(run.training) == 32);
  CHECK(run.learner->progress.best_return != run.learner->progress.best_return);  // NaN again
  run.train(Generic{}, 2 * kStudentsCalls);
  CHECK(teachers_state() == alone.state());  // which does not learn any more
  CHECK(steps_done(run.training) == 32 + 2 * 48);
  while (!finished(run.training)) run.step(Generic{});
  CHECK(steps_done(run.training) == 32 + 6 * 48);  // to the end of an iteration
}

TEST_CASE("a rollout has the teacher's actions, which it takes itself at first and never at last") {
  Run<Small> run(4);
  initialize(Generic{}, run.training);
  run.train(Generic{}, kTeachersCalls);
  auto& rollout = *run.replay;
  auto teacher = distillation::teacher_of(run.training);
  for (int iteration = 0; iteration < 5; iteration++) {
    CAPTURE(iteration);
    int by_teacher = 0;
    for (int step = 0; step < Small::kRolloutSteps; step++) {
      const auto share = Distillation::student_share(run.training);
      // What each would do, computed by hand.
      float expected[3], own[3];
      for (int i = 0; i < 3; i++) {
        const auto& state = run.learner->environments.state[i];
        Matrix<float, 1, 3> seen;
        Matrix<float, 1, 1> action;
        observe(Generic{}, Pendulum<float>{}, {}, state, seen.data(), {});
        act(Generic{}, teacher, seen, action);
        expected[i] = action(0, 0);
        Matrix<float, 1, 2> normalized;
        WindowBuffer<Small::Actor, 1, 1> buffer;
        float hidden[5];
        std::memcpy(hidden, rollout.actor_state.present + i * 5, sizeof hidden);
        normalize_part<2>(run.learner->normalizer, rollout.current_observation + i * 3,
                          normalized.data());
        forward_step(Generic{}, run.learner->actor, normalized, MatrixView<float, 1, 5>{hidden},
                     action, buffer);
        own[i] = math::clamp(action(0, 0), -1.0f, 1.0f);
      }
      run.step(Generic{});
      const int first_count = share < 0.5f ? static_cast<int>((1.0f - share / 0.5f) * 3.0f) : 0;
      for (int i = 0; i < 3; i++) {
        CHECK(rollout.mean[step * 3 + i] == expected[i]);
        CHECK(rollout.action[step * 3 + i] == (i < first_count ? expected[i] : own[i]));
      }
      by_teacher += first_count;
    }
    CHECK((by_teacher == 0) == (iteration >= 2));
    run.train(Generic{}, kStudentsCalls - Small::kRolloutSteps);
    REQUIRE(rollout.size == 0);
  }
}

TEST_CASE("the gradient is that of the mean squared difference of the actions") {
  Run<Exact> run(6);
  initialize(Generic{}, run.training);
  run.train(Generic{}, kTeachersCalls + kStudentsCalls + Exact::kRolloutSteps);
  REQUIRE(run.replay->size == 16);
  choose_rows(Generic{}, run.training, run.learner->progress.step);
  loss_of(run.training);
  const Exact::Actor gradient = run.scratch->actor_gradient;
  auto& values = run.learner->actor.values;
  double largest = 0;
  for (int i = 0; i < Exact::Actor::kParameterCount; i++) {
    CAPTURE(i);
    const double before = values[i], step = 1e-6;
    values[i] = before + step;
    const double above = loss_of(run.training);
    values[i] = before - step;
    const double below = loss_of(run.training);
    values[i] = before;
    CHECK(gradient.values[i] ==
          doctest::Approx((above - below) / (2 * step)).epsilon(1e-5).scale(1e-3));
    largest = std::max(largest, std::abs(gradient.values[i]));
  }
  CHECK(largest > 1e-3);
}

TEST_CASE("neither the tile, the device nor the number of threads changes a bit") {
  const std::uint32_t calls = kTeachersCalls + 2 * kStudentsCalls + 5;
  const std::string hash = hash_of<Small>(Generic{}, calls);
  training_run::with_any_threads(
      [&](HostThreads device) { CHECK(hash_of<WithTileRows<Small, 16>>(device, calls) == hash); });
}

TEST_CASE("a run goes on from any of its states as if it had not been interrupted") {
  training_run::check_goes_on<Small>(Generic{}, kTeachersCalls + 2 * kStudentsCalls);
  training_run::check_goes_on<Retrying>(Generic{}, kTeachersCalls + 2 * kStudentsCalls);
}

TEST_CASE("states that no run has are told apart") {
  const auto is_refused = [](auto&& change) {
    Run<Small> run(8);
    initialize(Generic{}, run.training);
    run.train(Generic{}, kTeachersCalls + 3);
    REQUIRE(state_is_consistent(run.training));
    change(run);
    return !state_is_consistent(run.training);
  };
  CHECK(is_refused([](auto& run) { run.replay->size = 17; }));
  CHECK(is_refused([](auto& run) { run.replay->teacher.size = 9; }));
  CHECK(is_refused([](auto& run) { run.learner->minibatches = 1; }));
  CHECK(is_refused([](auto& run) { run.learner->environments.episode_step[1] = 7; }));
  CHECK(is_refused([](auto& run) { run.learner->progress.step = 31; }));
}

TEST_CASE("a step that is not finite is reported, and nothing is stepped with it") {
  Run<Small> run(9);
  initialize(Generic{}, run.training);
  run.train(Generic{}, kTeachersCalls);
  run.learner->teacher.actor.values[0] = static_cast<float>(math::kQuietNan);
  const auto before = run.learner->environments.state[0];
  CHECK_FALSE(run.step(Generic{}).finite);
  CHECK(std::memcmp(&before, &run.learner->environments.state[0], sizeof before) == 0);
  CHECK(run.replay->size == 0);
}

TEST_CASE("an action is translated by the parameters of its episode") {
  using E = OtherStudent;
  Run<E> run(2);
  initialize(Generic{}, run.training);
  auto teacher = distillation::teacher_of(run.training);
  while (!finished(teacher)) run.step(Generic{});
  const auto& rollout = *run.replay;
  for (int step = 0; step < E::kRolloutSteps; step++) {
    float expected[E::kEnvironments][2];
    for (int i = 0; i < E::kEnvironments; i++) {
      Matrix<float, 1, 3> seen;
      Matrix<float, 1, 2> action;
      const auto& environments = run.learner->environments;
      observe(Generic{}, KnownPoint{}, environments.at(i), environments.state[i], seen.data(),
              RandomStream{2, Purpose::teacher_observation, steps_done(run.training),
                           static_cast<std::uint32_t>(i)});
      act(Generic{}, teacher, seen, action);
      translate_action(Generic{}, AskedIn<E>{}, environments.at(i), action.data(), expected[i]);
    }
    run.step(Generic{});
    for (int i = 0; i < E::kEnvironments; i++) {
      const int row = step * E::kEnvironments + i;
      for (int k = 0; k < 2; k++) CHECK(rollout.mean[row * 2 + k] == expected[i][k]);
    }
  }
}

TEST_CASE("episodes that terminated begin again with their parameters, as many as are to") {
  using E = Retrying;
  for (const float share : {0.0f, 0.5f, 1.0f}) {
    CAPTURE(share);
    Run<E> run(11);
    run.training.hyperparameters.retry = share;
    run.training.hyperparameters.steps = 3000;
    initialize(Generic{}, run.training);
    auto teacher = distillation::teacher_of(run.training);
    while (!finished(teacher)) run.step(Generic{});
    auto& rollout = *run.replay;
    auto& environments = run.learner->environments;
    int terminated = 0, again = 0;
    while (!finished(run.training)) {
      const int row = static_cast<int>(rollout.size) * E::kEnvironments;
      if (rollout.size == static_cast<std::uint32_t>(E::kRolloutSteps)) {
        run.step(Generic{});
        continue;
      }
      float before[E::kEnvironments];
      for (int i = 0; i < E::kEnvironments; i++) before[i] = environments.at(i).strength;
      run.step(Generic{});
      for (int i = 0; i < E::kEnvironments; i++) {
        const auto done = rollout.done[row + i];
        const bool is_same = environments.at(i).strength == before[i];
        if (done != rollout.kTerminated) {
          CHECK(is_same == (done == rollout.kRunning));
          continue;
        }
        terminated++;
        again += is_same;
        // It has begun: at its first step, seen as it is.
        CHECK(environments.episode_step[i] == 0);
        float seen[3];
        observe_first(Generic{}, RandomPoint{}, environments, i, 11, seen);
        for (int k = 0; k < 3; k++) CHECK(rollout.current_observation[i * 3 + k] == seen[k]);
      }
    }
    REQUIRE(terminated > 100);
    CHECK(static_cast<float>(again) / static_cast<float>(terminated) ==
          doctest::Approx(share).scale(1).epsilon(0.15));
  }
}
