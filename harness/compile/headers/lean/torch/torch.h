// The C++ frontend's umbrella header, less what a kernel never needs.
#include <torch/types.h>
