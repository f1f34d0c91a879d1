// What the component for ESP-IDF uses of it, declared as in its headers (6.0); tests play it.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// -- esp_err.h
typedef int esp_err_t;
#define ESP_OK 0
#define ESP_FAIL -1
#define ESP_ERR_INVALID_ARG 0x102
#define ESP_ERR_INVALID_STATE 0x103
#define ESP_ERR_INVALID_SIZE 0x104
#define ESP_ERR_NOT_FOUND 0x105
#define ESP_ERR_NOT_SUPPORTED 0x106
void test_error_check(esp_err_t error);
#define ESP_ERROR_CHECK(x) test_error_check(x)

// -- esp_partition.h
typedef struct esp_flash_t esp_flash_t;
typedef enum { ESP_PARTITION_MMAP_DATA, ESP_PARTITION_MMAP_INST } esp_partition_mmap_memory_t;
typedef uint32_t esp_partition_mmap_handle_t;
typedef enum {
  ESP_PARTITION_TYPE_APP = 0x00,
  ESP_PARTITION_TYPE_DATA = 0x01,
  ESP_PARTITION_TYPE_ANY = 0xff
} esp_partition_type_t;
typedef enum {
  ESP_PARTITION_SUBTYPE_DATA_UNDEFINED = 0x06,
  ESP_PARTITION_SUBTYPE_ANY = 0xff
} esp_partition_subtype_t;
typedef struct {
  esp_flash_t* flash_chip;
  esp_partition_type_t type;
  esp_partition_subtype_t subtype;
  uint32_t address;
  uint32_t size;
  uint32_t erase_size;
  char label[17];
  bool encrypted;
  bool readonly;
} esp_partition_t;
const esp_partition_t* esp_partition_find_first(esp_partition_type_t type,
                                                esp_partition_subtype_t subtype, const char* label);
esp_err_t esp_partition_write(const esp_partition_t* partition, size_t dst_offset, const void* src,
                              size_t size);
esp_err_t esp_partition_erase_range(const esp_partition_t* partition, size_t offset, size_t size);
esp_err_t esp_partition_mmap(const esp_partition_t* partition, size_t offset, size_t size,
                             esp_partition_mmap_memory_t memory, const void** out_ptr,
                             esp_partition_mmap_handle_t* out_handle);

// -- FreeRTOS
typedef int BaseType_t;
typedef unsigned int UBaseType_t;
typedef uint32_t TickType_t;
typedef struct {
  void* words[20];
} StaticSemaphore_t;
typedef struct QueueDefinition* SemaphoreHandle_t;
typedef struct tskTaskControlBlock* TaskHandle_t;
typedef void (*TaskFunction_t)(void*);
#define portMAX_DELAY ((TickType_t)0xffffffffUL)
#define configTICK_RATE_HZ 1000
#define configMAX_PRIORITIES 25
#define pdMS_TO_TICKS(ms) ((TickType_t)(((uint64_t)(ms) * configTICK_RATE_HZ) / 1000U))
SemaphoreHandle_t xSemaphoreCreateMutexStatic(StaticSemaphore_t* memory);
BaseType_t xSemaphoreTake(SemaphoreHandle_t semaphore, TickType_t ticks);
BaseType_t xSemaphoreGive(SemaphoreHandle_t semaphore);
BaseType_t xTaskCreate(TaskFunction_t code, const char* name, uint32_t stack_bytes,
                       void* parameters, UBaseType_t priority, TaskHandle_t* created);
TickType_t xTaskGetTickCount(void);
void vTaskDelay(TickType_t ticks);
BaseType_t xTaskDelayUntil(TickType_t* woken, TickType_t ticks);
#define vTaskDelayUntil(woken, ticks)    \
  do {                                   \
    (void)xTaskDelayUntil(woken, ticks); \
  } while (0)

// -- sdkconfig.h: the defaults of the component's Kconfig
#ifndef CONFIG_RLT_POLICY_MAX_ACTIONS
#define CONFIG_RLT_POLICY_MAX_ACTIONS 8
#define CONFIG_RLT_POLICY_WIDEST_LAYER 64
#define CONFIG_RLT_POLICY_RECURRENT_UNITS 16
#define CONFIG_RLT_POLICY_ACTIVATIONS 0x0b
#endif

#ifdef __cplusplus
}
#endif
