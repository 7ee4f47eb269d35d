#include <assay/sketch.h>
