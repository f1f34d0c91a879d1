// MAVLink's headers include it, and call nothing of it.
#pragma once
