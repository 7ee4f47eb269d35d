// torch's own torch/types.h, with what it includes replaced by assay/aten.h; then factories and operators by name.
#ifndef ASSAY_TYPES
#define ASSAY_TYPES

#include <assay/aten.h>

#define ASSAY_WITHIN_TYPES
#include_next <torch/types.h>
#undef ASSAY_WITHIN_TYPES

#endif
// Outside the guard, as in every umbrella header: a precompiled header has seen another file of this name.
#include <assay/operators.h>
