// Nothing on behalf of torch/types.h; a source that asks for it by name is not read with the sketch.
