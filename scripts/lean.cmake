# Read by project() of llama-cpp-python. Its own CMakeLists forces LLAMA_BUILD_COMMON on in the cache; a normal
# variable wins over the cache (policy CMP0126), and leaves out the helpers of llama.cpp's tools, which we never call.
set(LLAMA_BUILD_COMMON OFF)
