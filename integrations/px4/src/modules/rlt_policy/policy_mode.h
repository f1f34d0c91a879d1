// A policy as a flight mode of PX4: from what PX4 measures to what its motors do, and when not. It
// knows nothing of PX4's interfaces; rlt_policy_module.h does, and does nothing else. Nothing is
// allocated. README.md has the tables of limits and reasons.
#pragma once

#include <cstdint>

#include "entry_offset.h"
#include "hover_thrust.h"
#include "reason.h"
#include "rltools/core/finite.h"
#include "rltools/policy/contracts/quadrotor.h"
#include "rltools/policy/deployment.h"
#include "rltools/policy/entry_envelope.h"
#include "rltools/policy/vehicles/quadrotor.h"

namespace rlt::px4 {

using vehicles::find_motors, vehicles::kRotors, vehicles::Rotor;

// PX4's publications, in its units and frames. Times are its 64-bit microseconds; 0: never.
struct Rates {
  std::uint64_t taken_us = 0;
  float frd_rad_s[3] = {};
};
struct Attitude {
  std::uint64_t taken_us = 0;
  float q[4] = {};  // from FRD to NED
};
struct LocalPosition {
  std::uint64_t taken_us = 0;
  bool is_valid = false;  // all of position and velocity
  float ned_m[3] = {};
  float ned_m_s[3] = {};
  float heading_rad = 0.0f;
  bool has_height = false;                 // ned_m[2] counts, whatever the others do
  float above_ground_m = math::kQuietNan;  // as PX4 measures it; else not a number
  // An estimator that jumps counts it, and says by how much.
  std::uint8_t xy_resets = 0, z_resets = 0, heading_resets = 0;
  float delta_m[3] = {}, delta_heading_rad = 0.0f;
};
struct Setpoint {
  std::uint64_t taken_us = 0;
  float ned_m[3] = {};  // not a number: this one stays as it is
};

struct Inputs {
  std::uint64_t now_us = 0;
  bool is_armed = false;
  bool is_selected = false;  // PX4 is in this mode
  bool is_in_air = false;    // by PX4's land detector
  bool is_loading = false;   // somebody else works on the deployment
  bool sticks_move = false;  // the pilot's, as PX4 has it, where they are to take the vehicle
  Rates rates;
  Attitude attitude;
  LocalPosition position;
  Setpoint setpoint;
  HoverThrust hover;
};

struct Command {
  bool has_motors = false;
  bool asks_for_fallback = false;  // PX4 is to leave this mode for the fallback
  bool asks_for_position = false;  // ... for Position: the pilot's sticks have it
  float motors[kRotors] = {};      // PX4's order
  float collective = 0.0f;         // their mean
  std::uint64_t taken_us = 0;      // of the angular velocity that they answer
};

// Most age of each topic. PX4 publishes angular velocity at 400 Hz or more (IMU_GYRO_RATEMAX),
// attitude and local position at about 100 Hz or more.
struct TimeLimits {
  std::uint32_t rates_us = 10000;
  std::uint32_t attitude_us = 30000;
  std::uint32_t position_us = 100000;
  std::uint32_t setpoint_us = 500000;
};

struct ModeSettings {
  TimeLimits limits;
  bool turns_to_heading = false;  // the yaw to hold is that at entry, and otherwise led to the east
  float safe_thrust = 0.4f;       // of each rotor, from a fault until the fallback acts
};

// Interval at which another mode is asked for while PX4 stays in this one.
constexpr std::uint32_t kAskAgain_us = 50000;
// Samples of the angular velocity with the same bits, one after another: a real one has noise.
constexpr std::uint32_t kMaxEqualRates = 20;
// For how long an offset waits for the mode to be entered.
constexpr std::uint32_t kOffsetLimit_us = 10000000;
// The yaw to hold is led to the east at this rate: policies are handed no turn that they were not
// measured with (the gate's is 60 degrees).
constexpr float kLead_rad_s = 0.5f;

template <class Device, std::uint32_t ImageBytes = 32768, std::size_t ScratchFloats = 520>
class PolicyMode {
  using Contract = contracts::Quadrotor;

 public:
  static constexpr std::uint32_t kImageBytes = ImageBytes;
  using Storage = RamStorage<512 + 2 * ImageBytes>;
  using Deployment = PolicyDeployment<Device, Storage, kRotors, ScratchFloats>;

  explicit PolicyMode(const ModeSettings& settings)
      : settings_(settings),
        deployment_(Device{}, storage_, contract(), limits()),
        turns_to_heading_(settings.turns_to_heading) {
    for (float& thrust : safe_) thrust = math::clamp(settings.safe_thrust, 0.0f, 1.0f);
    deployment_.begin();
  }
  PolicyMode(const PolicyMode&) = delete;
  PolicyMode& operator=(const PolicyMode&) = delete;

  // Return the deployment, by which policies come and go; not while update() may run, but for
  // Inputs::is_loading.
  Deployment& deployment() { return deployment_; }
  void policy_changed() { has_failed_ = false; }
  // Hold the heading of the entry, or the east's. In flight, too: a heading that is led to the east
  // turns no faster than kLead_rad_s, or stays.
  void hold_heading(bool of_entry) { turns_to_heading_ = of_entry; }
  // Set the rotors as the parameters state them. Nobody rewires motors in the air: those of the
  // last call that was not armed are the vehicle's, and others than those are refused until it is
  // not.
  bool set_rotors(const Rotor* airframe, int count, bool is_armed) {
    std::uint8_t found[kRotors];
    const bool is_contract = find_motors(airframe, count, found);
    if (!is_armed) has_motors_ = is_contract;
    has_rotors_ = is_contract && has_motors_;
    for (int i = 0; has_rotors_ && i < kRotors; i++) {
      if (!is_armed) motors_[i] = found[i];
      if (motors_[i] != found[i]) has_rotors_ = false;
    }
    return has_rotors_;
  }

  // Set the position of the target for the next entry, within kOffsetLimit_us, as EntryOffset
  // packed it: by the task that calls update().
  void set_offset(std::int32_t packed, std::uint64_t now_us) {
    offset_ = packed;
    offset_us_ = now_us;
  }

  // Return the command for the last of each measurement; to be called 500 times a second.
  Command update(const Inputs& in) {
    const bool trial_ended = !in.is_loading && deployment_.poll(clock(in.now_us));
    const bool has_control = in.is_armed && in.is_selected;
    if (!has_control) is_acting_ = false;
    if (!in.is_loading) envelope_ = deployment_.entry_envelope();
    follow_resets(in.position);
    note_ground(in);
    count_equal(in.rates);
    obstacle_ = find_obstacle(in);
    Command command;
    if (!has_control) {
      fault_ = Reason::none;
      return command;
    }
    if (!is_acting_) enter(in);
    if (fault_ == Reason::none) {
      fault_ = obstacle_ != Reason::none ? obstacle_
               : trial_ended             ? Reason::trial_over
                                         : act(in, command);
    }
    if (fault_ != Reason::none) {
      fall_back(in, command);
    } else if (in.sticks_move) {
      command.asks_for_position = may_ask(in.now_us, position_asked_us_);
    }
    return command;
  }

  // Return why PX4 must not be in this mode; none where it may.
  Reason refusal() const { return fault_ != Reason::none ? fault_ : obstacle_; }
  Reason fault() const { return fault_; }
  bool is_acting() const { return is_acting_; }
  std::uint32_t refused_setpoints() const { return refused_setpoints_; }
  // Return the states in which the policy may be handed the vehicle.
  const EntryEnvelope& envelope() const { return envelope_; }
  // Return the last observation of the policy.
  const float* observation() const { return observation_; }

 private:
  PolicyContract contract() const {
    PolicyContract contract = policy_contract<Contract>();
    contract.safe_action = safe_;
    return contract;
  }
  ExecutorLimits limits() const {
    ExecutorLimits limits;
    limits.max_age_us = settings_.limits.rates_us;
    return limits;
  }
  static std::uint32_t clock(std::uint64_t time_us) { return static_cast<std::uint32_t>(time_us); }

  // -- what stands in the way ---------------------------------------------------------------------

  Reason find_obstacle(const Inputs& in) {
    if (in.is_loading) return Reason::loading;
    if (deployment_.acting() == nullptr) return Reason::no_policy;
    if (has_failed_) return Reason::policy_failed;
    if (!has_rotors_ && !is_acting_) return Reason::rotors_differ;
    const TimeLimits& limits = settings_.limits;
    if (in.rates.taken_us == 0) return Reason::rates_missing;
    if (is_old(in.now_us, in.rates.taken_us, limits.rates_us)) return Reason::rates_stale;
    if (equal_rates_ >= kMaxEqualRates) return Reason::rates_frozen;
    if (in.attitude.taken_us == 0) return Reason::attitude_missing;
    if (is_old(in.now_us, in.attitude.taken_us, limits.attitude_us)) return Reason::attitude_stale;
    if (!vehicles::is_rotation(in.attitude.q)) return Reason::attitude_invalid;
    if (in.position.taken_us == 0) return Reason::position_missing;
    if (is_old(in.now_us, in.position.taken_us, limits.position_us)) return Reason::position_stale;
    if (!in.position.is_valid) return Reason::position_invalid;
    if (!all_finite(in.rates.frd_rad_s, 3) || !all_finite(in.position.ned_m, 3) ||
        !all_finite(in.position.ned_m_s, 3) || !is_finite(in.position.heading_rad)) {
      return Reason::not_finite;
    }
    if (!in.is_armed || is_acting_) return Reason::none;
    return in.is_in_air ? find_entry_obstacle(in) : Reason::on_ground;
  }
  // Find the obstacle to an entry: the policy is handed a state of its envelope, and no other.
  Reason find_entry_obstacle(const Inputs& in) const {
    float seen[Contract::kObservationDim];
    observe(in, in.position.ned_m, seen);
    if (has_offset(in.now_us)) {
      EntryOffset::unpack(offset_, seen);  // the shell's offset, to the last bit
      for (int i = 0; i < 3; i++) seen[i] = -seen[i];
    }
    const EntryState state = entry_state(seen, height_m(in.position));
    const Reason reason = reason_of_entry(entry_obstacle(envelope_, state));
    if (reason != Reason::none) return reason;
    return is_finite(state.height_m) ? Reason::none : Reason::height_unknown;
  }
  // Return the height above ground: as PX4 measures it, or else above where its land detector saw
  // the ground last.
  float height_m(const LocalPosition& position) const {
    if (is_finite(position.above_ground_m)) return position.above_ground_m;
    return has_ground_ && position.has_height ? ground_down_m_ - position.ned_m[2]
                                              : math::kQuietNan;
  }
  void note_ground(const Inputs& in) {
    const LocalPosition& position = in.position;
    if (in.is_in_air || !position.has_height || !is_finite(position.ned_m[2])) return;
    has_ground_ = true;
    ground_down_m_ = position.ned_m[2];
  }
  // Return whether a measurement is old. A time in the future is as bad as one in the past.
  static bool is_old(std::uint64_t now_us, std::uint64_t taken_us, std::uint32_t max_us) {
    return (now_us > taken_us ? now_us - taken_us : taken_us - now_us) > max_us;
  }
  void count_equal(const Rates& rates) {
    if (rates.taken_us == last_rates_.taken_us) return;
    const bool is_equal =
        __builtin_memcmp(rates.frd_rad_s, last_rates_.frd_rad_s, sizeof(rates.frd_rad_s)) == 0;
    equal_rates_ = is_equal ? equal_rates_ + 1 : 0;
    last_rates_ = rates;
  }

  // -- the target ---------------------------------------------------------------------------------

  void enter(const Inputs& in) {
    is_acting_ = true;
    began_on_ground_ = !in.is_in_air;
    last_setpoint_us_ = in.setpoint.taken_us;  // those from before do not count
    asked_us_ = position_asked_us_ = 0;
    if (in.is_loading) return;
    deployment_.reset_executor();
    for (int i = 0; i < 3; i++) target_[i] = in.position.ned_m[i];
    turn_to(in.position.heading_rad);
    if (has_offset(in.now_us)) {
      float offset[3];
      EntryOffset::unpack(offset_, offset);
      world_.vector_back(offset);
      float ned[3];
      vehicles::enu_of_ned(offset, ned);  // its own inverse
      for (int i = 0; i < 3; i++) target_[i] += ned[i];
    }
    offset_ = 0;
  }
  bool has_offset(std::uint64_t now_us) const {
    return offset_ != 0 && !is_old(now_us, offset_us_, kOffsetLimit_us);
  }
  void turn_to(float heading_rad) {
    heading_rad_ = heading_rad;
    world_ = vehicles::TurnedWorld::along(vehicles::kHalfPi - heading_rad);
  }
  // Lead the heading by a tick, where the yaw to hold is the east's.
  void lead_to_east() {
    constexpr float kStep_rad = 1e-6f * kLead_rad_s * Contract::kStepInterval_us;
    constexpr float kPi = 2.0f * vehicles::kHalfPi;
    float away_rad = heading_rad_ - vehicles::kHalfPi;  // -3/2 to 1/2 of pi
    if (away_rad < -kPi) away_rad += 2.0f * kPi;
    if (turns_to_heading_ || !(math::absolute(away_rad) > 0.0f)) return;
    turn_to(vehicles::kHalfPi + away_rad - math::clamp(away_rad, -kStep_rad, kStep_rad));
  }
  // Keep the target and the heading where they are on the ground when the estimator jumps.
  void follow_resets(const LocalPosition& position) {
    if (position.taken_us == 0) return;
    if (has_position_ && is_acting_) {
      const float* here = position.ned_m;
      const float* delta = position.delta_m;
      for (int i = 0; i < 2; i++)
        shift(xy_resets_, position.xy_resets, target_[i], here[i], delta[i]);
      shift(z_resets_, position.z_resets, target_[2], here[2], delta[2]);
      float heading_rad = heading_rad_;
      shift(heading_resets_, position.heading_resets, heading_rad, position.heading_rad,
            position.delta_heading_rad);
      if (position.heading_resets != heading_resets_) turn_to(heading_rad);
    }
    if (has_position_ && position.z_resets != z_resets_) {
      has_ground_ = has_ground_ && static_cast<std::uint8_t>(position.z_resets - z_resets_) == 1;
      ground_down_m_ += position.delta_m[2];
    }
    has_position_ = true;
    xy_resets_ = position.xy_resets;
    z_resets_ = position.z_resets;
    heading_resets_ = position.heading_resets;
  }
  // Shift a value by the last reset. PX4 publishes its amount; where one was missed, `here` is what
  // is left.
  static void shift(std::uint8_t before, std::uint8_t now, float& value, float here, float delta) {
    const auto resets = static_cast<std::uint8_t>(now - before);
    if (resets == 1) value += delta;
    if (resets > 1) value = here;
  }
  void follow_setpoint(const Inputs& in) {
    const Setpoint& setpoint = in.setpoint;
    if (setpoint.taken_us == last_setpoint_us_ ||
        is_old(in.now_us, setpoint.taken_us, settings_.limits.setpoint_us)) {
      return;
    }
    last_setpoint_us_ = setpoint.taken_us;
    float wanted[3], squared_m2 = 0.0f;
    for (int i = 0; i < 3; i++) {
      wanted[i] = is_finite(setpoint.ned_m[i]) ? setpoint.ned_m[i] : target_[i];
      const float away_m = wanted[i] - in.position.ned_m[i];
      squared_m2 += away_m * away_m;
    }
    // No further away than where the policy may be handed its target.
    if (!(squared_m2 <= envelope_.offset_m * envelope_.offset_m)) {
      refused_setpoints_++;
      return;
    }
    for (int i = 0; i < 3; i++) target_[i] = wanted[i];
  }

  // -- acting -------------------------------------------------------------------------------------

  Reason act(const Inputs& in, Command& command) {
    follow_setpoint(in);
    lead_to_east();
    observe(in, target_, observation_);
    const bool was_in_trial = deployment_.is_in_trial();
    float action[kRotors];
    const ExecutorStatus status =
        deployment_.tick(clock(in.now_us), {observation_, clock(in.rates.taken_us)}, action);
    if (status == ExecutorStatus::held) return Reason::none;  // PX4 has this action
    if (!is_fault(status)) {
      set_motors(action, command);
      command.taken_us = in.rates.taken_us;
      return Reason::none;
    }
    // A candidate that fails is dropped; the policy before it has not failed.
    if (status == ExecutorStatus::output_not_finite) has_failed_ = !was_in_trial;
    return reason_of(status);
  }
  static Reason reason_of(ExecutorStatus status) {
    switch (status) {
      case ExecutorStatus::no_policy: return Reason::no_policy;
      case ExecutorStatus::output_not_finite: return Reason::policy_failed;
      case ExecutorStatus::observation_not_finite: return Reason::not_finite;
      case ExecutorStatus::observation_out_of_range: return Reason::out_of_range;
      case ExecutorStatus::observation_stale: return Reason::rates_stale;
      default: return Reason::clock;
    }
  }
  void observe(const Inputs& in, const float* target_ned, float* observation) const {
    vehicles::QuadrotorTarget target;
    vehicles::enu_of_ned(target_ned, target.position_m);
    target.world = world_;
    vehicles::observe(vehicles::QuadrotorEstimate::of_px4(in.position.ned_m, in.position.ned_m_s,
                                                          in.attitude.q, in.rates.frd_rad_s),
                      target, observation);
  }
  void set_motors(const float* action, Command& command) const {
    command.has_motors = true;
    for (int i = 0; i < kRotors; i++) {
      command.motors[has_motors_ ? motors_[i] : i] = action[i];
      command.collective += 0.25f * action[i];
    }
  }
  void fall_back(const Inputs& in, Command& command) {
    float thrusts[kRotors];
    for (float& thrust : thrusts) {
      thrust = began_on_ground_ ? 0.0f : thrust_of_fault(in.hover, in.now_us, safe_[0]);
    }
    set_motors(thrusts, command);
    command.taken_us = in.now_us;
    command.asks_for_fallback = may_ask(in.now_us, asked_us_);
  }
  static bool may_ask(std::uint64_t now_us, std::uint64_t& asked_us) {
    if (asked_us != 0 && !is_old(now_us, asked_us, kAskAgain_us - 1)) return false;
    asked_us = now_us;
    return true;
  }

  const ModeSettings settings_;
  float safe_[kRotors];
  Storage storage_;
  Deployment deployment_;
  vehicles::TurnedWorld world_;
  float observation_[Contract::kObservationDim] = {};
  float target_[3] = {};  // NED
  float heading_rad_ = 0.0f;
  Rates last_rates_;
  EntryEnvelope envelope_ = kEntryAtRest;
  float ground_down_m_ = 0.0f;
  std::uint64_t asked_us_ = 0, position_asked_us_ = 0;  // 0: not since the mode was entered
  std::uint64_t last_setpoint_us_ = 0, offset_us_ = 0;
  std::int32_t offset_ = 0;
  std::uint32_t equal_rates_ = 0, refused_setpoints_ = 0;
  std::uint8_t motors_[kRotors] = {};
  std::uint8_t xy_resets_ = 0, z_resets_ = 0, heading_resets_ = 0;
  bool has_motors_ = false;  // of motors_
  bool has_rotors_ = false;  // by the parameters as they are
  bool has_position_ = false, has_ground_ = false;
  bool turns_to_heading_;
  bool is_acting_ = false, began_on_ground_ = false, has_failed_ = false;
  Reason fault_ = Reason::none, obstacle_ = Reason::no_policy;
};

}  // namespace rlt::px4
