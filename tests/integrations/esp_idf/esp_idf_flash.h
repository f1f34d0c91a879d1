// ESP-IDF's partitions and mutexes, played: a NOR flash, in which writing only clears bits and
// erasing sets those of whole sectors, whose power can fail at any byte.
#pragma once

#include <cstring>
#include <stdexcept>
#include <vector>

#include "esp_idf_interface.h"
#include "rltools/core/random.h"

namespace esp_idf_flash {

constexpr std::uint32_t kSector = 4096;
constexpr std::uint64_t kNever = ~std::uint64_t{0};

struct PowerCut {};

// What is left of the unit that was being changed.
enum class Left { prefix, garbage };

struct Flash {
  std::vector<std::uint32_t> words = std::vector<std::uint32_t>(4 * kSector / 4, 0x5a5a5a5au);
  std::uint64_t budget = kNever, changed = 0;
  Left left = Left::prefix;
  bool fails = false;
  int writes = 0, erases = 0;

  std::uint8_t* bytes() { return reinterpret_cast<std::uint8_t*>(words.data()); }
  void cut_after(std::uint64_t count, Left what_is_left) { budget = count, left = what_is_left; }
  void never_cut() { budget = kNever; }

  std::uint8_t random_byte(std::size_t place) {
    return static_cast<std::uint8_t>(rlt::uniform<float>(
        {9, rlt::Purpose::shuffle, 0}, static_cast<std::uint32_t>(changed + 7 * place), 0, 256));
  }
  // The power fails before the byte at `place`.
  void spend(std::size_t place, std::size_t end, bool erases_bits) {
    if (budget == 0) {
      for (std::size_t i = place; left == Left::garbage && i < end; i++) {
        // Bits that were being cleared, or set, have changed or not.
        bytes()[i] = erases_bits ? std::uint8_t(bytes()[i] | random_byte(i))
                                 : std::uint8_t(bytes()[i] & random_byte(i));
      }
      throw PowerCut{};
    }
    if (budget != kNever) budget--;
    changed++;
  }
};

inline Flash flash;
inline esp_partition_t the_partition{nullptr,
                                     ESP_PARTITION_TYPE_DATA,
                                     ESP_PARTITION_SUBTYPE_DATA_UNDEFINED,
                                     0x110000,
                                     4 * kSector,
                                     kSector,
                                     "policies",
                                     false,
                                     false};

}  // namespace esp_idf_flash

extern "C" {

const esp_partition_t* esp_partition_find_first(esp_partition_type_t type,
                                                esp_partition_subtype_t subtype,
                                                const char* label) {
  const esp_partition_t& found = esp_idf_flash::the_partition;
  const bool fits = type == found.type &&
                    (subtype == found.subtype || subtype == ESP_PARTITION_SUBTYPE_ANY) &&
                    std::strcmp(label, found.label) == 0;
  return fits ? &found : nullptr;
}

esp_err_t esp_partition_write(const esp_partition_t* partition, std::size_t offset, const void* src,
                              std::size_t size) {
  auto& flash = esp_idf_flash::flash;
  if (offset % 4 != 0 || size % 4 != 0 || offset + size > partition->size) {
    throw std::logic_error("written beyond the partition, or not in words");
  }
  flash.writes++;
  if (flash.fails) return ESP_FAIL;
  const auto* source = static_cast<const std::uint8_t*>(src);
  for (std::size_t i = 0; i < size; i++) {
    std::uint8_t& byte = flash.bytes()[offset + i];
    if ((source[i] & ~byte) != 0) throw std::logic_error("writing cannot set a bit");
    flash.spend(offset + i, offset + size, false);
    byte = static_cast<std::uint8_t>(byte & source[i]);
  }
  return ESP_OK;
}

esp_err_t esp_partition_erase_range(const esp_partition_t* partition, std::size_t offset,
                                    std::size_t size) {
  auto& flash = esp_idf_flash::flash;
  if (offset % esp_idf_flash::kSector != 0 || size % esp_idf_flash::kSector != 0 ||
      offset + size > partition->size) {
    throw std::logic_error("erased in parts of a sector");
  }
  flash.erases++;
  if (flash.fails) return ESP_FAIL;
  for (std::size_t i = offset; i < offset + size; i++) {
    flash.spend(i, offset + size, true);
    flash.bytes()[i] = 0xff;
  }
  return ESP_OK;
}

esp_err_t esp_partition_mmap(const esp_partition_t* partition, std::size_t offset, std::size_t size,
                             esp_partition_mmap_memory_t memory, const void** out_ptr,
                             esp_partition_mmap_handle_t* out_handle) {
  if (offset + size > partition->size || memory != ESP_PARTITION_MMAP_DATA) return ESP_FAIL;
  *out_ptr = esp_idf_flash::flash.bytes() + offset;
  *out_handle = 1;
  return ESP_OK;
}

// A mutex that is taken twice would never be given.
SemaphoreHandle_t xSemaphoreCreateMutexStatic(StaticSemaphore_t* memory) {
  memory->words[0] = nullptr;
  return reinterpret_cast<SemaphoreHandle_t>(memory);
}
BaseType_t xSemaphoreTake(SemaphoreHandle_t semaphore, TickType_t ticks) {
  auto& memory = *reinterpret_cast<StaticSemaphore_t*>(semaphore);
  if (memory.words[0] != nullptr || ticks != portMAX_DELAY) throw std::logic_error("never given");
  memory.words[0] = &memory;
  return 1;
}
BaseType_t xSemaphoreGive(SemaphoreHandle_t semaphore) {
  auto& memory = *reinterpret_cast<StaticSemaphore_t*>(semaphore);
  if (memory.words[0] != &memory) throw std::logic_error("not taken");
  memory.words[0] = nullptr;
  return 1;
}
}
