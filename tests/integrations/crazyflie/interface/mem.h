#include "crazyflie_interface.h"
