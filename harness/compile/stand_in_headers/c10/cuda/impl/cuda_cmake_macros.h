// Generated when torch is built with CUDA, so a CPU build has none. With this one macro it says what the wheels say.
#pragma once
#define C10_CUDA_BUILD_SHARED_LIBS
