// Everything about flying a Crazyflie with a policy that is not its operating system's: frames and
// units, who flies, the way back to the stock controller, uploads. Host tests fly it.
//
// Three tasks call it, the stabilizer's above the memory's and the app's. One of them has the
// deployment at a time (`owner_`): the stabilizer while the policy flies, an upload from its first
// byte to its verdict, the app's task for the moment of a command. The stabilizer is never kept
// waiting: while another has it, the stock controller flies.
#pragma once

#include <atomic>

#include "interface.h"
#include "rltools/policy/deployment.h"
#include "rltools/policy/vehicles/quadrotor.h"

namespace rlt::crazyflie {

using Contract = contracts::Quadrotor;

// -- observation ----------------------------------------------------------------------------------

// Set the contract's observation; return false where the estimate is no attitude.
inline bool observe(const RltSensed& sensed, float* observation) {
  const float *at = sensed.target_m, *moves = sensed.target_m_s;
  return vehicles::observe(
      vehicles::QuadrotorEstimate::of_crazyflie(sensed.position_m, sensed.velocity_m_s,
                                                sensed.quaternion, sensed.gyro_deg_s),
      {{at[0], at[1], at[2]},
       {moves[0], moves[1], moves[2]},
       vehicles::TurnedWorld::along(vehicles::kRadians * sensed.target_yaw_deg)},
      observation);
}

// The age of an observation. The gyroscope has a time of its own, the estimate has none: it is
// predicted 100 times a second. Each has stopped where its numbers stay the same for longer; a
// gyroscope's noise is never that still.
class Freshness {
 public:
  static constexpr std::uint32_t kMaxUnchanged_us = 25000;

  void restart(std::uint32_t now_us) { gyro_.changed_us = estimate_.changed_us = now_us; }
  // Return the time at which the oldest part of what is sensed was taken.
  std::uint32_t taken_us(const RltSensed& sensed) {
    std::uint32_t hash = math::hash_bits(sensed.quaternion, 4);
    hash = math::hash_bits(sensed.position_m, 3, hash);
    estimate_.see(math::hash_bits(sensed.velocity_m_s, 3, hash), sensed.now_us);
    gyro_.see(math::hash_bits(sensed.gyro_deg_s, 3), sensed.now_us);
    const std::uint32_t estimate_us = sensed.now_us - estimate_.changed_us;
    const std::uint32_t gyro_us = sensed.now_us - gyro_.changed_us;
    if (estimate_us > kMaxUnchanged_us) return estimate_.changed_us;
    return gyro_us > kMaxUnchanged_us ? gyro_.changed_us : sensed.gyro_us;
  }

 private:
  struct Watched {
    std::uint32_t hash = 0, changed_us = 0;

    void see(std::uint32_t present, std::uint32_t now_us) {
      if (present != hash) changed_us = now_us;
      hash = present;
    }
  };

  Watched estimate_, gyro_;
};

// -- the way back ---------------------------------------------------------------------------------

// The change to the stock controller: its thrust begins at the policy's and reaches its own in
// equal steps; its roll, pitch and yaw are its own at once.
class ThrustBlend {
 public:
  void begin(float part, std::uint32_t ticks) {
    part_ = part;
    total_ = left_ = ticks;
  }
  void end() { left_ = 0; }
  // Return the next thrust. `full` is the stock controller's number for all of the thrust.
  float next(float stock, float full) {
    if (!(stock > 0.0f)) left_ = 0;  // switched off is off
    if (left_ == 0) return stock;
    if (left_ == total_) offset_ = part_ * full - stock;
    const float thrust = stock + offset_ * (static_cast<float>(left_) / static_cast<float>(total_));
    left_--;
    return math::clamp(thrust, 0.0f, full);
  }

 private:
  float part_ = 0, offset_ = 0;
  std::uint32_t total_ = 0, left_ = 0;
};

// -- who flies ------------------------------------------------------------------------------------

constexpr std::uint32_t kCallsPerSecond = 1000;  // of the stabilizer

template <class Device, std::uint32_t SlotBytes, std::size_t ScratchFloats>
class Controller {
 public:
  using Storage = RamStorage<2 * 256 + SlotBytes>;
  using Deployment = PolicyDeployment<Device, Storage, Contract::kActionDim, ScratchFloats, 1>;

  Controller(RltSettings& settings, RltReport& report)
      : settings_(settings),
        report_(report),
        deployment_(Device{}, storage_, policy_contract<Contract>()) {}

  // -- the stabilizer's task ----------------------------------------------------------------------

  // Restart. This controller is chosen, perhaps not for the first time: what flew before is over.
  void restart() {
    if (flies_) take_over(RLT_REASON_RESTARTED);
    blend_.end();
    stock_waits_ = true;
  }

  void decide(const RltSensed& sensed, RltDecision& decision) {
    const bool flew = flies_;
    const RltReason reason = flies_ ? continue_flight(sensed) : start(sensed);
    if (reason != RLT_REASON_NONE) {
      if (flies_) take_over(reason);
      if (!is_over_) report_.reason = static_cast<std::uint8_t>(reason);
    }
    decision.pilot = flies_ ? RLT_PILOT_POLICY : RLT_PILOT_STOCK;
    decision.stock_begins = !flies_ && (flew || stock_waits_);
    stock_waits_ = false;
    for (int i = 0; i < Contract::kActionDim; i++) decision.thrusts[i] = flies_ ? thrusts_[i] : 0;
    report_.pilot = static_cast<std::uint8_t>(decision.pilot);
    if (flies_) report_.reason = RLT_REASON_NONE;
  }

  float blend_thrust(float stock, float full) { return blend_.next(stock, full); }

  // -- the memory's task --------------------------------------------------------------------------

  std::uint32_t memory_bytes() const { return SlotBytes; }

  // Write a part of an upload. A write at 0 begins an upload; while the policy flies, it is not
  // taken. One that broke off is begun again.
  bool write(std::uint32_t offset, const std::uint8_t* bytes, std::uint32_t count) {
    if (offset == 0) {
      if (report_.upload != RLT_UPLOAD_RECEIVING && !take(Owner::upload)) return false;
      if (deployment_.stage() != SlotError::none) return end_upload(RLT_UPLOAD_FAILED);
      report_.upload = RLT_UPLOAD_RECEIVING;
    } else if (report_.upload != RLT_UPLOAD_RECEIVING) {
      return is_repeated(offset, bytes, count);
    }
    if (deployment_.write(offset, bytes, count) != SlotError::none) {
      return end_upload(RLT_UPLOAD_FAILED);
    }
    const std::uint32_t received = deployment_.slots().received();
    report_.received_bytes = received;
    if (received >= sizeof(PolicyImageHeader) && received == image_bytes()) {
      std::atomic_signal_fence(std::memory_order_release);
      report_.upload = RLT_UPLOAD_CHECKING;  // from here on it is the app's task's
    }
    return true;
  }

  // Read bytes of the slot.
  bool read(std::uint32_t offset, std::uint8_t* bytes, std::uint32_t count) const {
    if (offset > SlotBytes || count > SlotBytes - offset) return false;
    __builtin_memcpy(bytes, slot_data() + offset, count);
    return true;
  }

  // -- the app's task -----------------------------------------------------------------------------

  // Begin; called once, before work(). Until then no policy flies and no upload is taken.
  void begin(const std::uint8_t* built_in, std::uint32_t bytes) {
    deployment_.begin(built_in, bytes);
    report_.has_built_in = deployment_.has_built_in() ? 1 : 0;
    give_back();
  }

  // Do pending work; called again and again.
  void work(std::uint32_t now_us) {
    if (report_.upload == RLT_UPLOAD_CHECKING) {
      std::atomic_signal_fence(std::memory_order_acquire);
      const StageVerdict verdict = deployment_.finish();
      report_.refusal = static_cast<std::uint8_t>(verdict.verdict.reason);
      report_.refusal_where = static_cast<std::uint16_t>(verdict.verdict.where);
      end_upload(verdict.accepted() ? RLT_UPLOAD_ACCEPTED : RLT_UPLOAD_REFUSED);
    }
    if (!take(Owner::app)) return;
    obey(now_us);
    report_slots();
    give_back();
  }

 private:
  enum class Owner : std::uint8_t { nobody, stabilizer, upload, app };

  // -- flying -------------------------------------------------------------------------------------

  // Do the first tick, or return why there is none.
  RltReason start(const RltSensed& sensed) {
    if (settings_.enable == 0) {
      is_over_ = false;
      return RLT_REASON_NOT_ENABLED;
    }
    if (is_over_) return RLT_REASON_NOT_ENABLED;
    if (!sensed.is_position_target) return RLT_REASON_NO_TARGET;
    if (!take(Owner::stabilizer)) return RLT_REASON_UPLOAD;
    const RltReason refusal = entry_refused(sensed);
    if (refusal != RLT_REASON_NONE) {
      is_over_ = true;  // a policy that comes in later, by itself, is none that the pilot asked for
      report_.reason = static_cast<std::uint8_t>(refusal);
      give_back();
      return refusal;
    }
    if (deployment_.slots().candidate_state() == Candidate::staged) {
      deployment_.start_trial(sensed.now_us, std::uint32_t{settings_.trial_s} * 1000000u);
      report_slots();
    }
    if (deployment_.poll(sensed.now_us)) return end_start();
    if (deployment_.acting() == nullptr) {
      give_back();
      return RLT_REASON_NO_POLICY;
    }
    deployment_.reset_executor();
    freshness_.restart(sensed.now_us);
    flown_ = deployment_.acting();
    faults_ = 0;
    for (float& thrust : thrusts_) thrust = 0;
    flies_ = true;
    has_acted_ = false;
    return continue_flight(sensed);
  }

  // Return the reason for which the policy that would fly may not be handed the vehicle: the one
  // that is staged, or else the one that acts. The first tick reports an observation that cannot be
  // used, and a missing policy.
  RltReason entry_refused(const RltSensed& sensed) {
    const bool is_staged = deployment_.slots().candidate_state() == Candidate::staged;
    const PolicyView* staged =
        is_staged ? deployment_.view(deployment_.slots().other_slot()) : nullptr;
    if (staged == nullptr && deployment_.acting() == nullptr) return RLT_REASON_NONE;
    float observation[Contract::kObservationDim];
    if (!observe(sensed, observation)) return RLT_REASON_NONE;
    const EntryEnvelope envelope = staged != nullptr ? staged->entry : deployment_.entry_envelope();
    switch (entry_obstacle(envelope, entry_state(observation, sensed.position_m[2]))) {
      case EntryObstacle::none:
      case EntryObstacle::not_finite: return RLT_REASON_NONE;
      case EntryObstacle::too_fast: return RLT_REASON_TOO_FAST;
      case EntryObstacle::too_far: return RLT_REASON_TOO_FAR;
      case EntryObstacle::too_tilted: return RLT_REASON_TOO_TILTED;
      case EntryObstacle::turns_too_fast: return RLT_REASON_TURNS_TOO_FAST;
      case EntryObstacle::too_low: return RLT_REASON_TOO_LOW;
    }
    return RLT_REASON_NONE;
  }

  // End a start in which the trial was over before the first tick: the policy that is there instead
  // is none that the pilot has asked for.
  RltReason end_start() {
    is_over_ = true;
    report_.reason = RLT_REASON_TRIAL_OVER;
    report_slots();
    give_back();
    return RLT_REASON_TRIAL_OVER;
  }

  RltReason continue_flight(const RltSensed& sensed) {
    if (settings_.enable == 0) return RLT_REASON_NOT_ENABLED;
    if (!sensed.is_position_target) return RLT_REASON_NO_TARGET;
    const bool is_rolled_back = settings_.roll_back != 0;
    obey(sensed.now_us);
    // Another policy is none that the pilot has asked for.
    if (is_rolled_back || deployment_.acting() != flown_) return RLT_REASON_TRIAL_OVER;

    float observation[Contract::kObservationDim], action[Contract::kActionDim];
    const std::uint32_t taken_us = freshness_.taken_us(sensed);
    const float* values = observe(sensed, observation) ? observation : nullptr;
    if (values != nullptr && is_far(observation)) return RLT_REASON_OUT_OF_RANGE;
    const ExecutorStatus status = deployment_.tick(sensed.now_us, {values, taken_us}, action);
    const ExecutorCounts& counts = deployment_.executor().counts();
    report_.late = counts.late;
    report_.missed = counts.missed;
    if (status == ExecutorStatus::held) return RLT_REASON_NONE;
    report_.status = static_cast<std::uint8_t>(status);
    return judge(status, action);
  }

  // Return whether the vehicle is too far. A position that is not a number is not far: it is no
  // observation.
  bool is_far(const float* position_error_m) const {
    const float max_m = 0.01f * static_cast<float>(settings_.max_error_cm);
    for (int i = 0; i < 3; i++) {
      if (math::absolute(position_error_m[i]) > max_m) return true;
    }
    return false;
  }

  RltReason judge(ExecutorStatus status, const float* action) {
    if (status == ExecutorStatus::acted) {
      faults_ = 0;
      has_acted_ = true;
      for (int i = 0; i < Contract::kActionDim; i++) thrusts_[i] = action[i];
      return RLT_REASON_NONE;
    }
    if (status == ExecutorStatus::observation_out_of_range) return RLT_REASON_OUT_OF_RANGE;
    if (status == ExecutorStatus::output_not_finite) return RLT_REASON_OUTPUT;
    faults_++;
    const bool is_too_much = !has_acted_ || faults_ >= settings_.max_faults;
    return is_too_much ? RLT_REASON_OBSERVATION : RLT_REASON_NONE;  // the last action is held
  }

  // Let the stock controller fly from now on, until the policy is enabled again.
  void take_over(RltReason reason) {
    float mean = 0;
    for (const float thrust : thrusts_) mean += 0.25f * thrust;
    blend_.begin(mean, has_acted_ ? settings_.blend_ms * kCallsPerSecond / 1000u : 0u);
    flies_ = false;
    is_over_ = reason != RLT_REASON_NOT_ENABLED;
    report_.reason = static_cast<std::uint8_t>(reason);
    report_.take_overs += has_acted_ ? 1 : 0;
    report_slots();
    give_back();
  }

  // -- commands and uploads, by whom has the deployment -------------------------------------------

  void obey(std::uint32_t now_us) {
    deployment_.poll(now_us);
    if (settings_.confirm != 0) {
      settings_.confirm = 0;
      deployment_.confirm(now_us);
      report_slots();
    }
    if (settings_.roll_back != 0) {
      settings_.roll_back = 0;
      // The staged image would fly next.
      if (deployment_.drop_staged() != SlotError::none) deployment_.roll_back();
      report_slots();
    }
  }

  void report_slots() {
    report_.candidate = static_cast<std::uint8_t>(deployment_.slots().candidate_state());
    report_.last_drop = static_cast<std::uint8_t>(deployment_.slots().last_drop());
    report_.active = deployment_.slots().active().bytes != 0 ? 1 : 0;
  }

  const std::uint8_t* slot_data() const { return storage_.data() + 2 * Storage::kEraseBytes; }
  // Return the bytes of the image, as its header states them.
  std::uint32_t image_bytes() const {
    PolicyImageHeader header;
    __builtin_memcpy(&header, slot_data(), sizeof(header));
    return header.total_bytes;
  }

  // Return whether a part repeats one of an upload that is over: the radio may send its last part
  // again.
  bool is_repeated(std::uint32_t offset, const std::uint8_t* bytes, std::uint32_t count) const {
    return report_.upload != RLT_UPLOAD_FAILED && offset < report_.received_bytes &&
           count <= report_.received_bytes - offset &&
           __builtin_memcmp(slot_data() + offset, bytes, count) == 0;
  }

  bool end_upload(RltUpload result) {
    report_slots();
    report_.upload = static_cast<std::uint8_t>(result);
    give_back();
    return false;
  }

  bool take(Owner owner) {
    Owner nobody = Owner::nobody;
    return owner_.compare_exchange_strong(nobody, owner);
  }
  void give_back() { owner_.store(Owner::nobody); }

  RltSettings& settings_;
  RltReport& report_;
  Storage storage_{};  // no records of what memory held before
  Deployment deployment_;
  Freshness freshness_;
  ThrustBlend blend_;
  std::atomic<Owner> owner_{Owner::app};  // until begin() is over
  const typename Deployment::Runner* flown_ = nullptr;
  float thrusts_[Contract::kActionDim] = {};  // of the last tick in which the policy acted
  std::uint32_t faults_ = 0;                  // ticks in a row
  bool flies_ = false;                        // the policy
  bool is_over_ = false;                      // it flew, and has not been enabled again
  bool has_acted_ = false;                    // since it flies
  bool stock_waits_ = false;                  // it begins in the next tick
};

}  // namespace rlt::crazyflie
