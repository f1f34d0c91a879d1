// any_airframe [FLIGHTS [name=value ...]]: trains foundation-quadrotor, with these hyperparameters
// if they are given, and flies airframes that it never trained on: the teacher as it learns and at
// its end, then the student. Prints processor seconds of training on one core and the share of
// flights that succeed, ten times, and at the end by mass and by thrust to weight.
//   cmake --preset host && cmake --build --preset host --target any_airframe
//   build/host/any_airframe 1000 seed=1
//
// A flight is one of the gate hover (docs/gate.md) but for the airframe and the tilt at its start,
// at most 90 degrees, that a policy acts as often as it is trained to, the teacher each 20 ms, the
// student each 10 ms, and that the simulation's step is that of training. It succeeds where it
// stays within 0.2 m of the target for the last second of ten. The draws are those of the
// evaluation's streams, by the gate's seed.
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "foundation_quadrotor.h"
#include "host/assignment.h"
#include "processor_time.h"
#include "rltools/rl/evaluation.h"
#include RLT_DEVICE_HEADER

namespace {

using namespace rlt;
using Foundation = FoundationQuadrotor;

constexpr std::uint32_t kGateSeed = 4000000000u;
constexpr int kFlight_s = 10, kHeld_s = 1;
constexpr float kRadius_m = 0.2f;
constexpr int kMasses = 4, kLifts = 7;
constexpr float kMassBound_kg[kMasses - 1] = {0.08f, 0.32f, 1.3f};

// Flights and those of them that succeeded, by mass and by thrust to weight.
struct Map {
  int flights[kMasses][kLifts] = {}, successes[kMasses][kLifts] = {};

  void add(float mass_kg, float lift, bool succeeded) {
    int row = 0;
    while (row < kMasses - 1 && mass_kg > kMassBound_kg[row]) row++;
    const int column = lift < 1.5f ? 0 : lift >= 5.0f ? kLifts - 1 : static_cast<int>(lift * 2) - 3;
    flights[row][column]++;
    successes[row][column] += succeeded ? 1 : 0;
  }
  void print() const {
    std::printf("mass, kg \\ thrust to weight");
    for (int column = 0; column < kLifts; column++) std::printf("   %.1f+", 1.5 + 0.5 * column);
    for (int row = 0; row < kMasses; row++) {
      std::printf("\nfrom %-22.2f", row == 0 ? 0.02 : static_cast<double>(kMassBound_kg[row - 1]));
      for (int column = 0; column < kLifts; column++) {
        std::printf(" %5.1f%%", 100.0 * successes[row][column] / flights[row][column]);
      }
    }
    std::printf("\n");
  }
};

template <class E>
bool succeeds(Training<E>& training, const typename E::Environment& environment,
              const typename E::Environment::Parameters& parameters, std::uint32_t number) {
  using Environment = typename E::Environment;
  constexpr int kStep_us =
      Environment::kTicksPerStep * static_cast<int>(Environment::kStepInterval_us);
  constexpr int kFlightSteps = kFlight_s * 1000000 / kStep_us;
  constexpr int kHeldSteps = kHeld_s * 1000000 / kStep_us;
  HostSimd device;
  const auto random = [&](Purpose purpose, int step) {
    return RandomStream{kGateSeed, purpose, static_cast<std::uint32_t>(step), number};
  };
  typename Environment::State state;
  reset(device, environment, parameters, state,
        RandomStream{kGateSeed, Purpose::evaluation_reset, number});
  PolicyState<E> hidden;
  begin_episode<E>(hidden);
  for (int i = 0; i < kFlightSteps; i++) {
    Matrix<float, 1, kCriticObservationDim<Environment>> seen;
    Matrix<float, 1, Environment::kActionDim> action;
    PolicyRows<Environment, 1> rows;
    observe(device, environment, parameters, state, seen.data(),
            random(Purpose::evaluation_observation, i));
    act(device, training, policy_part(device, seen, rows), hidden, action);
    if (!all_finite(action.data(), Environment::kActionDim)) return false;
    if (step(device, environment, parameters, state, action.data(),
             random(Purpose::evaluation_step, i))
            .terminated) {
      return false;
    }
    const float* p = state.position_m;
    if (i >= kFlightSteps - kHeldSteps && quadrotor::length(p[0], p[1], p[2]) > kRadius_m) {
      return false;
    }
  }
  return true;
}

// The share of `flights` that succeed.
template <class E>
double fly(Training<E>& training, int flights, Map& map) {
  auto environment = environment_of(training);
  quadrotor::Settings& settings = environment.settings;
  settings.start_share = settings.start_position = settings.start_velocity = 1.0f;
  settings.start_tilt = 90.0f;
  settings.start_rate = 2.0f;
  settings.limit_position = 5.0f;
  settings.limit_velocity = 10.0f;
  settings.limit_rate = 35.0f;
  settings.latency_ms = 20.0f;
  settings.noise = 1.0f;
  settings.gust_m_s2 = 0.3f;
  settings.gust_s = 0.5f;
  environment.settings.environment = {};
  environment.settings.environment.table_share = 0.0f;
  int count = 0;
  for (int number = 0; number < flights; number++) {
    const auto index = static_cast<std::uint32_t>(number);
    typename E::Environment::Parameters parameters;
    draw_parameters(HostSimd{}, environment, parameters,
                    {kGateSeed, Purpose::evaluation_parameters, index});
    const bool succeeded = succeeds(training, environment, parameters, index);
    map.add(parameters.mass_kg, 1.0f / parameters.hover_fraction, succeeded);
    count += succeeded ? 1 : 0;
  }
  return static_cast<double>(count) / static_cast<double>(flights);
}

}  // namespace

int main(int count, char** arguments) {
  const int flights = count > 1 ? std::atoi(arguments[1]) : 1000;
  const auto learner = std::make_unique<Learner<Foundation>>();
  const auto replay = std::make_unique<Replay<Foundation>>();
  const auto scratch = std::make_unique<Scratch<Foundation>>();
  Training<Foundation> training{{}, *learner, *replay, *scratch};
  for (int i = 2; i < count; i++) {
    if (assign(training.hyperparameters, arguments[i])) continue;
    std::fprintf(stderr, "no hyperparameter, or out of its bounds: %s\n", arguments[i]);
    return 2;
  }
  if (flights < 1) {
    std::fprintf(stderr, "FLIGHTS must be 1 or more\n");
    return 2;
  }
  const HostSimd device;
  initialize(device, training);
  auto teacher = distillation::teacher_of(training);
  const std::uint32_t part = training.hyperparameters.steps / 10;
  std::uint32_t next = part;
  bool was_taught = false;
  double used = 0, began = processor_seconds();
  while (!finished(training)) {
    if (!train_step(device, training).finite) {
      std::fprintf(stderr, "no finite number any more\n");
      return 1;
    }
    const bool is_taught = finished(teacher);
    const bool rests = replay->size == 0 && replay->teacher.size == 0;
    if (!rests || (steps_done(training) < next && is_taught == was_taught)) continue;
    used += processor_seconds() - began;
    while (next <= steps_done(training)) next += part;
    Map map;
    const bool by_teacher = !was_taught;
    was_taught = is_taught;
    const double share = by_teacher ? fly(teacher, flights, map) : fly(training, flights, map);
    std::printf("%11u steps %8.1f s  %s %5.1f %%\n", steps_done(training), used,
                by_teacher ? "teacher" : "student", 100.0 * share);
    std::fflush(stdout);
    if (finished(training)) map.print();
    began = processor_seconds();
  }
  return 0;
}
