// The picture of an environment: flat shapes, whose numbers are expressions of its channels.
// docs/environments.md, "A picture", has the kinds, the looks and the functions. An environment
// that has one lists it:
//   static constexpr Shape kPicture[] = {{"view", "", "-1.3, -1.3, 1.3, 1.3"},
//                                        {"rod", "body", "0, 0, -sin_angle, cos_angle, 0.14"}};
// Host tools read it from descriptions; nothing of it is in firmware.
#pragma once

namespace rlt {

struct Shape {
  const char* kind;
  const char* look;
  const char* numbers;
};

}  // namespace rlt
