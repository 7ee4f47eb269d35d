// torch's own torch/types.h, with what it includes replaced by assay/aten.h; then factories and operators by name.
#pragma once

#include <assay/aten.h>

#define ASSAY_WITHIN_TYPES
#include_next <torch/types.h>
#undef ASSAY_WITHIN_TYPES

#include <assay/operators.h>
