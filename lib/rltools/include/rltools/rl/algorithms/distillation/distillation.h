// Distillation of a teacher, whose environment tells it more, into a student, whose does not: on
// the student's own trajectories (DAgger, Ross, Gordon and Bagnell 2011, "A reduction of imitation
// learning and structured prediction to no-regret online learning", arXiv 1011.0686).
//
// A run has two parts. In the first `teacher_steps` steps the teacher learns, by an experiment of
// its own with PPO. Then an iteration of the student: its environments take kRolloutSteps steps
// each, in which the teacher is asked what it would do; and `student_epochs` times all rows are
// gone through, kBatchSize at a time, with an Adam step each on
//   mean (student(observations) - action of the teacher)^2
// by windows of kWindowSteps steps where the student is recurrent (rl/windows.h). The student acts,
// but for a share of the environments that falls from 1 to 0 in the part `teacher_acts` of its
// steps, in which the teacher does.
//
// teacher.h has what the two environments have in common.
// Actions: a teacher's
#pragma once

#include <type_traits>

#include "rltools/core/require.h"
#include "rltools/nn/loss.h"
#include "rltools/rl/algorithms/distillation/parameters.h"
#include "rltools/rl/algorithms/distillation/teacher.h"
#include "rltools/rl/algorithms/ppo.h"
#include "rltools/rl/fingerprint.h"

namespace rlt {

struct Distillation : OnPolicy {
  static constexpr const char* kName = "Distillation";
  using Metrics = DistillationMetrics;
  using TaskHyperparameters = DistillationHyperparameters;  // as the reference lists them
  using Reads = ReadsWindows;

  // ---- What is learned --------------------------------------------------------------------------

  template <class E>
  struct Learner {
    using T = typename E::Scalar;
    rlt::Learner<typename E::Teacher> teacher;
    typename E::Actor actor;
    AdamState<typename E::Actor> actor_optimizer;
    Normalizer<T, kCriticObservationDim<typename E::Environment>> normalizer;
    Environments<E> environments;
    Progress<T> progress;       // of the whole run
    std::uint32_t iteration;    // of the student, complete ones
    std::uint32_t minibatches;  // gone through in this iteration
  };

  // The student's; `mean` has the teacher's actions.
  template <class E>
  struct Replay : OnPolicyRollout<E> {
    rlt::Replay<typename E::Teacher> teacher;
  };

  template <class Device, class E>
  static void initialize(Device device, Training<E>& training) {
    auto& learner = training.learner;
    auto teacher = distillation::teacher_of(training);
    rlt::initialize(device, teacher);
    initialize_kaiming(device, learner.actor, training.hyperparameters.seed, 2);
    rlt::initialize(learner.actor_optimizer);
    rlt::initialize(learner.normalizer);
    begin_rollouts(device, training);
  }

  template <class E>
  static OnPolicyRollout<E>& rollout_of(const Training<E>& training) {
    return training.replay;
  }

  // Return the part of the student's steps that is done: 0 to 1.
  template <class E>
  static typename E::Scalar student_share(const Training<E>& training) {
    using T = typename E::Scalar;
    const std::uint32_t before = training.learner.teacher.progress.step;
    const std::uint32_t all = training.hyperparameters.steps;
    if (all <= before) return T(1);
    const T done = static_cast<T>(training.learner.progress.step - before);
    return math::minimum(done / static_cast<T>(all - before), T(1));
  }

  // ---- A step of training -----------------------------------------------------------------------

  // Take a step of the teacher's training, a step of the student's environments, or learn from one
  // minibatch.
  template <class Device, class E>
  static StepReport<E> train_step(Device device, Training<E>& training) {
    StepReport<E> report;
    auto teacher = distillation::teacher_of(training);
    if (!finished(teacher)) {
      teach(device, training, teacher, report);
    } else if (training.replay.size < static_cast<std::uint32_t>(E::kRolloutSteps)) {
      collect_with_teacher(device, training, teacher, report);
    } else {
      learn(device, training, report);
    }
    return report;
  }

  // Take a step of the teacher's training.
  template <class Device, class E>
  static void teach(Device device, Training<E>& training, Training<typename E::Teacher>& teacher,
                    StepReport<E>& report) {
    const auto teachers = rlt::train_step(device, teacher);
    report.finite = teachers.finite;
    report.episodes_ended = teachers.episodes_ended;
    report.episode_return = teachers.episode_return;
    report.episode_returns = teachers.episode_returns;
    report.episode_steps = teachers.episode_steps;
#define RLT_DISTILLATION_TAKE(Name, Description) report.metrics.Name = teachers.metrics.Name;
    RLT_PPO_METRICS(RLT_DISTILLATION_TAKE)
#undef RLT_DISTILLATION_TAKE
    auto& progress = training.learner.progress;
    progress = teacher.learner.progress;
    const auto nan = static_cast<typename E::Scalar>(math::kQuietNan);
    if (finished(teacher)) progress.last_return = progress.best_return = nan;
  }

  // Choose what is done: the teacher's action in the first environments, as many as its share, else
  // the student's.
  template <class E>
  static void choose_actions(Training<E>& training) {
    using T = typename E::Scalar;
    constexpr int kEnvironments = kEnvironmentCount<E>, kAction = E::Environment::kActionDim;
    auto& scratch = training.scratch;
    const T lasts = static_cast<T>(training.hyperparameters.teacher_acts);
    const T done = student_share(training);
    const T share = done < lasts ? T(1) - done / lasts : T(0);
    const int by_teacher = static_cast<int>(share * static_cast<T>(kEnvironments));
    for (int i = 0; i < kEnvironments * kAction; i++) {
      const auto& by = i < by_teacher * kAction ? scratch.teacher_action : scratch.student_action;
      scratch.action.data()[i] = math::clamp(by.data()[i], T(-1), T(1));
    }
  }

  // Begin again, with the same parameters, the part `retry` of the episodes that terminated. The
  // others are drawn, and so what the student cannot do yet would be a small part of its rows:
  // episodes that fail are short.
  template <class Device, class E>
  static void retry(Device device, Training<E>& training,
                    const Transition<typename E::Scalar>* transitions) {
    using Environment = typename E::Environment;
    if constexpr (kSamplesParameters<Environment>) {
      auto& environments = training.learner.environments;
      auto& rollout = rollout_of(training);
      const std::uint32_t seed = training.hyperparameters.seed;
      const auto environment = environment_of(training);
      for (int i = 0; i < kEnvironmentCount<E>; i++) {
        if (!transitions[i].terminated || transitions[i].non_finite) continue;
        const RandomStream random{seed, Purpose::retry, environments.episodes[i],
                                  static_cast<std::uint32_t>(i)};
        if (!(uniform<float>(random, 0, 0.0f, 1.0f) < training.hyperparameters.retry)) continue;
        environments.values[i] = training.scratch.tried.values[i];
        reset_environment(device, environment, environments, i, seed);
        observe_first(device, environment, environments, i, seed,
                      rollout.current_observation + i * rollout.kObservationDim);
      }
    }
  }

  // Take a step of every environment. Actions that are not finite are a fault: no environment is
  // stepped.
  template <class Device, class E>
  static void collect_with_teacher(Device device, Training<E>& training,
                                   const Training<typename E::Teacher>& teacher,
                                   StepReport<E>& report) {
    constexpr int kEnvironments = kEnvironmentCount<E>, kAction = E::Environment::kActionDim;
    auto& learner = training.learner;
    auto& scratch = training.scratch;
    auto& rollout = rollout_of(training);
    const auto at = static_cast<int>(rollout.size) * kEnvironments;
    normalize_rows<kEnvironments>(device, learner.normalizer, rollout.current_observation,
                                  scratch.present.data());
    forward_present(device, training, learner.actor, actor_state_of(rollout), rollout.size,
                    policy_part(device, scratch.present, scratch), scratch.student_action,
                    scratch.acting_buffer);
    distillation::ask_teacher(device, training, teacher);
    const bool all_act = all_finite(scratch.student_action.data(), kEnvironments * kAction) &&
                         all_finite(scratch.teacher_action.data(), kEnvironments * kAction);
    if (!all_act) return note_no_action(report, rollout.current_observation);
    choose_actions(training);
    for (int i = 0; i < kEnvironments * kAction; i++) {
      rollout.mean[at * kAction + i] = scratch.teacher_action.data()[i];
      rollout.action[at * kAction + i] = scratch.action.data()[i];
    }
    scratch.tried = learner.environments;
    step_into_rollout(device, training, report,
                      [&](const auto& transitions) { retry(device, training, transitions); });
  }

  // Compute the student's gradient for the minibatch; return the loss.
  template <class Device, class E>
  static typename E::Scalar compute_gradient(Device device, Training<E>& training) {
    using T = typename E::Scalar;
    constexpr int kTile = E::kTileRows, kAction = E::Environment::kActionDim;
    const auto& learner = training.learner;
    auto& rollout = rollout_of(training);
    auto& scratch = training.scratch;
    T loss = T(0);
    set_zero(device, scratch.actor_gradient);
    for (int first = 0; first < E::kBatchSize; first += kTile) {
      normalize_rows<kTile>(device, learner.normalizer, rollout.observation, scratch.row + first,
                            scratch.observation.data());
      const auto& seen = policy_part(device, scratch.observation, scratch);
      for (int i = 0; i < kTile; i++) {
        for (int k = 0; k < kAction; k++) {
          scratch.tile_target(i, k) = rollout.mean[scratch.row[first + i] * kAction + k];
        }
      }
      find_beginnings(training, first);
      forward_tile(device, training, learner.actor, actor_state_of(rollout), first, seen,
                   scratch.tile_action, scratch.actor_buffer);
      loss += mean_squared_error<kTile * kAction>(
          device, scratch.tile_action.data(), scratch.tile_target.data(),
          static_cast<T>(E::kBatchSize * kAction), scratch.action_gradient.data());
      backward_tile(device, training, learner.actor, seen, scratch.tile_action,
                    scratch.actor_buffer, scratch.action_gradient.data(), scratch.actor_gradient);
    }
    return loss;
  }

  // Learn from one minibatch: take an Adam step of the student. The last one of an iteration ends
  // it.
  template <class Device, class E>
  static void learn(Device device, Training<E>& training, StepReport<E>& report) {
    using T = typename E::Scalar;
    auto& learner = training.learner;
    auto& scratch = training.scratch;
    const auto& hyper = training.hyperparameters;
    choose_rows(device, training, learner.progress.step);
    const T loss = compute_gradient(device, training);
    const T norm = bound_norm(device, static_cast<T>(hyper.max_grad_norm), scratch.actor_gradient);
    const T rate =
        static_cast<T>(hyper.student_learning_rate) *
        squared_rate_factor(static_cast<T>(hyper.student_lr_end_factor), student_share(training));
    const AdamParameters<T> adam = adam_parameters(hyper, rate);
    adam_step(device, adam, learner.actor_optimizer, scratch.actor_gradient, learner.actor);
    learner.minibatches++;
    learner.progress.updates++;
    report.metrics.imitation_loss = static_cast<float>(loss);
    report.metrics.student_learning_rate = static_cast<float>(rate);
    report.metrics.gradient_norm = static_cast<float>(norm);
    report.finite = is_finite(loss) && is_finite(norm);
    constexpr auto kCount = static_cast<std::uint32_t>(kMinibatches<E>);
    if (learner.minibatches >= hyper.student_epochs * kCount) end_iteration(device, training);
  }

  template <class E>
  static bool is_complete(const Training<E>& training) {
    return training.replay.size == 0 && finished(distillation::teacher_of(training));
  }

  template <class E>
  static bool is_consistent(const Training<E>& training) {
    return state_is_consistent(distillation::teacher_of(training)) &&
           training.learner.teacher.progress.step <= training.learner.progress.step &&
           OnPolicy::is_consistent(training);
  }

  // ---- The experiment ---------------------------------------------------------------------------

  // An experiment E names its Environment, Actor (the student), Teacher (an experiment that learns
  // by PPO), kEnvironments, kRolloutSteps, kBatchSize, kTileRows, kEpisodeSteps and, of a recurrent
  // student, kWindowSteps, as for PPO. Its Hyperparameters are DistillationHyperparameters, or
  // derive from DistillationDefaults<Teacher>.
  template <class E>
  struct ExperimentContract {
    template <bool Asserts>
    static constexpr bool check() {
      bool kept = true;
      RLT_REQUIRE((std::is_same_v<typename E::Teacher::Algorithm, Ppo>),
                  "the teacher's algorithm is not PPO");
      return kept && StudentContract<E>::template check<Asserts>();
    }
  };

  // Visit also the teacher's sizes, and a hash of its environment's behavior: the student's alone
  // would not tell one teacher from another.
  template <class E, class Visitor>
  static void for_each_size(Visitor&& visitor) {
    using Teacher = typename E::Teacher;
    OnPolicy::for_each_size<E>(visitor);
    visitor("teacher_environments", kEnvironmentCount<Teacher>);
    visitor("teacher_rollout_steps", Teacher::kRolloutSteps);
    visitor("teacher_batch_size", Teacher::kBatchSize);
    visitor("teacher_episode_steps", static_cast<int>(Teacher::kEpisodeSteps));
    visitor("teacher_mirrors", kMirrorsLearned<Teacher>);
    visitor("teacher_behavior",
            static_cast<int>(detail::behavior_hash<typename Teacher::Environment>() >> 1));
    if constexpr (!std::is_same_v<AskedIn<E>, typename Teacher::Environment>) {
      visitor("teacher_asked", static_cast<int>(detail::behavior_hash<AskedIn<E>>() >> 1));
    }
  }
  template <class E, class Visitor>
  static void for_each_network(const Training<E>& training, Visitor&& visitor) {
    visitor("actor", training.learner.actor);
    visitor("teacher_actor", training.learner.teacher.actor);
    visitor("teacher_critic", training.learner.teacher.critic);
  }

  // ---- State and scratch memory -----------------------------------------------------------------

  // Visit the state in the documented order (docs/protocol.md): the teacher's; network, optimizer
  // moments, normalizer, progress, environments, rollout, hidden states.
  template <class E, class Visitor>
  static void for_each_state_tensor(Training<E>& training, Visitor&& visitor) {
    auto& learner = training.learner;
    auto teacher = distillation::teacher_of(training);
    rlt::for_each_state_tensor(teacher, [&](const TensorInfo& info, void* data) {
      TensorInfo owned = info;
      owned.owner = "teacher";
      visitor(owned, data);
    });
    for_each_tensor("actor", learner.actor, visitor);
    visit_optimizer("actor_optimizer/first_moment", "actor_optimizer/second_moment",
                    "actor_optimizer/decay_power", learner.actor_optimizer, visitor);
    for_each_normalizer_tensor(learner.normalizer, visitor);
    for_each_environment_tensor(training, visitor);
    visit_progress("iteration", &learner.iteration, 1, false, visitor);
    visit_progress("minibatches", &learner.minibatches, 1, false, visitor);
    for_each_rollout_tensor(rollout_of(training), visitor);
    for_each_state_of_rollout(rollout_of(training), visitor);
  }

  template <class E>
  struct Scratch : PolicyRows<typename E::Environment, kMaxPolicyRows<E>>,
                   WindowScratch<E, kMaxTruncations<E>>,
                   TransitionScratch<E> {
    using T = typename E::Scalar;
    using Teacher = AskedIn<E>;
    static constexpr int kEnvironments = kEnvironmentCount<E>, kTile = E::kTileRows;
    static constexpr int kObservation = kCriticObservationDim<typename E::Environment>;
    static constexpr int kAction = E::Environment::kActionDim;

    rlt::Scratch<typename E::Teacher> teacher;

    // A step of the environments: their parameters, what both observe, what each would do, and what
    // is done.
    ParameterSets<typename E::Environment, kEnvironments> tried;
    Matrix<T, kEnvironments, kObservation> present;
    Matrix<T, kEnvironments, kAction> student_action, teacher_action, action;
    Matrix<T, kEnvironments, kObservation> unused_observation;
    StepBuffer<typename E::Actor, kEnvironments> acting_buffer;
    T teacher_row[kCriticObservationDim<Teacher>];
    Matrix<T, kEnvironments, Teacher::kObservationDim> teacher_observation;
    MlpBuffer<typename E::Teacher::Actor, kEnvironments> teacher_buffer;

    // A minibatch, and a tile of it.
    std::uint32_t row[E::kBatchSize];
    Matrix<T, kTile, kObservation> observation;
    Matrix<T, kTile, kAction> tile_action, tile_target, action_gradient;
    TileBuffer<E, typename E::Actor> actor_buffer;
    TileGradientBuffer<E, E::Actor::widest_hidden()> gradient_buffer;
    typename E::Actor actor_gradient;
  };
};

}  // namespace rlt
