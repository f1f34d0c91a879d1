// ESP-IDF's flash partitions, as a system header: our warnings are not for them.
#pragma once
#pragma GCC system_header

#include <esp_partition.h>
#include <esp_system.h>
