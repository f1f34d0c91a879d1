// A topic that stays advertised when the module ends.
//
// PX4 has no count of who publishes: the destructor of uORB::Publication marks instance 0 of its
// topic as advertised by nobody, and no subscriber then gets what PX4's own modules publish, since
// those advertise once, at their start. actuator_motors would be dead until PX4 restarts.
#pragma once

#include <uORB/Publication.hpp>

namespace rlt::px4 {

template <class T>
class LastingPublication : public uORB::Publication<T> {
 public:
  using uORB::Publication<T>::Publication;
  // PX4 keeps the topic of a publication, and the next start finds it.
  ~LastingPublication() { this->_handle = nullptr; }
};

}  // namespace rlt::px4
