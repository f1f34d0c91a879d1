// A policy in a control loop: replace what reads the sensors and what drives the motors.
#include <policy_name.h>
#include <zephyr/kernel.h>
#include <zephyr/sys/printk.h>

static float observation[POLICY_NAME_OBSERVATION_DIM];
static float action[POLICY_NAME_ACTION_DIM];
// STATE

static void read_sensors(void) {
  // SENSORS
}

static void drive_motors(void) {
  // MOTORS
}

int main(void) {
  struct k_timer step;
  uint32_t start;

  if (!policy_name_verify()) {
    printk("this board gives other bits than those of training: there is no policy\n");
    return 1;
  }
  read_sensors();
  start = k_cycle_get_32();
  // FIRST
  printk("this board gives the bits of training; a step takes %u us of %u\n",
         (unsigned)k_cyc_to_us_ceil32(k_cycle_get_32() - start), POLICY_NAME_STEP_INTERVAL_US);

  k_timer_init(&step, NULL, NULL);
  k_timer_start(&step, K_USEC(POLICY_NAME_STEP_INTERVAL_US), K_USEC(POLICY_NAME_STEP_INTERVAL_US));
  for (;;) {
    // STEP
    read_sensors();
    if (!/* ACT */) printk("not finite: the safe action\n");
    drive_motors();
  }
}
