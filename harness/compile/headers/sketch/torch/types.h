#ifdef ASSAY_WITHIN_TYPES
#include_next <torch/types.h>
#else
#include <assay/sketch.h>
#endif
