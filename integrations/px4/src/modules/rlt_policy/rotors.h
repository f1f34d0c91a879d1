// Which of PX4's motors is which rotor of the contract. PX4 numbers motors as the airframe likes
// (for its "Generic Quadcopter" 1 front right, 2 rear left, 3 front left, 4 rear right), and its
// parameters say where each one is: CA_ROTORn_PX (forward), CA_ROTORn_PY (right), CA_ROTORn_KM
// (positive where the rotor turns counter-clockwise, seen from above).
#pragma once

#include <cstdint>

namespace rlt::px4 {

constexpr int kRotors = 4;

struct Rotor {
  float forward, right;  // position
  float moment;          // its sign is the direction of rotation
};

// The rotors of policy/contracts/quadrotor.h, by signs.
constexpr Rotor kContractRotors[kRotors] = {{1, 1, 1}, {-1, 1, -1}, {-1, -1, 1}, {1, -1, -1}};

// motors[i] is PX4's motor, from 0, that is rotor i of the contract. False where the airframe is
// not a quadrotor in X whose rotors turn as the contract's.
inline bool find_motors(const Rotor* airframe, int count, std::uint8_t* motors) {
  if (count != kRotors) return false;
  for (int i = 0; i < kRotors; i++) {
    int found = 0;
    for (int motor = 0; motor < kRotors; motor++) {
      const Rotor& wanted = kContractRotors[i];
      const Rotor& rotor = airframe[motor];
      if (wanted.forward * rotor.forward > 0 && wanted.right * rotor.right > 0 &&
          wanted.moment * rotor.moment > 0) {
        motors[i] = static_cast<std::uint8_t>(motor);
        found++;
      }
    }
    if (found != 1) return false;
  }
  return true;
}

}  // namespace rlt::px4
