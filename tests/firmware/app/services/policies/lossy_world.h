// A board that runs policies, behind a link that loses, repeats, delays, reorders and damages
// packets, is cut for a while and has a second host on it; the board is reset, or loses its power
// while it programs or erases. Everything follows from one seed, and time passes only where the
// host waits. After each turn of the board it is checked which policy acts. Included by one source
// file of a program, after no other that has board_in_memory.h.
#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>

#include "app/link/node.h"
#include "app/services/policies/policy_service.h"
#include "board_in_memory.h"
#include "flash_model.h"
#include "host_messages.h"
#include "lossy_disorder.h"
#include "rltools/devices/generic.h"
#include "rltools/policy/contracts/pendulum.h"
#include "rltools/policy/image.h"
#include "slot_push.h"

namespace lossy_world {

using namespace rlt;
using namespace board_in_memory;

constexpr link::Address kBoard{1, 191}, kHost{255, 190}, kOther{254, 1};
using Contract = contracts::Pendulum;
using Flash = flash_model::Flash<256, 32>;
constexpr std::uint32_t kBlocks = 2 + 2 * 8;

struct Violation : std::logic_error {
  using std::logic_error::logic_error;
};

// -- policies -------------------------------------------------------------------------------------

using Net = Mlp<float, Dimensions<Contract::kObservationDim, 6, Contract::kActionDim>,
                Activation::relu, Activation::tanh>;

inline Bytes image_of(std::uint32_t seed) {
  static constexpr std::uint8_t kStateSha256[32] = {1, 2, 3};
  static Net network;
  initialize_kaiming(Generic{}, network, seed, 0);
  Bytes image(policy_image_bytes<Net>());
  write_policy_image(Generic{}, network, policy_contract<Contract>(), {nullptr, nullptr},
                     {"pushed", "somewhere", seed, 7, 9, kStateSha256}, image.data());
  return image;
}

// -- the board ------------------------------------------------------------------------------------

// The infer application, of which a test sees the service (app/infer/application.h).
class Application {
  using Service = PolicyService<Contract, Generic, Flash, 64>;

 public:
  explicit Application(Flash& flash)
      : sender_({board_in_memory::read, board_in_memory::write}, kBoard),
        policies(Generic{}, flash, sender_),
        node_({board_in_memory::read, board_in_memory::write}, kBoard, {"host", "Generic"}, sender_,
              heartbeat_, policies.file_server(), policies) {}

 private:
  link::MessageSender sender_;
  link::HeartbeatClock heartbeat_;

 public:
  Service policies;
  bool poll() { return node_.poll(); }
  bool is_in_trial() const {
    mavlink_heartbeat_t state{};
    policies.describe_state(state);
    return state.system_status == MAV_STATE_ACTIVE;
  }

 private:
  link::Node<FileServer<Service::Files>, Service> node_;
};

// A board's flash on which the first policy acts.
inline const Bytes& flash_with(const Bytes& image) {
  static Bytes content;
  if (!content.empty()) return content;
  Flash flash(kBlocks);
  PolicySlots<Flash> slots(flash);
  slots.begin();
  if (slot_push::push(slots, image) != SlotError::none) {
    throw std::logic_error("the first policy is refused");
  }
  content.assign(flash.data(), flash.data() + flash.size());
  return content;
}

// -- the world ------------------------------------------------------------------------------------

class World {
 public:
  const Bytes first = image_of(1), second = image_of(2);
  std::uint64_t resets = 0, packets = 0;  // the host's

  explicit World(std::uint64_t seed) : chance_(seed), disorder_(chance_) {
    std::memcpy(flash_.bytes(), flash_with(first).data(), flash_.size());
    board_in_memory::counter_us = 1000 + chance_.below(0xffffffffu);  // its clock may wrap
    restart();
  }

  std::uint64_t now_us() const { return board_in_memory::counter_us; }

  // Bytes that the host writes at once are a packet. False where its port is gone.
  bool write(const std::uint8_t* bytes, std::size_t count) {
    note_command(bytes, count);
    strike();
    if (is_unplugged()) return false;
    transmit(Bytes(bytes, bytes + count), to_board_, board_arrival_us_);
    packets++;
    return true;
  }

  // What has come for the host; nothing after the time. Empty too where its port is gone.
  Bytes read(std::uint64_t timeout_us) {
    const std::uint64_t end = now_us() + timeout_us;
    pass(now_us());
    while (inbox_.empty() && now_us() < end && !is_unplugged()) pass(std::min(end, next_us()));
    return std::exchange(inbox_, {});
  }
  bool is_unplugged() const { return disorder_.unplugged && now_us() < cut_until_us_; }

  // From now on nothing goes wrong. What is under way arrives; then any trial and session is over.
  void calm() {
    calm_ = true;
    flash_.cut_after(Flash::kNever, disorder_.left);
    cut_until_us_ = 0;
    const std::uint64_t end = now_us() + 30'000'000;
    while (now_us() < end) pass(std::min(end, next_us()));
    set_armed(false);  // an earlier command to may have got lost
    inbox_.clear();
    if (application_->is_in_trial()) throw Violation("a trial outlives its deadline");
  }

  bool is_second_active() { return is(application_->policies.active(), second); }

  // After any turn of the board, and any start.
  void check() {
    const SlotImage active = application_->policies.active();
    if (!is(active, first) && !is(active, second)) throw Violation("no whole policy is active");
    if (is(active, second) && !confirmed_) throw Violation("a policy is active, not confirmed");
    if (!application_->is_in_trial()) return;
    if (!is(application_->policies.candidate(), second)) throw Violation("no policy is in trial");
    if (!tried_) throw Violation("a policy is in trial that the host has not tried");
  }

 private:
  using Packets = std::multimap<std::uint64_t, Bytes>;  // by the time of their arrival
  static constexpr std::uint64_t kLatency_us = 1000, kLongestDelay_us = 1'500'000;
  static constexpr std::uint64_t kTick_us = 20'000;

  static bool is(SlotImage image, const Bytes& expected) {
    return image.data != nullptr && image.bytes == expected.size() &&
           std::memcmp(image.data, expected.data(), image.bytes) == 0;
  }

  // -- the board's life ---------------------------------------------------------------------------

  void restart() {
    for (;;) {
      board_in_memory::to_board.clear();
      board_in_memory::from_board.clear();
      application_.reset();
      try {
        application_ = std::make_unique<Application>(flash_);
        break;
      } catch (const flash_model::PowerCut&) {
        flash_.cut_after(Flash::kNever, disorder_.left);
      }
    }
    is_armed_ = false;
    if (application_->is_in_trial()) throw Violation("a trial goes on after a reset");
    check();
  }
  void reset() {
    resets++;
    restart();
  }

  void turn() {
    try {
      for (int i = 0; i < 200 && application_->poll(); i++) {
      }
    } catch (const flash_model::PowerCut&) {
      flash_.cut_after(Flash::kNever, disorder_.left);
      return reset();
    }
    check();
    send_frames();
  }

  // Each frame that the board has written is a packet.
  void send_frames() {
    const Bytes& bytes = board_in_memory::from_board;
    std::size_t begin = 0;
    while (begin < bytes.size()) {
      const std::size_t end = begin + MAVLINK_NUM_NON_PAYLOAD_BYTES + bytes[begin + 1];
      transmit(Bytes(bytes.begin() + static_cast<std::ptrdiff_t>(begin),
                     bytes.begin() + static_cast<std::ptrdiff_t>(end)),
               to_host_, host_arrival_us_);
      begin = end;
    }
    board_in_memory::from_board.clear();
  }

  // -- the link -----------------------------------------------------------------------------------

  void transmit(Bytes packet, Packets& way, std::uint64_t& last_us) {
    if (calm_) return put(std::move(packet), way, last_us, false);
    if (now_us() < cut_until_us_ || chance_.strikes(disorder_.loss)) return;
    const int copies = chance_.strikes(disorder_.copies) ? 2 : 1;
    for (int i = 0; i < copies; i++) {
      Bytes copy = packet;
      if (chance_.strikes(disorder_.damage)) damage(copy);
      put(std::move(copy), way, last_us, chance_.strikes(disorder_.delays));
    }
  }
  // In order, but for those that are delayed.
  void put(Bytes packet, Packets& way, std::uint64_t& last_us, bool is_delayed) {
    std::uint64_t arrival_us = std::max(last_us, now_us() + kLatency_us);
    if (!is_delayed) last_us = arrival_us;
    if (is_delayed) arrival_us += chance_.below(kLongestDelay_us);
    way.emplace(arrival_us, std::move(packet));
  }
  void damage(Bytes& packet) {
    const std::size_t place = chance_.below(packet.size());
    switch (chance_.below(3)) {
      case 0: packet[place] ^= static_cast<std::uint8_t>(1u << chance_.below(8)); return;
      case 1: packet.erase(packet.begin() + static_cast<std::ptrdiff_t>(place)); return;
      default: packet.resize(place); return;
    }
  }

  std::uint64_t next_us() const {
    std::uint64_t next = now_us() + kTick_us;
    if (!to_board_.empty()) next = std::min(next, to_board_.begin()->first);
    if (!to_host_.empty()) next = std::min(next, to_host_.begin()->first);
    return next;
  }

  // Time goes on to there, and what arrives by then does.
  void pass(std::uint64_t until_us) {
    board_in_memory::counter_us = std::max(now_us(), until_us);
    turn();
    while (!to_board_.empty() && to_board_.begin()->first <= now_us()) {
      const Bytes packet = std::move(to_board_.begin()->second);
      to_board_.erase(to_board_.begin());
      board_in_memory::to_board.insert(board_in_memory::to_board.end(), packet.begin(),
                                       packet.end());
      turn();
    }
    while (!to_host_.empty() && to_host_.begin()->first <= now_us()) {
      const Bytes& packet = to_host_.begin()->second;
      inbox_.insert(inbox_.end(), packet.begin(), packet.end());
      to_host_.erase(to_host_.begin());
    }
  }

  // -- what happens -------------------------------------------------------------------------------

  // Before a packet of the host.
  void strike() {
    if (calm_) return;
    if (packets == disorder_.cut_at) cut_until_us_ = now_us() + disorder_.cut_us;
    if (packets == disorder_.reset_at) reset();
    if (packets == disorder_.power_cut_at) {
      flash_.cut_after(disorder_.power_cut_bytes, disorder_.left);
    }
    if (chance_.strikes(disorder_.other_host)) disturb();
  }

  template <class Content>
  void send_as_other(Encode<Content> encode, const Content& content) {
    transmit(frame_of(kOther, encode, addressed_to(kBoard, content)), to_board_, board_arrival_us_);
  }
  void command_as_other(int number, float first_parameter, float second_parameter,
                        std::uint8_t confirmation) {
    mavlink_command_long_t content{};
    content.command = static_cast<std::uint16_t>(number);
    content.param1 = first_parameter;
    content.param2 = second_parameter;
    content.confirmation = confirmation;
    send_as_other(mavlink_msg_command_long_encode, content);
  }
  void ask_file_as_other(FileOperation operation, std::uint32_t offset, const Bytes& data) {
    const auto sequence = static_cast<std::uint16_t>(chance_.next());
    send_as_other(mavlink_msg_file_transfer_protocol_encode,
                  content_of(file_request(sequence, 9, operation, offset, data)));
  }
  void set_armed(bool armed) {
    is_armed_ = armed;
    command_as_other(MAV_CMD_COMPONENT_ARM_DISARM, armed ? 1.0f : 0.0f, 0.0f, 0);
    if (calm_) pass(now_us() + 2 * kLatency_us);
  }

  // Another program asks, transfers files, arms, and means policies that are not there.
  void disturb() {
    const auto confirmation = static_cast<std::uint8_t>(chance_.below(3));
    const float number = chance_.strikes(0.5) ? number_of(first) : 0.0f;
    switch (chance_.below(10)) {
      case 0:
        return command_as_other(MAV_CMD_REQUEST_MESSAGE, MAVLINK_MSG_ID_RLT_POLICY_SLOT, 0, 0);
      case 1: return command_as_other(MAV_CMD_RLT_TRY, 10.0f, number, confirmation);
      case 2: return command_as_other(MAV_CMD_RLT_CONFIRM, 0.0f, number, confirmation);
      case 3: return command_as_other(MAV_CMD_RLT_ROLL_BACK, 0.0f, 0.0f, confirmation);
      case 4: return set_armed(!is_armed_);
      case 5:
        ask_file_as_other(FileOperation::open_file_ro, 0, bytes_of("/policy.rltp"));
        return ask_file_as_other(FileOperation::burst_read_file, 0, {});
      case 6: return ask_file_as_other(FileOperation::create_file, 0, bytes_of("/candidate.rltp"));
      case 7: return ask_file_as_other(FileOperation::write_file, 0, Bytes(200, 0x33));
      case 8: return ask_file_as_other(FileOperation::terminate_session, 0, {});
      default: return command_as_other(MAV_CMD_RLT_MEASURE, RLT_MEASURED_TICK, 3.0f, 0);
    }
  }

  // What the host has sent gives it a right to.
  void note_command(const std::uint8_t* bytes, std::size_t count) {
    mavlink_message_t message;
    mavlink_status_t status{}, result{};
    mavlink_message_t partial{};
    for (std::size_t i = 0; i < count; i++) {
      if (mavlink_frame_char_buffer(&partial, &status, bytes[i], &message, &result) !=
              MAVLINK_FRAMING_OK ||
          message.msgid != MAVLINK_MSG_ID_COMMAND_LONG) {
        continue;
      }
      mavlink_command_long_t content;
      mavlink_msg_command_long_decode(&message, &content);
      const bool is_meant = content.param2 == number_of_second_;
      if (content.command == MAV_CMD_RLT_TRY && is_meant) tried_ = true;
      if (content.command == MAV_CMD_RLT_CONFIRM && is_meant) confirmed_ = tried_;
    }
  }

  Chance chance_;
  const Disorder disorder_;
  Flash flash_{kBlocks};
  std::unique_ptr<Application> application_;
  Packets to_board_, to_host_;
  std::uint64_t board_arrival_us_ = 0, host_arrival_us_ = 0;  // of the last packet in order
  Bytes inbox_;
  std::uint64_t cut_until_us_ = 0;
  const float number_of_second_ = number_of(second);
  bool calm_ = false, is_armed_ = false, tried_ = false, confirmed_ = false;
};

}  // namespace lossy_world
