// An experiment as a module of WebAssembly that imports nothing: a page or a program calls these
// functions to train it step by step, and to run a policy image in its environment. Numbers are
// passed as they are; arrays and texts by their address in the module's memory, all of it static.
// What the numbers mean (hyperparameters, metrics, channels), the experiment's description says
// (docs/protocol.md, "Experiment description"), in the order of these indices.
#include "app/services/training/checkpoint_state.h"
#include "app/services/training/non_finite_text.h"
#include "app/train/trained_experiment.h"
#include "rltools/core/self_test.h"
#include "rltools/policy/runtime.h"
#include "rltools/rl/evaluation.h"
#include "rltools/rl/policy_of_training.h"
#include "rltools/rl/reports.h"

#define RLT_EXPORT(Name) extern "C" [[clang::export_name(#Name)]]

namespace {

using Experiment = rlt::program::Experiment;
using Environment = Experiment::Environment;
using Hyperparameters = rlt::RunHyperparameters<Experiment>;
using Metrics = Experiment::Algorithm::Metrics;
const rlt::RLT_DEVICE device{};

rlt::Learner<Experiment> learner;
rlt::Replay<Experiment> replay;
rlt::Scratch<Experiment> scratch;
rlt::Training<Experiment> training{{}, learner, replay, scratch};
rlt::MetricMeans<Metrics> metrics;
rlt::NonFiniteText non_finite_step;
const char* why_stopped = "";

}  // namespace

// ---- Arithmetic ---------------------------------------------------------------------------------

// 0 where this module computes the bits of every other device here, which it must before anything
// else is asked of it; else what differs.
RLT_EXPORT(arithmetic_fault) int arithmetic_fault() {
  return static_cast<int>(rlt::find_arithmetic_fault());
}
RLT_EXPORT(arithmetic_fault_text) const char* arithmetic_fault_text(int fault) {
  return rlt::arithmetic_fault_text(static_cast<rlt::ArithmeticFault>(fault));
}

// ---- Training -----------------------------------------------------------------------------------

RLT_EXPORT(fingerprint) std::uint32_t fingerprint() { return rlt::fingerprint(training); }

// The four bytes of a hyperparameter; setting one says whether it lies within its bounds.
RLT_EXPORT(get_hyperparameter) std::uint32_t get_hyperparameter(int index) {
  return training.hyperparameters.get_bits(index);
}
RLT_EXPORT(set_hyperparameter) bool set_hyperparameter(int index, std::uint32_t bits) {
  return training.hyperparameters.set_bits(index, bits);
}

// From the hyperparameters: no step done.
RLT_EXPORT(begin_training) void begin_training() {
  initialize(device, training);
  metrics.clear();
  why_stopped = "";
}

namespace {
enum class Progress : int { training, evaluation_due, finished, not_finite };

constexpr const char* kWeight = "training stopped: a weight is not finite";

Progress stop(const char* why) {
  why_stopped = why;
  return Progress::not_finite;
}
Progress stop(const rlt::NonFiniteText& text) {
  non_finite_step = text;
  return stop(non_finite_step.text());
}

}  // namespace

// At most `calls` pieces of work: a step of every environment, or a part of the updates. It ends
// sooner where an evaluation falls due, as a board has it (training_service.h), and with the run,
// whose last policy is evaluated too.
RLT_EXPORT(train) Progress train(std::uint32_t calls) {
  for (; calls > 0 && !finished(training); calls--) {
    const std::uint32_t before = steps_done(training);
    const auto report = train_step(device, training);
    metrics.add(report.metrics);
    if (!report.finite) {
      const bool is_loss = report.non_finite.environment == report.non_finite.kNone;
      return is_loss ? stop("training stopped: a loss is not finite")
                     : stop(non_finite_text(training, report));
    }
    if (!finished(training) && is_evaluation_due(training, before)) {
      return networks_are_finite(training) ? Progress::evaluation_due : stop(kWeight);
    }
  }
  if (!finished(training)) return Progress::training;
  if (!networks_are_finite(training)) return stop(kWeight);
  return state_is_finite(training) ? Progress::finished
                                   : stop("training stopped: a number is not finite");
}

// Why, as a board says it (docs/protocol.md, "Texts"), where train() gave not_finite or an
// evaluation met a step that is not finite; else "".
RLT_EXPORT(stopped_text) const char* stopped_text() { return why_stopped; }

RLT_EXPORT(steps_done) std::uint32_t steps_done() { return rlt::steps_done(training); }
RLT_EXPORT(updates_done) std::uint32_t updates_done() { return learner.progress.updates; }
RLT_EXPORT(episodes_done) std::uint32_t episodes_done() {
  return episodes_ended(learner.environments);
}
// Return the return of the last training episode; NaN before the first has ended.
RLT_EXPORT(last_return) float last_return() { return learner.progress.last_return; }

// A metric's mean since the last call of clear_metrics(); NaN where no step computed it.
RLT_EXPORT(metric) float metric(int index) { return metrics.get(index); }
RLT_EXPORT(clear_metrics) void clear_metrics() { metrics.clear(); }

// ---- Evaluation ---------------------------------------------------------------------------------

namespace {
rlt::Evaluation<Experiment> evaluation;
}

RLT_EXPORT(begin_evaluation) void begin_evaluation() {
  begin_evaluation(device, training, evaluation);
}
// At most so many steps; false once all episodes have ended, or by a step that is not finite.
RLT_EXPORT(evaluate) bool evaluate(std::uint32_t steps) {
  for (; steps > 0; steps--) {
    if (evaluate_step(device, training, evaluation)) continue;
    const auto& non_finite = evaluation.non_finite;
    if (non_finite.environment != non_finite.kNone) stop(non_finite_text(evaluation));
    return false;
  }
  return true;
}
RLT_EXPORT(evaluation_mean) float evaluation_mean() { return evaluation_report(evaluation).mean; }
RLT_EXPORT(evaluation_std) float evaluation_std() { return evaluation_report(evaluation).std; }

// ---- The state and its checkpoint ---------------------------------------------------------------

namespace {
rlt::CheckpointHeader checkpoint;
alignas(16) std::uint8_t transfer[1 << 16];
}  // namespace

RLT_EXPORT(state_bytes) std::uint32_t state_bytes() { return rlt::state_bytes(training); }

// The header of /checkpoint.rltc (docs/protocol.md, "Checkpoint"): state_header() makes that of the
// present state. For a checkpoint from elsewhere the header is written here, then the state by
// write_state(), then checkpoint_reason() says whether it is whole and of this experiment; where it
// is not, 0, the module's state is that of no run.
RLT_EXPORT(checkpoint_header) rlt::CheckpointHeader* checkpoint_header() { return &checkpoint; }
RLT_EXPORT(state_header) void state_header() {
  std::uint8_t sha256[rlt::Sha256::kDigestBytes];
  hash_state(training, sha256);
  checkpoint = rlt::make_checkpoint_header(fingerprint(), state_bytes(), steps_done(), sha256);
}
RLT_EXPORT(header_reason) int header_reason() {
  return static_cast<int>(rlt::check_header(checkpoint, fingerprint(), state_bytes()));
}
RLT_EXPORT(checkpoint_reason) int checkpoint_reason() {
  metrics.clear();
  why_stopped = "";
  return static_cast<int>(check_state(training, checkpoint));
}
RLT_EXPORT(checkpoint_reason_text) const char* checkpoint_reason_text(int reason) {
  return rlt::checkpoint_reason_text(static_cast<rlt::CheckpointReason>(reason));
}

// Bytes of the state, [offset, offset + count), from and to transfer_buffer(), at most
// transfer_bytes() at a time.
RLT_EXPORT(transfer_buffer) std::uint8_t* transfer_buffer() { return transfer; }
RLT_EXPORT(transfer_bytes) std::uint32_t transfer_bytes() { return sizeof(transfer); }
RLT_EXPORT(read_state) void read_state(std::uint32_t offset, std::uint32_t count) {
  rlt::read_state(training, offset, transfer, count);
}
RLT_EXPORT(write_state) void write_state(std::uint32_t offset, std::uint32_t count) {
  rlt::write_state(training, offset, transfer, count);
}

// The SHA-256 of the first `count` bytes of transfer_buffer(): its 32 bytes.
RLT_EXPORT(sha256_of_transfer) const std::uint8_t* sha256_of_transfer(std::uint32_t count) {
  static std::uint8_t digest[rlt::Sha256::kDigestBytes];
  rlt::Sha256 hash;
  hash.update(transfer, count);
  hash.finish(digest);
  return digest;
}

// ---- Policies -----------------------------------------------------------------------------------

namespace {

// Memory of a policy image: that of the training state, or one from elsewhere.
constexpr std::uint32_t kOwnImageBytes = rlt::kPolicyImageBytes<Experiment>;
constexpr std::uint32_t kImageBytes = kOwnImageBytes < (1u << 20) ? 1u << 20 : kOwnImageBytes;
alignas(16) std::uint8_t image[kImageBytes];

// The image with which episodes are played: a copy, so that `image` may change meanwhile.
alignas(16) std::uint8_t played_image[kImageBytes];
rlt::PolicyView played;
bool has_policy = false;
alignas(16) float policy_scratch[1 << 14];
constexpr std::uint32_t kMaxState = 1 << 12;
float hidden_state[kMaxState];  // of the policy in the episode that is played

}  // namespace

RLT_EXPORT(image_buffer) std::uint8_t* image_buffer() { return image; }
RLT_EXPORT(image_capacity) std::uint32_t image_capacity() { return sizeof(image); }

// Write the image of the training state's policy to image_buffer(), and return its size.
RLT_EXPORT(write_policy) std::uint32_t write_policy() {
  state_header();
  auto& own = *reinterpret_cast<std::uint8_t(*)[kOwnImageBytes]>(image);
  build_policy_image(device, training, checkpoint.sha256, own);
  return kOwnImageBytes;
}

// Take the image of `count` bytes in image_buffer() to play episodes with, after all checks of a
// board (docs/policy_image.md); 0 or the reason. Where it is refused there is no policy.
RLT_EXPORT(open_policy) int open_policy(std::uint32_t count) {
  has_policy = false;
  if (count > kImageBytes) return static_cast<int>(rlt::PolicyReason::too_large);
  __builtin_memcpy(played_image, image, count);
  rlt::PolicyVerdict verdict = rlt::parse_policy(played_image, count, played);
  if (verdict.accepted()) {
    verdict = rlt::check_contract(played, rlt::policy_contract<Environment>());
  }
  if (verdict.accepted()) {
    constexpr std::size_t kFloats = sizeof(policy_scratch) / sizeof(float);
    verdict = rlt::check_examples(rlt::Generic{}, played, policy_scratch, kFloats);
  }
  if (verdict.accepted() && state_dim(played) > kMaxState) {
    verdict = {rlt::PolicyReason::too_large, 0};
  }
  has_policy = verdict.accepted();
  for (float& value : hidden_state) value = 0.0f;
  return static_cast<int>(verdict.reason);
}
RLT_EXPORT(policy_reason_text) const char* policy_reason_text(int reason) {
  return rlt::policy_reason_text(static_cast<rlt::PolicyReason>(reason));
}

// Examples of the image that open_policy() took. run_example() runs one here, of a recurrent policy
// from a hidden state of zeros, and leaves at transfer_buffer(), in words of four bytes: its
// observation, the CRC-32 of the output of each of the first kReportedLayers layers, and the action
// in the channels' units; it returns how many layers.
RLT_EXPORT(example_count) std::uint32_t example_count() {
  return has_policy ? played.header->example_count : 0;
}
RLT_EXPORT(run_example) std::uint32_t run_example(std::uint32_t number) {
  constexpr std::uint32_t kReportedLayers = 16;  // as RLT_ACTION has them
  constexpr std::size_t kWords = rlt::kCriticObservationDim<Environment> + kReportedLayers +
                                 std::size_t{Environment::kActionDim};
  static_assert(kWords * 4 <= sizeof(transfer), "an example exceeds transfer_buffer()");
  if (number >= example_count()) return 0;
  const rlt::AliasingFloat* observation = example_observation(played, number);
  std::uint8_t* target = transfer;
  const auto put = [&target](const void* bytes, std::size_t count) {
    __builtin_memcpy(target, bytes, count);
    target += count;
  };
  put(observation, sizeof(float) * played.header->observation_dim);
  std::uint32_t layers = 0;
  const auto report = [&](const float* values, int count) {
    if (layers == kReportedLayers) return;
    const std::uint32_t sum = rlt::crc32(values, sizeof(float) * static_cast<std::size_t>(count));
    put(&sum, sizeof(sum));
    layers++;
  };
  float* output = policy_scratch + scratch_floats_to_run(played);
  float* action = output + played.output_dim;
  policy_forward(rlt::Generic{}, played, observation, nullptr, output, policy_scratch, report);
  scale_action(played, observation, output, action);
  put(action, sizeof(float) * played.header->action_dim);
  return layers;
}

// ---- Episodes -----------------------------------------------------------------------------------

namespace {

// The episode that is played, by the settings of the hyperparameters: one of an evaluation with
// this seed.
struct Episode {
  Environment environment;
  Environment::Parameters parameters;
  Environment::State state;
  std::uint32_t seed, number, step;
  float total;
  float observation[rlt::kCriticObservationDim<Environment>];  // the policy's come first
  float action[Environment::kActionDim];                       // in the channels' units
} episode;

rlt::RandomStream random_of(rlt::Purpose purpose) {
  return {episode.seed, purpose, episode.step, episode.number};
}

void observe_episode() {
  observe(rlt::Generic{}, episode.environment, episode.parameters, episode.state,
          episode.observation, random_of(rlt::Purpose::evaluation_observation));
}

// Compute the network's action, as training takes it: what is no choice in [-1, 1].
void act(float (&action)[Environment::kActionDim]) {
  float output[rlt::kOutputDim<Environment>];
  policy_forward(rlt::Generic{}, played, episode.observation, hidden_state, output, policy_scratch);
  rlt::take_outputs<Environment>(episode.observation, output, action);
}

}  // namespace

RLT_EXPORT(begin_episode) void begin_episode(std::uint32_t seed, std::uint32_t number) {
  episode = {};
  episode.environment = environment_of(training);
  episode.seed = seed;
  episode.number = number;
  for (float& value : hidden_state) value = 0.0f;
  draw_parameters(rlt::Generic{}, episode.environment, episode.parameters,
                  {seed, rlt::Purpose::evaluation_parameters, number});
  reset(rlt::Generic{}, episode.environment, episode.parameters, episode.state,
        rlt::RandomStream{seed, rlt::Purpose::evaluation_reset, number});
  observe_episode();
}

namespace {
enum class Played : int { running, ended, no_policy, not_finite };
}

// One step by the policy. `push` replaces its first action, from -1 to 1 between the bounds of that
// channel; NaN replaces nothing.
RLT_EXPORT(step_episode) Played step_episode(float push) {
  if (!has_policy) return Played::no_policy;
  float action[Environment::kActionDim];
  act(action);
  if (push == push) {
    push = rlt::math::clamp(push, -1.0f, 1.0f);
    const rlt::Channel& channel = Environment::kActions[0];
    action[0] = rlt::kIsDiscrete<Environment>
                    ? rlt::math::floor((push + 1.0f) * 0.5f * channel.maximum + 0.5f)
                    : push;
  }
  if (!rlt::all_finite(action, Environment::kActionDim)) return Played::not_finite;
  for (int i = 0; i < Environment::kActionDim; i++) {
    const rlt::Channel& channel = Environment::kActions[i];
    episode.action[i] = rlt::kIsDiscrete<Environment>
                            ? action[i]
                            : rlt::physical_action(action[i], channel.minimum, channel.maximum);
  }
  const auto result = step(rlt::Generic{}, episode.environment, episode.parameters, episode.state,
                           action, random_of(rlt::Purpose::evaluation_step));
  episode.total += result.reward;
  episode.step++;
  const bool ended = result.terminated || result.truncated || result.lost ||
                     episode.step >= Experiment::kEpisodeSteps;
  observe_episode();
  return ended ? Played::ended : Played::running;
}
// Return the length of a step, s.
RLT_EXPORT(step_s) float step_s() {
  return static_cast<float>(Environment::kStepInterval_us * 1e-6 * Environment::kTicksPerStep);
}
RLT_EXPORT(episode_observation) const float* episode_observation() { return episode.observation; }
RLT_EXPORT(episode_action) const float* episode_action() { return episode.action; }
RLT_EXPORT(episode_step) std::uint32_t episode_step() { return episode.step; }
RLT_EXPORT(episode_return) float episode_return() { return episode.total; }
