// The module of integrations/px4 as PX4 sees it: topics in, topics out, files, commands. The test
// is the commander, the sensors and the shell.
#include "px4_bench.h"

#include <new>

namespace {

#if RLT_TEST_SETPOINT_CONFIG
using Configuration = setpoint_config_s;
#else
using Configuration = vehicle_control_mode_s;
#endif

}  // namespace

TEST_CASE("the mode is registered, and again each second until the commander answers") {
  const unsigned before = registrations();
  Px4 px4;
  CHECK(registrations() == before + 1);
  const auto& request = Topic<register_ext_component_request_s>::message;
  CHECK(std::string(request.name) == "RL Policy");
  CHECK(request.register_mode);
  CHECK(request.register_arming_check);
  px4.ticks(505);
  CHECK(registrations() == before + 2);
  publish(register_ext_component_reply_s{0, request.request_id + 1, true, 0, 24});  // another's
  px4.ticks(505);
  CHECK(registrations() == before + 3);
  px4.accept_registration();
  px4.ticks(1010);
  CHECK(registrations() == before + 3);
}

TEST_CASE("PX4's controllers are told to rest at registration and whenever the mode is entered") {
  Px4 px4;
  const unsigned before = Topic<Configuration>::generation;
  px4.accept_registration();
  CHECK(Topic<Configuration>::generation == before + 1);
  CHECK(Topic<Configuration>::message.source_id == kExternal1);
#if RLT_TEST_SETPOINT_CONFIG
  CHECK(Topic<Configuration>::message.type == setpoint_config_s::TYPE_DIRECT_ACTUATORS);
  CHECK(Topic<Configuration>::message.should_apply);
  CHECK(Topic<Configuration>::message.timeout_ms == 100);
#else
  CHECK(!Topic<Configuration>::message.flag_control_allocation_enabled);
  CHECK(Topic<Configuration>::message.flag_control_climb_rate_enabled);
#endif
  for (const std::uint8_t mode : {kExternal1, kHold, kExternal1}) {
    px4.set(false, mode, 3);
  }
  CHECK(Topic<Configuration>::generation == before + 3);
}

TEST_CASE("arming checks are answered with what the mode needs, and refused with a reason") {
  Px4 px4;
  const unsigned before = answers();
  px4.ask();
  CHECK(answers() == before);  // not registered yet
  px4.accept_registration();
  const arming_check_reply_s reply = px4.ask();
  CHECK(reply.can_arm_and_run);
  CHECK(reply.request_id == px4.requests);
  CHECK(reply.registration_id == 2);
  CHECK((reply.mode_req_angular_velocity && reply.mode_req_attitude && reply.mode_req_local_alt &&
         reply.mode_req_local_position && reply.mode_req_prevent_arming));
  px4.rates_come = false;
  px4.ticks(10);
  CHECK(!px4.ask().can_arm_and_run);
  CHECK(!px4_test::speaks_to_ground);  // another mode is selected
  px4.set(false, kExternal1);
  px4.ask();
  CHECK(px4_test::speaks_to_ground);
  CHECK(log_has("RL Policy: angular velocity too old"));
}

TEST_CASE("a registration that is refused is none, and any ask's answer is taken") {
  Px4 px4;
  const std::uint64_t id = Topic<register_ext_component_request_s>::message.request_id;
  publish(register_ext_component_reply_s{0, id, false, -1, -1});
  px4.ticks(1);
  const unsigned replies = answers();
  px4.ask();
  CHECK(answers() == replies);
  publish(register_ext_component_reply_s{0, id, false, 5, 25});
  px4.ask();
  CHECK(answers() == replies);
  px4.ticks(505);  // it has asked again
  publish(register_ext_component_reply_s{0, id, true, 2, kExternal1});
  px4.ticks(1);
  CHECK(px4.ask().can_arm_and_run);
  CHECK(Topic<arming_check_reply_s>::message.health_component_index == 0);
}

TEST_CASE("each of the position's four flags, and the times of the samples, count") {
  for (int flag = -1; flag < 4; flag++) {
    Px4 px4;
    px4.accept_registration();
    px4.ticks(2);
    vehicle_local_position_s position = Px4::position();
    position.xy_valid = flag != 0;
    position.z_valid = flag != 1;
    position.v_xy_valid = flag != 2;
    position.v_z_valid = flag != 3;
    px4.measure();
    publish(position);
    arming_check_request_s request{};
#if RLT_PX4_HAS_DESCRIPTOR
    request.valid_registrations_mask = 1u << 2;
#endif
    publish(request);
    px4_usleep(2000);
    CHECK(Topic<arming_check_reply_s>::message.can_arm_and_run == (flag == -1));
  }
  Px4 px4;
  px4.fly();
  const unsigned commands = fallbacks();
  px4.tick_with(vehicle_attitude_s{px4_test::now_us, px4_test::now_us - 40000, {1, 0, 0, 0}});
  CHECK(fallbacks() == commands + 1);
  CHECK(log_has("attitude too old"));
}

TEST_CASE("rates and positions that come late are as old as their samples") {
  for (const bool of_rates : {true, false}) {
    Px4 px4;
    px4.fly();
    const unsigned commands = fallbacks();
    const std::uint64_t now_us = px4_test::now_us;
    if (of_rates) {
      px4.tick_with(vehicle_angular_velocity_s{now_us, now_us - 20000, {0.1f, 0.2f, 0.3f}});
    } else {
      vehicle_local_position_s position = Px4::position();
      position.timestamp_sample = now_us - 200000;
      px4.tick_with(position);
    }
    CHECK(fallbacks() == commands + 1);
    CHECK(log_has(of_rates ? "angular velocity too old" : "local position too old"));
  }
}

TEST_CASE("the estimator's resets and the setpoint reach the policy axis by axis") {
  const auto motors_after = [](void (*change)(vehicle_local_position_s&), const float* setpoint) {
    Px4 px4;
    px4.fly();
    px4.measure();
    vehicle_local_position_s position = Px4::position();
    change(position);
    publish(position);
    if (setpoint != nullptr) {
      publish(trajectory_setpoint_s{px4_test::now_us, {setpoint[0], setpoint[1], setpoint[2]}});
    }
    px4_usleep(2000);
    return thrusts();
  };
  const auto still = motors_after([](vehicle_local_position_s&) {}, nullptr);
  CHECK(still == motors_after(
                     [](vehicle_local_position_s& p) {
                       p.x += p.delta_xy[0] = 0.5f;
                       p.y += p.delta_xy[1] = -0.25f;
                       p.xy_reset_counter++;
                     },
                     nullptr));
  CHECK(still == motors_after(
                     [](vehicle_local_position_s& p) {
                       p.z += p.delta_z = 0.75f;
                       p.z_reset_counter++;
                     },
                     nullptr));
  // The vehicle is moved where the setpoint moves the target.
  const float setpoint[3] = {0.5f, -0.25f, -1.25f};
  CHECK(still == motors_after(
                     [](vehicle_local_position_s& p) {
                       p.x = 0.5f;
                       p.y = -0.25f;
                       p.z = -1.25f;
                     },
                     setpoint));
}

using ::px4::params;
struct RestoredParameters {
  ~RestoredParameters() {
    ParamInt<params::RLT_AGE_RATES>::value = 10;
    ParamInt<params::RLT_AGE_ATT>::value = 30;
    ParamInt<params::RLT_AGE_POS>::value = 100;
    ParamInt<params::RLT_AGE_SP>::value = 500;
    ParamInt<params::RLT_FALLBACK>::value = 4;
    ParamFloat<params::RLT_SAFE_THR>::value = 0.4f;
    ParamInt<params::RLT_HEADING>::value = 1;
    ParamInt<params::RLT_TRIAL>::value = 300;
  }
};

TEST_CASE("parameters: each has its own meaning") {
  const RestoredParameters restored;
  ParamInt<params::RLT_AGE_ATT>::value = 20;
  ParamInt<params::RLT_AGE_POS>::value = 60;
  ParamInt<params::RLT_AGE_SP>::value = 40;
  ParamInt<params::RLT_FALLBACK>::value = 18;
  ParamFloat<params::RLT_SAFE_THR>::value = 0.3f;
  for (const std::uint32_t age_us : {20000u, 20001u}) {
    Px4 px4;
    px4.fly();
    const unsigned commands = fallbacks();
    const std::uint64_t then_us = px4_test::now_us + 2000 - age_us;
    px4.tick_with(vehicle_attitude_s{then_us, then_us, {1, 0, 0, 0}});
    CHECK((fallbacks() == commands + 1) == (age_us > 20000));
    if (age_us == 20000) continue;
    CHECK(Topic<vehicle_command_s>::message.param1 == 18.0f);
    CHECK(thrusts()[0] == 0.3f);
  }
  for (const std::uint32_t age_us : {60000u, 60001u}) {
    Px4 px4;
    px4.fly();
    const unsigned commands = fallbacks();
    vehicle_local_position_s position = Px4::position();
    position.timestamp = px4_test::now_us + 2000 - age_us;
    px4.tick_with(position);
    CHECK((fallbacks() == commands + 1) == (age_us > 60000));
  }
  std::array<float, 4> motors[3];
  for (std::size_t i = 0; i < 3; i++) {  // a setpoint of 40 ms is followed, of 42 ms not; none
    Px4 px4;
    px4.fly();
    px4.measure();
    const std::uint64_t then_us = px4_test::now_us + 2000 - (i == 0 ? 40000 : 40001);
    if (i < 2) publish(trajectory_setpoint_s{then_us, {0.5f, -0.25f, -1.25f}});
    px4_usleep(2000);
    motors[i] = thrusts();
  }
  CHECK(motors[0] != motors[2]);
  CHECK(motors[1] == motors[2]);
  for (std::size_t i = 0; i < 3; i++) {  // nose to the north: held, led to the east, from now on
    ParamInt<params::RLT_HEADING>::value = i == 1 ? 0 : 1;
    Px4 px4;
    px4.fly();
    ParamInt<params::RLT_HEADING>::value = i == 0 ? 1 : 0;
    publish(parameter_update_s{px4_test::now_us});
    px4.ticks(100);
    motors[i] = thrusts();
  }
  CHECK(motors[0] != motors[1]);
  for (std::size_t i = 0; i < 4; i++) {
    CHECK(motors[2][i] == doctest::Approx(motors[1][i]).epsilon(0.01));
  }
}

// PX4 keeps any number that a parameter is given.
TEST_CASE("parameters outside of their range: no start, and in the air nothing changes") {
  const RestoredParameters restored;
  Px4 px4({{"policy.rltp", image_of(1)}, {"candidate.rltp", image_of(2)}});
  for (const int wrong : {9, 1801, -1}) {
    ParamInt<params::RLT_TRIAL>::value = wrong;
    CHECK(command("try") != 0);
    CHECK(log_has("RLT_TRIAL is"));
  }
  ParamInt<params::RLT_TRIAL>::value = 1800;
  CHECK(command("try") == 0);
  px4.fly();
  ParamInt<params::RLT_FALLBACK>::value = 23;  // itself
  ParamInt<params::RLT_HEADING>::value = 2;
  ParamInt<params::RLT_AGE_RATES>::value = -1;
  ParamFloat<params::RLT_SAFE_THR>::value = NAN;
  publish(parameter_update_s{px4_test::now_us});
  px4.ticks(2);
  CHECK(log_has("RLT_HEADING stays"));
  px4.rates_come = false;
  px4.ticks(10);
  CHECK(Topic<vehicle_command_s>::message.param1 == 4.0f);
  CHECK(thrusts()[0] == 0.4f);
  px4.set(false, kHold, 1);
  REQUIRE(command("stop") == 0);
  px4.ticks(60);
  CHECK(command("start") != 0);
  CHECK(log_has("RLT_HEADING is 2, not 0 to 1"));
  ParamInt<params::RLT_HEADING>::value = 1;
  CHECK(command("start") != 0);
  CHECK(log_has("RLT_SAFE_THR is"));
  ParamFloat<params::RLT_SAFE_THR>::value = 0.4f;
  CHECK(command("start") != 0);
  CHECK(log_has("RLT_AGE_RATES is -1, not 1 to 100"));
  ParamInt<params::RLT_AGE_RATES>::value = 100;
  CHECK(command("start") != 0);
  CHECK(log_has("RLT_FALLBACK is 23, none of its modes"));
  ParamInt<params::RLT_FALLBACK>::value = 18;
  CHECK(command("start") == 0);
}

TEST_CASE("a fault is said once, and the next one too") {
  Px4 px4;
  px4.fly();
  for (int fault = 0; fault < 2; fault++) {
    px4_test::said_to_ground = 0;
    px4.rates_come = false;
    px4.ticks(100);
    CHECK(px4_test::said_to_ground == 1);
    px4.rates_come = true;
    px4.set(true, kHold, 2);
    px4.set(true, kExternal1, 5);
  }
}

TEST_CASE("motors: PX4's four in their order, no others, and the collective thrust") {
  Px4 px4;
  const unsigned before = motor_messages();
  px4.ticks(5);
  CHECK(motor_messages() == before);
  px4.fly();
  const unsigned flying = motor_messages();
  px4.ticks(100);
  CHECK(motor_messages() == flying + 100);
  const auto& motors = Topic<actuator_motors_s>::message;
  float sum = 0.0f;
  for (int i = 0; i < 12; i++) {
    CHECK(std::isnan(motors.control[i]) == (i >= 4));
    if (i < 4) sum += motors.control[i];
  }
  CHECK(Topic<vehicle_thrust_setpoint_s>::message.xyz[2] == doctest::Approx(-0.25f * sum));
  CHECK(motors.timestamp == px4_test::now_us);
  CHECK(motors.timestamp_sample == px4_test::now_us - 2000);
  px4.set(true, kHold, 5);
  CHECK(motor_messages() == flying + 100);
}

TEST_CASE("a fault is answered with PX4's estimate of hover's thrust, where it is valid") {
  for (const bool is_valid : {true, false}) {
    Px4 px4;
    px4.fly();
    publish(hover_thrust_estimate_s{px4_test::now_us, px4_test::now_us, 0.47f, is_valid});
    px4.rates_come = false;
    px4.ticks(5);
    const float thrust = is_valid ? 0.47f : 0.4f;
    for (const float motor : thrusts()) CHECK(motor == thrust);
    CHECK(Topic<vehicle_thrust_setpoint_s>::message.xyz[2] == doctest::Approx(-thrust));
  }
}

TEST_CASE("rates stop: within two ticks of the limit safe motors and the fallback mode") {
  Px4 px4;
  px4.fly();
  const unsigned commands = fallbacks();
  px4.rates_come = false;
  px4.ticks(4);  // 10 ms old: the limit
  CHECK(fallbacks() == commands);
  px4.ticks(1);
  CHECK(fallbacks() == commands + 1);
  const auto& command = Topic<vehicle_command_s>::message;
  CHECK(command.command == vehicle_command_s::VEHICLE_CMD_SET_NAV_STATE);
  CHECK(command.param1 == kHold);
  CHECK(command.target_system == 7);
  for (const float motor : thrusts()) CHECK(motor == 0.4f);
  CHECK(log_has("RL Policy: angular velocity too old"));
  CHECK(!px4.ask().can_arm_and_run);
  px4.rates_come = true;
  px4.set(true, kHold, 2);
  CHECK(px4.ask().can_arm_and_run);
}

TEST_CASE("other rotors than the contract's are refused, also after a change of parameters") {
  Px4 px4;
  px4.accept_registration();
  CHECK(px4.ask().can_arm_and_run);
  px4_test::rotor_sign = -1.0f;
  publish(parameter_update_s{1});
  px4.ticks(1);
  CHECK(!px4.ask().can_arm_and_run);
  px4_test::rotor_sign = 1.0f;
  px4_test::rotor_count = 6;
  publish(parameter_update_s{2});
  px4.ticks(1);
  CHECK(!px4.ask().can_arm_and_run);
  px4_test::rotor_count = 4;
  publish(parameter_update_s{3});
  px4.ticks(1);
  CHECK(px4.ask().can_arm_and_run);
}

TEST_CASE("other rotors are refused also where they became others in the air") {
  for (const bool is_told : {true, false}) {  // by parameter_update, or else found
    Px4 px4;
    px4.register_and_set(true, kHold, 2);
    CHECK(px4.ask().can_arm_and_run);
    px4_test::rotor_sign = -1.0f;
    if (is_told) publish(parameter_update_s{1});
    px4.ticks(2);
    CHECK(!px4.ask().can_arm_and_run);
    px4.set(false, kHold, 2);
    CHECK(!px4.ask().can_arm_and_run);
    px4.set(true, kExternal1, 1);
    CHECK(log_has("rotors differ"));
    px4.set(false, kHold);
    px4_test::rotor_sign = 1.0f;
    px4.ticks(2);
    CHECK(px4.ask().can_arm_and_run);
  }
}

TEST_CASE("rotors are looked at when the mode is entered, though nobody asked") {
  Px4 px4;
  px4.register_and_set(true, kHold, 2);
  px4_test::rotor_count = 6;
  px4.set(true, kExternal1, 1);
  px4_test::rotor_count = 4;
  CHECK(log_has("rotors differ"));
}

TEST_CASE("motors keep their numbers while the vehicle is armed") {
  for (const bool acts : {true, false}) {
    Px4 px4;
    px4.register_and_set(true, acts ? kExternal1 : kHold, 2);
    std::swap(px4_test::rotors[0], px4_test::rotors[1]);  // a contract's vehicle, too
    publish(parameter_update_s{1});
    const unsigned commands = fallbacks(), motors = motor_messages();
    px4.ticks(50);
    CHECK(px4.ask().can_arm_and_run == acts);  // it goes on with those that it has
    CHECK(fallbacks() == commands);
    CHECK(motor_messages() == motors + (acts ? 51 : 0));
    px4.set(true, kHold, 2);
    CHECK(!px4.ask().can_arm_and_run);
    px4.set(false, kHold, 2);
    CHECK(px4.ask().can_arm_and_run);
    std::swap(px4_test::rotors[0], px4_test::rotors[1]);
  }
}

TEST_CASE("on the ground the mode is refused while the vehicle is armed, and no rotor turns") {
  for (int flag = 0; flag < 3; flag++) {
    Px4 px4;
    px4.accept_registration();
    CHECK(px4.ask().can_arm_and_run);  // disarmed: PX4 does not arm in it
    px4.ground(flag == 0, flag == 1, flag == 2);
    px4.set_on_ground(true, kHold, 2);
    CHECK(!px4.ask().can_arm_and_run);
    px4.set_on_ground(true, kExternal1);  // nevertheless
    px4.ticks(1);
    CHECK(log_has("RL Policy: on the ground: take off first"));
    const unsigned commands = fallbacks();
    for (int i = 0; i < 100; i++) {
      px4.ticks(1);
      for (const float motor : thrusts()) REQUIRE(motor == 0.0f);
    }
    CHECK(fallbacks() == commands + 4);
    px4.set(true, kHold);  // in the air
    px4.ticks(2);
    CHECK(px4.ask().can_arm_and_run);
    px4.set(true, kExternal1);
    const unsigned motors = motor_messages();
    px4.ticks(5);
    CHECK(motor_messages() == motors + 5);
    CHECK(thrusts()[0] > 0.0f);
  }
}

TEST_CASE("without a file there is a mode that cannot be flown") {
  Px4 px4(std::vector<std::pair<const char*, Image>>{});
  CHECK(log_has(("no policy yet: " + px4.name + " has no policy.rltp").c_str()));
  px4.accept_registration();
  CHECK(!px4.ask().can_arm_and_run);
  CHECK(command("status") == 0);
}

TEST_CASE("try, confirm, roll back: files follow") {
  Px4 px4({{"policy.rltp", image_of(1)}, {"candidate.rltp", image_of(2)}});
  CHECK(command("confirm") != 0);
  CHECK(command("try") == 0);
  CHECK(px4.read("policy.rltp") == image_of(1));
  px4.write("candidate.rltp", image_of(3));
  CHECK(command("confirm") != 0);
  CHECK(log_has("not what was tried"));
  px4.write("candidate.rltp", image_of(2));
  CHECK(command("confirm") == 0);
  CHECK(px4.read("policy.rltp") == image_of(2));
  CHECK(px4.read("previous.rltp") == image_of(1));
  CHECK(px4.read("candidate.rltp").empty());
  CHECK(command("rollback") == 0);
  CHECK(px4.read("policy.rltp") == image_of(1));
  CHECK(command("rollback") != 0);
  px4.accept_registration();
  CHECK(px4.ask().can_arm_and_run);
}

TEST_CASE("a trial that is not confirmed leaves files and policy as they were") {
  for (const bool waits : {true, false}) {
    Px4 px4({{"policy.rltp", image_of(1)}, {"candidate.rltp", image_of(2)}});
    CHECK(command("try") == 0);
    if (waits) {
      px4_test::now_us += 300000000u;
      px4.ticks(1);
      CHECK(command("confirm") != 0);
    } else {
      CHECK(command("rollback") == 0);
    }
    CHECK(px4.read("policy.rltp") == image_of(1));
    CHECK(px4.read("candidate.rltp") == image_of(2));
    px4.accept_registration();
    CHECK(px4.ask().can_arm_and_run);
  }
}

TEST_CASE("no policy is exchanged while the vehicle is armed") {
  Px4 px4({{"policy.rltp", image_of(1)}, {"candidate.rltp", image_of(2)}});
  px4.register_and_set(true, kHold, 1);
  for (const char* word : {"try", "confirm", "rollback"}) {
    CHECK(command(word) != 0);
    CHECK(log_has("armed"));
  }
  px4.set(false, kHold, 1);
  CHECK(px4.ask().can_arm_and_run);  // nobody waits at the door
  CHECK(command("try") == 0);
}

TEST_CASE("a command that is refused leaves the trial and the policies as they are") {
  Image damaged = image_of(3);
  damaged[500] ^= 4;
  Px4 px4({{"policy.rltp", image_of(1)}, {"candidate.rltp", image_of(2)}});
  px4.accept_registration();
  REQUIRE(command("try") == 0);
  px4.write("candidate.rltp", damaged);
  CHECK(command("try") != 0);
  CHECK(command("confirm") != 0);
  px4.write("candidate.rltp", image_of(2));
  CHECK(command("confirm") == 0);
  CHECK(px4.read("policy.rltp") == image_of(2));
  px4.write("previous.rltp", damaged);
  CHECK(command("rollback") != 0);  // and says so
  CHECK(log_has("refused: reason"));
}

TEST_CASE("a policy that has failed stays refused where a candidate is refused") {
  Px4 px4({{"policy.rltp", overflowing_image()}});
  px4.fly();
  vehicle_local_position_s position = Px4::position();
  position.z = -6.95f;
  px4.tick_with(position);
  CHECK(log_has("not finite"));
  px4.set(false, kHold, 2);
  CHECK(command("try") != 0);
  CHECK(!px4.ask().can_arm_and_run);
  px4.write("candidate.rltp", image_of(1));
  CHECK(command("try") == 0);
  CHECK(px4.ask().can_arm_and_run);
}

TEST_CASE("a card that takes no new names: confirm says what acts after a restart") {
  Px4 px4({{"policy.rltp", image_of(1)}, {"candidate.rltp", image_of(2)}});
  px4.accept_registration();
  REQUIRE(command("try") == 0);
  std::filesystem::create_directories(px4.name + "/previous.rltp/full");
  CHECK(command("confirm") != 0);
  CHECK(log_has("after a restart the policy before acts"));
  CHECK(px4.read("policy.rltp") == image_of(1));
  CHECK(px4.read("candidate.rltp") == image_of(2));
  CHECK(px4.ask().can_arm_and_run);
}

TEST_CASE("a file that cannot be read is not tried") {
  Px4 px4;
  std::filesystem::create_directory(px4.name + "/candidate.rltp");  // it opens, and gives no byte
  CHECK(command("try") != 0);
  CHECK(log_has("cannot be read"));
}

TEST_CASE("an offset that is refused leaves the one before, and none is taken twice") {
  std::array<float, 4> motors[3];
  for (std::size_t entry = 0; entry < 2; entry++) {
    Px4 px4;
    px4.register_and_set(true, kHold, 1);
    REQUIRE(command({"offset", "0.5", "-0.25", "1.5"}) == 0);
    if (entry == 1) CHECK(command({"offset", "9", "0", "0"}) != 0);
    px4.ticks(1);
    px4.set(true, kExternal1);
    px4.noise = 5;
    px4.ticks(1);
    motors[entry] = thrusts();
    px4.set(true, kHold, 5);
    px4.set(true, kExternal1);
    px4.noise = 5;
    px4.ticks(1);
    motors[2] = thrusts();
    CHECK(motors[2] != motors[entry]);
  }
  CHECK(motors[0] == motors[1]);
}

TEST_CASE("an offset is taken in the air, for the next time that the mode is entered") {
  CHECK(command({"offset", "1", "0", "0"}) != 0);
  CHECK(log_has("not running"));
  std::array<float, 4> motors[2];
  for (const bool has_offset : {false, true}) {
    Px4 px4;
    px4.register_and_set(true, kHold, 1);
    if (has_offset) CHECK(command({"offset", "0.5", "-0.25", "1.5"}) == 0);
    px4.ticks(1);
    px4.set(true, kExternal1, 1);
    motors[has_offset] = thrusts();
  }
  CHECK(motors[0] != motors[1]);
  CHECK(log_has("next target 0.50 -0.25 1.50"));
  Px4 px4;
  px4.register_and_set(true, kHold, 1);
  for (const auto& words : std::vector<std::vector<std::string>>{{"offset"},
                                                                 {"offset", "1", "0"},
                                                                 {"offset", "1", "0", "0", "0"},
                                                                 {"offset", "1", "0", "up"},
                                                                 {"offset", "1", "0", "0.5m"},
                                                                 {"offset", "1", "", "0"},
                                                                 {"offset", "4", "3.01", "0"},
                                                                 {"offset", "6", "0", "0"},
                                                                 {"offset", "nan", "0", "0"}}) {
    CHECK(command(words) != 0);
  }
  CHECK(log_has("at most 5.00 m away"));
  CHECK(command({"offset", "4", "3", "0"}) == 0);
}

TEST_CASE("an offset is bounded by the policy's envelope, which status tells") {
  const Image image = image_of_network(network_of(1));
  Px4 px4({{"policy.rltp", entry_images::with_entry(image, {5.0f, 2.0f, 0.5f, 3.0f, 1.5f})},
           {"candidate.rltp", image}});
  px4.ticks(1);
  CHECK(command({"offset", "1.2", "-1.6", "0"}) == 0);
  CHECK(command({"offset", "1.2", "-1.61", "0"}) != 0);
  CHECK(log_has("at most 2.00 m away"));
  const auto entry = [] {
    CHECK(command("status") == 0);
    return std::string(px4_test::lines[1]);
  };
  CHECK(entry() == "entry 5.00 m/s 2.00 m 29 deg 3.00 rad/s, from 1.50 m up: stated by the policy");
  REQUIRE(command("try") == 0);
  px4.ticks(1);
  CHECK(entry() ==
        "entry 0.50 m/s 0.30 m 20 deg 1.00 rad/s, from 0.50 m up: assumed, the policy states none");
  CHECK(command({"offset", "1.6", "0", "0"}) != 0);
}

TEST_CASE("a vehicle outside of the envelope is refused before it is asked, and handed back") {
  const auto entry = EntryEnvelope{5.0f, 2.0f, 0.5f, 3.0f, 1.5f};
  Px4 px4({{"policy.rltp", entry_images::with_entry(image_of_network(network_of(1)), entry)}});
  px4.register_and_set(true, kHold, 1);
  CHECK(px4.ask().can_arm_and_run);
  vehicle_local_position_s fast = Px4::position();
  fast.vy = 5.1f;
  px4.tick_with(fast);
  arming_check_request_s request{};
  request.request_id = ++px4.requests;
#if RLT_PX4_HAS_DESCRIPTOR
  request.valid_registrations_mask = 1u << 2;
#endif
  publish(request);
  px4.tick_with(fast);
  CHECK(!Topic<arming_check_reply_s>::message.can_arm_and_run);
  // PX4 heard it too late: in the mode it is in the hands of the fallback at once.
  const unsigned before = fallbacks();
  px4.status.nav_state = kExternal1;
  publish(px4.status);
  px4.tick_with(fast);
  CHECK(fallbacks() == before + 1);
  CHECK(Topic<vehicle_command_s>::message.param1 == 4.0f);
  CHECK(log_has("RL Policy: too fast for this policy"));
  // Of a height: as PX4 measures it, or else above the place where it stood.
  px4.set(true, kHold, 1);
  vehicle_local_position_s low = Px4::position();
  low.dist_bottom = 0.4f;
  low.z = -9.0f;
  for (const bool is_measured : {true, false}) {
    low.dist_bottom_valid = is_measured;
    px4.tick_with(low);
    publish(request);
    px4.tick_with(low);
    CHECK(Topic<arming_check_reply_s>::message.can_arm_and_run == !is_measured);
  }
}

TEST_CASE("moved sticks ask for Position, by PX4's own parameters") {
  const auto moved = [](bool valid, bool moving) {
    return manual_control_setpoint_s{px4_test::now_us, valid, moving};
  };
  for (const int rc_override : {-1, 0, 1, 2, 3}) {  // -1: MAN_OVERRIDE_SPD is in sticks_moving
    px4_test::rc_override = rc_override;
    publish(moved(true, false));
    Px4 px4;
    px4.fly();
    const unsigned before = fallbacks(), motors = motor_messages();
    px4.tick_with(moved(true, false));
    px4.tick_with(moved(false, true));
    CHECK(fallbacks() == before);
    px4.tick_with(moved(true, true));
    const bool takes = rc_override < 0 || (rc_override & 1) != 0;
    CHECK(fallbacks() == before + takes);
    CHECK(motor_messages() == motors + 3);
    if (!takes) continue;
    CHECK(Topic<vehicle_command_s>::message.param1 == 2.0f);
    CHECK(log_has("Pilot took over using sticks"));
    px4.set(true, 2, 1);
    px4.tick_with(moved(true, true));
    CHECK(fallbacks() == before + 1);  // PX4 is in Position
    CHECK(motor_messages() == motors + 3);
    // The parameter counts from the moment on at which it changes.
    if (rc_override < 0) continue;
    px4.set(true, kExternal1, 3);
    px4_test::rc_override = 0;
    publish(parameter_update_s{px4_test::now_us});
    px4.tick_with(moved(true, true));
    const unsigned then = fallbacks();
    px4.ticks(100);
    CHECK(fallbacks() == then);
  }
  px4_test::rc_override = -1;
}

TEST_CASE("a candidate that is refused leaves the policy") {
  Image damaged = image_of(2);
  damaged[500] ^= 4;
  Px4 px4({{"policy.rltp", image_of(1)}, {"candidate.rltp", damaged}});
  CHECK(command("try") != 0);
  CHECK(log_has("candidate.rltp refused: reason 6"));
  px4.accept_registration();
  CHECK(px4.ask().can_arm_and_run);
}

TEST_CASE("unknown commands are refused") {
  Px4 px4;
  command("dance");
  CHECK(log_has("unknown command"));
}

#if RLT_PX4_HAS_DESCRIPTOR
TEST_CASE("a mode that the commander has forgotten registers again") {
  Px4 px4;
  px4.accept_registration();
  CHECK(px4.ask().can_arm_and_run);
  const std::uint64_t first = Topic<register_ext_component_request_s>::message.request_id;
  const unsigned before = registrations();
  px4.ask(1u << 3);
  px4.ticks(505);
  CHECK(registrations() == before + 1);
  publish(register_ext_component_reply_s{0, first, true, 2, kExternal1});  // the answer of before
  px4.ticks(1);
  const unsigned replies = answers();
  px4.ask();
  CHECK(answers() == replies);
  px4.accept_registration(kExternal1 + 1);
  px4.set(true, kExternal1 + 1);
  const unsigned motors = motor_messages();
  px4.ticks(5);
  CHECK(motor_messages() == motors + 5);
}
#endif

// -- how it starts and ends, and what PX4 has of it afterwards ------------------------------------

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
  px4.set(true, kHold, 1);
  CHECK(command("stop") != 0);
  CHECK(Topic<unregister_ext_component_s>::generation == goings);
  px4.set(false, kHold, 1);
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
  const unsigned requests = registrations();
  CHECK(command("start") != 0);
  CHECK(log_has("already running"));
  px4.ticks(5);
  CHECK(motor_messages() == motors + 5);
  CHECK(registrations() == requests);
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
  px4.register_and_set(true, kExternal1, 5);
  CHECK(motor_messages() == motors + 5);
}
