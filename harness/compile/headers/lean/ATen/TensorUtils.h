// Every ATen/ops header includes this one, and none needs it. The real header where the source names what it holds.
#ifdef ASSAY_WANTS_TENSORUTILS
#include_next <ATen/TensorUtils.h>
#endif
