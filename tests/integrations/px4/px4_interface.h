// What the module of integrations/px4 uses of PX4, declared and as far as needed done by us, in
// memory: a clock, topics, parameters, a work item, a module.
// px4_build.py makes a header of each name that the module includes; all of them are this file.
// RLT_PX4_HAS_DESCRIPTOR and RLT_TEST_SETPOINT_CONFIG choose between PX4's versions.
// PX4_TEST_PARAMETERS(X) lists module.yaml: X(name, type, default).
#pragma once

#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>

#include "px4_messages.h"
#include "px4_test_parameters.h"

#define __EXPORT
#define MODULE_NAME "rlt_policy"
#define PX4_STORAGEDIR "."
enum { PX4_OK = 0, PX4_ERROR = -1 };

// -- what the test has in its hands ---------------------------------------------------------------

namespace px4_test {

inline uint64_t now_us = 1000000;
inline char lines[4][256] = {};  // the last ones, the newest first
inline char (&log)[256] = lines[0];
inline bool speaks_to_ground = false;
inline int said_to_ground = 0;  // how often
inline int rotor_count = 4;
inline float rotor_sign = 1.0f;
inline int rc_override = -1;  // COM_RC_OVERRIDE; -1: this PX4 has no such parameter
// CA_ROTORn_PX, _PY, _KM: those of airframe 4001; KM of the first two is its default.
inline float rotors[4][3] = {{1, 1, 0.05f}, {-1, -1, 0.05f}, {1, -1, -0.05f}, {-1, 1, -0.05f}};

inline void say(const char* format, ...) {
  memmove(lines[1], lines[0], sizeof(lines) - sizeof(lines[0]));
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(log, sizeof(log), format, arguments);
  va_end(arguments);
}

// How many messages a topic keeps for those who are behind: ORB_QUEUE_LENGTH.
template <class T>
constexpr unsigned kQueueLength = 1;
template <>
inline constexpr unsigned kQueueLength<arming_check_reply_s> = 4;
template <>
inline constexpr unsigned kQueueLength<register_ext_component_reply_s> = 2;
template <>
inline constexpr unsigned kQueueLength<register_ext_component_request_s> = 2;
template <>
inline constexpr unsigned kQueueLength<vehicle_command_s> = 8;

// Instance 0 of a topic, as uORB's DeviceNode is: there is one flag for all who publish, which the
// first of them sets, and whoever unadvertises clears. Publishing does not set it. Nobody sees an
// update of a topic without it. It was never counted how many publish.
struct Node {
  bool is_advertised = false;
  bool is_ours = false;  // the module has published it
};
template <class T>
struct Topic {
  static inline T message{};  // the last one
  static inline T queue[kQueueLength<T>]{};
  static inline unsigned generation = 0;
  static inline Node node{};

  static void write(const T& written) {
    message = queue[generation % kQueueLength<T>] = written;
    generation++;
  }
  // The oldest one that `seen` of them do not have.
  static bool read(T* into, unsigned& seen) {
    if (!node.is_advertised || seen == generation) return false;
    if (generation - seen > kQueueLength<T>) seen = generation - kQueueLength<T>;
    *into = queue[seen % kQueueLength<T>];
    seen++;
    return true;
  }
};

// As a module of PX4's own, which has advertised the topic when it started, and does so once.
template <class T>
void publish(const T& message) {
  static bool was_advertised = false;
  if (!was_advertised) Topic<T>::node.is_advertised = true;
  was_advertised = true;
  Topic<T>::write(message);
}

// Whatever of PX4 runs meanwhile: the commander of a test.
inline void (*each_tick)() = nullptr;
// The next allocation of this size or more fails; 0: none does.
inline size_t fails_at_bytes = 0;

}  // namespace px4_test

inline uint64_t hrt_absolute_time() { return px4_test::now_us; }
#define PX4_INFO px4_test::say
#define PX4_WARN px4_test::say
#define PX4_ERR px4_test::say
using orb_advert_t = void*;
#define mavlink_log_critical(advertisement, ...) \
  do {                                           \
    *(advertisement) = nullptr;                  \
    px4_test::speaks_to_ground = true;           \
    px4_test::said_to_ground++;                  \
    px4_test::say(__VA_ARGS__);                  \
  } while (0)

#define mavlink_log_info(advertisement, ...) \
  do {                                       \
    *(advertisement) = nullptr;              \
    px4_test::say(__VA_ARGS__);              \
  } while (0)

// -- topics ---------------------------------------------------------------------------------------

struct orb_metadata {
  const char* name;
};
#define PX4_TEST_TOPIC(topic) inline constexpr orb_metadata orb_##topic{#topic};
PX4_TEST_TOPIC(actuator_motors)
PX4_TEST_TOPIC(arming_check_reply)
PX4_TEST_TOPIC(arming_check_request)
PX4_TEST_TOPIC(config_control_setpoints)
PX4_TEST_TOPIC(manual_control_setpoint)
PX4_TEST_TOPIC(parameter_update)
PX4_TEST_TOPIC(register_ext_component_reply)
PX4_TEST_TOPIC(register_ext_component_request)
PX4_TEST_TOPIC(setpoint_config)
PX4_TEST_TOPIC(trajectory_setpoint)
PX4_TEST_TOPIC(unregister_ext_component)
PX4_TEST_TOPIC(vehicle_angular_velocity)
PX4_TEST_TOPIC(hover_thrust_estimate)
PX4_TEST_TOPIC(vehicle_attitude)
PX4_TEST_TOPIC(vehicle_command)
PX4_TEST_TOPIC(vehicle_land_detected)
PX4_TEST_TOPIC(vehicle_local_position)
PX4_TEST_TOPIC(vehicle_status)
PX4_TEST_TOPIC(vehicle_thrust_setpoint)
#define ORB_ID(topic) &orb_##topic

namespace uORB {

class Subscription {
 public:
  explicit Subscription(const orb_metadata*) {}
  template <class T>
  bool update(T* message) {
    return px4_test::Topic<T>::read(message, seen_);
  }

 private:
  unsigned seen_ = 0;
};

template <class T>
class Publication {
 public:
  Publication(const orb_metadata*) {}
  // Queued ones are left advertised.
  ~Publication() {
    if (_handle != nullptr && px4_test::kQueueLength<T> == 1) _handle->is_advertised = false;
  }
  bool publish(const T& message) {
    if (_handle == nullptr) {
      _handle = &px4_test::Topic<T>::node;
      _handle->is_advertised = _handle->is_ours = true;
    }
    px4_test::Topic<T>::write(message);
    return true;
  }

 protected:
  px4_test::Node* _handle = nullptr;
};

}  // namespace uORB

// -- parameters -----------------------------------------------------------------------------------

using param_t = const char*;
constexpr param_t PARAM_INVALID = nullptr;
inline param_t param_find(const char* name) {
  static char found[17];
  if (strcmp(name, "COM_RC_OVERRIDE") == 0 && px4_test::rc_override < 0) return PARAM_INVALID;
  snprintf(found, sizeof(found), "%s", name);
  return found;
}
inline int param_get(param_t name, int32_t* value) {
  if (strcmp(name, "CA_ROTOR_COUNT") == 0) *value = px4_test::rotor_count;
  if (strcmp(name, "COM_RC_OVERRIDE") == 0) *value = px4_test::rc_override;
  return 0;
}
inline int param_get(param_t name, float* value) {
  const char* suffix = name + strlen("CA_ROTOR0_");
  const int kind = strcmp(suffix, "PX") == 0 ? 0 : strcmp(suffix, "PY") == 0 ? 1 : 2;
  *value = px4_test::rotors[name[8] - '0'][kind] * (kind == 2 ? px4_test::rotor_sign : 1.0f);
  return 0;
}

class ModuleParams {
 public:
  explicit ModuleParams(ModuleParams*) {}
  virtual ~ModuleParams() = default;

 protected:
  void updateParams() {}
};

// -- platform, work item, module ------------------------------------------------------------------

namespace px4 {

#define PX4_TEST_ENUM(name, type, value) name,
enum class params { PX4_TEST_PARAMETERS(PX4_TEST_ENUM) };

template <class T>
class atomic {
 public:
  explicit constexpr atomic(T value) : value_(value) {}
  T load() const { return __atomic_load_n(&value_, __ATOMIC_SEQ_CST); }
  void store(T value) { __atomic_store_n(&value_, value, __ATOMIC_SEQ_CST); }
  bool compare_exchange(T* expected, T wanted) {
    return __atomic_compare_exchange_n(&value_, expected, wanted, false, __ATOMIC_SEQ_CST,
                                       __ATOMIC_SEQ_CST);
  }

 private:
  T value_;
};

struct wq_config_t {
  const char* name;
};
namespace wq_configurations {
inline constexpr wq_config_t nav_and_controllers{"nav_and_controllers"};
}

class ScheduledWorkItem {
 public:
  ScheduledWorkItem(const char*, const wq_config_t&) {}
  virtual ~ScheduledWorkItem() { ScheduleClear(); }
  virtual void Run() = 0;
  void ScheduleOnInterval(uint32_t interval) {
    interval_us = interval;
    scheduled = this;
  }
  void ScheduleClear() { scheduled = nullptr; }

  static inline ScheduledWorkItem* scheduled = nullptr;
  static inline uint32_t interval_us = 0;
};

}  // namespace px4

// Ticks pass meanwhile.
inline void px4_usleep(uint32_t time_us) {
  for (uint32_t passed_us = 0; passed_us < time_us; passed_us += 2000) {
    px4_test::now_us += 2000;
    if (px4_test::each_tick != nullptr) px4_test::each_tick();
    if (px4::ScheduledWorkItem::scheduled != nullptr) px4::ScheduledWorkItem::scheduled->Run();
  }
}

#define PX4_TEST_VALUE(name, type, value) \
  if (parameter == px4::params::name) return static_cast<T>(value);
template <class T>
constexpr T px4_test_default(px4::params parameter) {
  PX4_TEST_PARAMETERS(PX4_TEST_VALUE)
  return T{};
}
template <class T, px4::params Parameter>
struct Px4TestParameter {
  static T get() { return value; }
  static inline T value = px4_test_default<T>(Parameter);
};
template <px4::params Parameter>
using ParamInt = Px4TestParameter<int32_t, Parameter>;
template <px4::params Parameter>
using ParamFloat = Px4TestParameter<float, Parameter>;
// (type)name becomes type name
#define PX4_TEST_PLAIN(...) __VA_ARGS__
#define DEFINE_PARAMETERS(a, b, c, d, e, f, g, h) \
  PX4_TEST_PLAIN a;                               \
  PX4_TEST_PLAIN b;                               \
  PX4_TEST_PLAIN c;                               \
  PX4_TEST_PLAIN d;                               \
  PX4_TEST_PLAIN e;                               \
  PX4_TEST_PLAIN f;                               \
  PX4_TEST_PLAIN g;                               \
  PX4_TEST_PLAIN h;

inline pthread_mutex_t px4_modules_mutex = PTHREAD_MUTEX_INITIALIZER;

namespace px4_test {

// What PX4's ModuleBase does with start, stop and status. `Calls`: of a module.
template <class Calls>
int module_main(const Calls& calls, int argc, char* argv[]) {
  if (argc < 2) return calls.print_usage();
  const bool is_running = calls.task_id() != -1;
  if (strcmp(argv[1], "start") == 0) {
    if (!is_running) return calls.task_spawn(argc - 1, argv + 1);
    PX4_ERR("Task already running");
    return -1;
  }
  if (strcmp(argv[1], "stop") == 0) {
    if (!is_running) return 0;
    calls.request_stop();
    for (int i = 0; calls.task_id() != -1; i++) {
      px4_usleep(10000);
      if (i < 500) continue;
      PX4_ERR("timeout, forcing stop");
      calls.exit_and_cleanup();
      return -1;
    }
    return 0;
  }
  if (strcmp(argv[1], "status") == 0) return is_running ? calls.print_status() : -1;
  return calls.custom_command(argc - 1, argv + 1);
}

}  // namespace px4_test

#if RLT_PX4_HAS_DESCRIPTOR

class ModuleBase {
 public:
  struct Descriptor {
    Descriptor(int (*spawn)(int, char**), int (*command)(int, char**), int (*usage)(const char*))
        : task_spawn(spawn), custom_command(command), print_usage(usage) {}
    int (*task_spawn)(int argc, char* argv[]);
    int (*custom_command)(int argc, char* argv[]);
    int (*print_usage)(const char* reason);
    px4::atomic<ModuleBase*> object{nullptr};
    int task_id{-1};
  };
  virtual ~ModuleBase() = default;
  static int main(Descriptor& desc, int argc, char* argv[]) {
    struct Calls {
      Descriptor& desc;
      int task_id() const { return desc.task_id; }
      int task_spawn(int argc, char* argv[]) const { return desc.task_spawn(argc, argv); }
      int custom_command(int argc, char* argv[]) const { return desc.custom_command(argc, argv); }
      int print_usage() const { return desc.print_usage(nullptr); }
      int print_status() const { return desc.object.load()->print_status(); }
      void request_stop() const { desc.object.load()->should_exit_ = true; }
      void exit_and_cleanup() const { ModuleBase::exit_and_cleanup(desc); }
    };
    return px4_test::module_main(Calls{desc}, argc, argv);
  }
  static void exit_and_cleanup(Descriptor& desc) {
    delete desc.object.load();
    desc.object.store(nullptr);
    desc.task_id = -1;
  }
  virtual int print_status() { return 0; }
  bool should_exit() const { return should_exit_; }
  template <class T>
  static T* get_instance(Descriptor& desc) {
    return static_cast<T*>(desc.object.load());
  }
  static constexpr int task_id_is_work_queue = -2;

 private:
  bool should_exit_ = false;
};

#else

template <class T>
class ModuleBase {
 public:
  virtual ~ModuleBase() = default;
  static int main(int argc, char* argv[]) {
    struct Calls {
      int task_id() const { return _task_id; }
      int task_spawn(int argc, char* argv[]) const { return T::task_spawn(argc, argv); }
      int custom_command(int argc, char* argv[]) const { return T::custom_command(argc, argv); }
      int print_usage() const { return T::print_usage(); }
      int print_status() const { return _object.load()->print_status(); }
      void request_stop() const { static_cast<ModuleBase*>(_object.load())->should_exit_ = true; }
      void exit_and_cleanup() const { ModuleBase::exit_and_cleanup(); }
    };
    return px4_test::module_main(Calls{}, argc, argv);
  }
  static void exit_and_cleanup() {
    delete _object.load();
    _object.store(nullptr);
    _task_id = -1;
  }
  virtual int print_status() { return 0; }
  bool should_exit() const { return should_exit_; }
  static T* get_instance() { return _object.load(); }

 protected:
  static inline px4::atomic<T*> _object{nullptr};
  static inline int _task_id = -1;
  static constexpr int task_id_is_work_queue = -2;

 private:
  bool should_exit_ = false;
};

#endif

inline void PRINT_MODULE_DESCRIPTION(const char*) {}
inline void PRINT_MODULE_USAGE_NAME(const char*, const char*) {}
inline void PRINT_MODULE_USAGE_COMMAND_DESCR(const char*, const char*) {}
#define PRINT_MODULE_USAGE_COMMAND(name) PRINT_MODULE_USAGE_COMMAND_DESCR(name, nullptr)
#define PRINT_MODULE_USAGE_DEFAULT_COMMANDS()
