// Kinds of kernel parameters, by which arguments are checked. loaded.py names them.
#pragma once
#include <type_traits>

namespace launchwise_cpu {

enum : unsigned { POINTER, INTEGER, FLOATING, STRUCTURE, BFLOAT16 };

template <typename T>
struct KindOf
    : std::integral_constant<unsigned, std::is_pointer<T>::value                           ? POINTER
                                       : std::is_integral<T>::value || std::is_enum<T>::value ? INTEGER
                                       : std::is_floating_point<T>::value                     ? FLOATING
                                                                                              : STRUCTURE> {};

}  // namespace launchwise_cpu
