// PX4's module: a work item that runs the mode (policy_mode.h) 500 times a second, topics in and
// topics out. What is decided is decided there; what its commands do is in rlt_policy_shell.h.
//
// RLT_PX4_HAS_DESCRIPTOR: 1 where ModuleBase has a Descriptor (PX4 since 2026), 0 where it is a
// template.
#pragma once

#include <px4_platform_common/atomic.h>
#include <px4_platform_common/defines.h>
#include <px4_platform_common/log.h>
#include <px4_platform_common/module.h>
#include <px4_platform_common/module_params.h>
#include <systemlib/mavlink_log.h>
#include <uORB/topics/actuator_motors.h>
#include <uORB/topics/parameter_update.h>
#include <uORB/topics/vehicle_command.h>
#include <uORB/topics/vehicle_status.h>
#include <uORB/topics/vehicle_thrust_setpoint.h>
#include <px4_platform_common/px4_work_queue/ScheduledWorkItem.hpp>
#include <uORB/Subscription.hpp>

#include "commander_mode.h"
#include "lasting_publication.h"
#include "measurement_topics.h"
#include "rlt_policy_shell.h"

class RltPolicy :
#if RLT_PX4_HAS_DESCRIPTOR
    public ModuleBase,
#else
    public ModuleBase<RltPolicy>,
#endif
    public ModuleParams,
    public px4::ScheduledWorkItem {
 public:
#if RLT_PX4_HAS_DESCRIPTOR
  static Descriptor desc;
#endif
  RltPolicy()
      : ModuleParams(nullptr),
        ScheduledWorkItem(MODULE_NAME, px4::wq_configurations::nav_and_controllers) {}
  ~RltPolicy() override { delete mode_; }
  RltPolicy(const RltPolicy&) = delete;
  RltPolicy& operator=(const RltPolicy&) = delete;

  static int task_spawn(int argc, char* argv[]);
  static int custom_command(int argc, char* argv[]);
  static int print_usage(const char* reason = nullptr);
  // Return whether it may be stopped, and log why not.
  static bool may_be_stopped();
  int print_status() override;

 private:
  enum Guest : int { kNobody, kAsks, kMayWork };

  static RltPolicy* running();
  bool init();
  void read_rotors(bool is_armed);
  void read_override();
  void read_own();
  void Run() override;
  void stop();
  void read_topics();
  void act();
  void ask_for(int32_t nav_state);
  void answer_arming_check();

  bool let_in();
  void let_out() { guest_.store(kNobody); }

  rlt::px4::Mode* mode_ = nullptr;
  rlt::px4::Inputs inputs_;
  rlt::px4::MeasurementTopics measurements_;
  rlt::px4::CommanderMode commander_;
  rlt::px4::PolicyFolder folder_;
  uint64_t stops_us_ = 0;       // since when
  bool sticks_take_it_ = true;  // by PX4's parameter
  int32_t fallback_mode_ = 4;   // of RLT_FALLBACK, as far as it was one of its values
  // Who works on the deployment outside of Run(), which then leaves it alone.
  px4::atomic<int> guest_{kNobody};
  px4::atomic<int> offset_{0};  // that the shell was given, for Run()
  rlt::px4::Reason reported_ = rlt::px4::Reason::none;
  orb_advert_t mavlink_log_ = nullptr;

  // Messages are members: a work queue's stack is small.
  actuator_motors_s motors_{};
  parameter_update_s parameter_update_{};
  vehicle_command_s command_{};
  vehicle_status_s status_{};
  vehicle_thrust_setpoint_s thrust_{};

  uORB::Subscription parameter_update_sub_{ORB_ID(parameter_update)};
  uORB::Subscription status_sub_{ORB_ID(vehicle_status)};

  rlt::px4::LastingPublication<actuator_motors_s> motors_pub_{ORB_ID(actuator_motors)};
  rlt::px4::LastingPublication<vehicle_command_s> command_pub_{ORB_ID(vehicle_command)};
  rlt::px4::LastingPublication<vehicle_thrust_setpoint_s> thrust_pub_{
      ORB_ID(vehicle_thrust_setpoint)};

  DEFINE_PARAMETERS((ParamInt<px4::params::RLT_HEADING>)heading_,
                    (ParamInt<px4::params::RLT_FALLBACK>)fallback_,
                    (ParamFloat<px4::params::RLT_SAFE_THR>)safe_thrust_,
                    (ParamInt<px4::params::RLT_AGE_RATES>)age_rates_ms_,
                    (ParamInt<px4::params::RLT_AGE_ATT>)age_attitude_ms_,
                    (ParamInt<px4::params::RLT_AGE_POS>)age_position_ms_,
                    (ParamInt<px4::params::RLT_AGE_SP>)age_setpoint_ms_,
                    (ParamInt<px4::params::RLT_TRIAL>)trial_s_)
};
