// What the sample uses of Zephyr's kernel (docs.zephyrproject.org, Kernel Services: Timers, Cycle
// counter); tests play it.
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct {
  int64_t us;
} k_timeout_t;
#define K_USEC(count) ((k_timeout_t){(count)})
struct k_timer {
  int64_t period_us;
};
typedef void (*k_timer_expiry_t)(struct k_timer* timer);
typedef void (*k_timer_stop_t)(struct k_timer* timer);
void k_timer_init(struct k_timer* timer, k_timer_expiry_t expiry, k_timer_stop_t stop);
void k_timer_start(struct k_timer* timer, k_timeout_t duration, k_timeout_t period);
uint32_t k_timer_status_sync(struct k_timer* timer);
uint32_t k_cycle_get_32(void);
uint32_t k_cyc_to_us_ceil32(uint32_t cycles);
