// Within torch/types.h the sketch is there already.
#include <assay/sketch.h>
