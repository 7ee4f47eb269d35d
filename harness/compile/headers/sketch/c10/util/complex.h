#include <assay/complex.h>
