#include <assay/aten.h>

#include <assay/operators.h>
