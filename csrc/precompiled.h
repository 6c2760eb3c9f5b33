// precompiled.h: what nearly every file of the core includes, parsed once a build (CMakeLists.txt). Only headers that
// an edit of ours does not touch. Files include what they use all the same, so that a build without it works as well.
#pragma once

#include "array/numpy.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>
