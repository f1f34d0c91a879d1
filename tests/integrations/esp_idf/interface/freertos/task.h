#include "esp_idf_interface.h"
