// Nothing on behalf of torch/types.h, the real header for whoever asks for it by name. No guard, on purpose.
#ifndef ASSAY_WITHIN_TYPES
#include_next <torch/csrc/autograd/variable.h>
#endif
