// Between the test's C and its C++.
#pragma once

#include "rlt_policy.h"

#ifdef __cplusplus
extern "C" {
#endif
extern const rlt_contract_t contract_in_c;
esp_err_t init_in_c(const char* partition, const uint8_t* built_in, uint32_t bytes);
#ifdef __cplusplus
}
#endif
