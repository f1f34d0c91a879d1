// FreeRTOS's, as far as firmware/esp32 uses it.
#pragma once

#include <stdint.h>

#if defined(__STRICT_ANSI__)
#error "ESP-IDF's header counts a macro's arguments as GNU's preprocessor does: -std=gnu++17"
#endif

typedef unsigned UBaseType_t;
typedef uint32_t TickType_t;
