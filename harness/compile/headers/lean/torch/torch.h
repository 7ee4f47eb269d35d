// The C++ frontend's umbrella header, less what a kernel never needs.
#pragma once

#include <torch/types.h>
