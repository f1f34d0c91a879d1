// How the module of integrations/px4 starts and ends, and what PX4 has of it afterwards.
#include "px4_bench.h"

#include <new>

// The next allocation of so many bytes or more fails, as on a flight controller: with a null.
void* operator new(std::size_t bytes) {
  const std::size_t least = px4_test::fails_at_bytes;
  if (least == 0 || bytes < least) return std::malloc(bytes);
  px4_test::fails_at_bytes = 0;
  return nullptr;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace {

// The commander's side: external modes by their names, as PX4's ModeManagement keeps them. It looks
// each 50 ms, at what is new first and then at what has gone, and at neither while armed.
struct Commander {
  static inline Commander* only = nullptr;
  uORB::Subscription requests{ORB_ID(register_ext_component_request)};
  uORB::Subscription goings{ORB_ID(unregister_ext_component)};
  std::array<std::string, 8> names;
  int looks_in = 25, given = -1, removed = 0;
  bool is_armed = false;

  Commander() {
    for (register_ext_component_request_s old; requests.update(&old);) {
    }
    for (unregister_ext_component_s old; goings.update(&old);) {
    }
    only = this;
    px4_test::each_tick = [] { only->tick(); };
  }
  ~Commander() { px4_test::each_tick = nullptr; }

  void tick() {
    if (--looks_in > 0) return;
    looks_in = 25;
    if (is_armed) return;
    for (register_ext_component_request_s request; requests.update(&request);) {
      std::size_t free = 0;
      while (!names[free].empty()) free++;
      names[free] = request.name;
      given = kExternal1 + static_cast<int>(free);
      publish(register_ext_component_reply_s{0, request.request_id, true, 2,
                                             static_cast<std::int8_t>(given)});
    }
    for (unregister_ext_component_s going; goings.update(&going);) {
      std::string& name = names[static_cast<std::size_t>(going.mode_id - kExternal1)];
      CHECK(name == going.name);
      CHECK(going.arming_check_id == 2);
      name.clear();
      removed++;
    }
  }
};

template <class... Messages>
bool all_are_alive() {
  bool result = true;
  const auto look = [&](const px4_test::Node& node) {
    CHECK(node.is_ours);
    result = result && node.is_advertised;
  };
  (look(Topic<Messages>::node), ...);
  return result;
}

#if RLT_TEST_SETPOINT_CONFIG
using Configuration = setpoint_config_s;
#else
using Configuration = vehicle_control_mode_s;
#endif

}  // namespace

TEST_CASE("after a stop PX4's own modules are heard on each topic that the module has published") {
  publish(actuator_motors_s{});  // PX4's allocator has started
  publish(vehicle_thrust_setpoint_s{});
  uORB::Subscription outputs(ORB_ID(actuator_motors)), detector(ORB_ID(vehicle_thrust_setpoint));
  actuator_motors_s motors;
  vehicle_thrust_setpoint_s thrust;
  for (int start = 0; start < 2; start++) {
    {
      Px4 px4;
      px4.fly();
      px4.ask();
      px4.rates_come = false;  // a fault: it asks for the fallback
      px4.ticks(10);
    }
    CHECK(::px4::ScheduledWorkItem::scheduled == nullptr);
    CHECK((all_are_alive<actuator_motors_s, arming_check_reply_s, register_ext_component_request_s,
                         unregister_ext_component_s, vehicle_command_s, vehicle_thrust_setpoint_s,
                         Configuration>()));
    outputs.update(&motors);
    publish(actuator_motors_s{});
    CHECK(outputs.update(&motors));
    detector.update(&thrust);
    publish(vehicle_thrust_setpoint_s{});
    CHECK(detector.update(&thrust));
  }
}

TEST_CASE("stop is refused while the vehicle is armed, and the policy goes on") {
  Px4 px4;
  px4.fly();
  const unsigned motors = motor_messages(), goings = Topic<unregister_ext_component_s>::generation;
  px4.ask();
  CHECK(command("stop") != 0);
  CHECK(log_has("not while the vehicle is armed"));
  px4.ticks(10);
  CHECK(motor_messages() > motors + 10);
  px4.set(true, kHold);
  px4.ticks(1);
  CHECK(command("stop") != 0);
  CHECK(Topic<unregister_ext_component_s>::generation == goings);
  px4.set(false, kHold);
  px4.ticks(1);
  CHECK(command("stop") == 0);
  CHECK(Topic<unregister_ext_component_s>::generation == goings + 1);
}

TEST_CASE("the commander hears that the mode is given back, and a start gets the same one again") {
  Commander commander;
  Px4 px4;
  px4.ticks(60);
  REQUIRE(commander.given == kExternal1);
  for (int again = 1; again <= 3; again++) {
    CHECK(command("stop") == 0);
    CHECK(::px4::ScheduledWorkItem::scheduled == nullptr);
    CHECK(commander.removed == again);
    CHECK(command("try") != 0);
    CHECK(log_has("not running"));
    REQUIRE(command("start") == 0);
    px4.ticks(60);
    CHECK(commander.given == kExternal1);
    CHECK(px4.ask().can_arm_and_run);
  }
}

TEST_CASE("a mode that the commander gives while the module stops is given back") {
  Commander commander;
  Px4 px4;  // it has asked in its first tick
  CHECK(commander.given == -1);
  CHECK(command("stop") == 0);
  CHECK(commander.given == kExternal1);
  CHECK(commander.removed == 1);
  CHECK(commander.names[0].empty());
}

TEST_CASE("a second start is refused and leaves the first as it was") {
  Px4 px4;
  px4.fly();
  const unsigned motors = motor_messages();
  const unsigned requests = Topic<register_ext_component_request_s>::generation;
  CHECK(command("start") != 0);
  CHECK(log_has("already running"));
  px4.ticks(5);
  CHECK(motor_messages() == motors + 5);
  CHECK(Topic<register_ext_component_request_s>::generation == requests);
}

TEST_CASE("a start without memory leaves nothing behind, and the next one has it") {
  publish(actuator_motors_s{});
  for (const std::size_t bytes : {sizeof(RltPolicy), std::size_t{60000}}) {
    Px4 px4;
    REQUIRE(command("stop") == 0);
    px4_test::fails_at_bytes = bytes;
    CHECK(command("start") != 0);
    CHECK(px4_test::fails_at_bytes == 0);
    CHECK(log_has("not enough memory"));
    CHECK(::px4::ScheduledWorkItem::scheduled == nullptr);
    CHECK(command("status") != 0);
    CHECK(Topic<actuator_motors_s>::node.is_advertised);
    CHECK(command("start") == 0);
    px4.ticks(1);
    px4.fly();
    const unsigned motors = motor_messages();
    px4.ticks(5);
    CHECK(motor_messages() == motors + 5);
  }
}

TEST_CASE("a start in the air acts only where the mode is given and entered") {
  Px4 px4;
  CHECK(command("stop") == 0);
  px4.set(true, kExternal1);
  const unsigned motors = motor_messages();
  REQUIRE(command("start") == 0);
  px4.ticks(20);
  CHECK(motor_messages() == motors);
  px4.accept_registration();
  px4.set(true, kExternal1);
  px4.ticks(5);
  CHECK(motor_messages() == motors + 5);
}
