# Cross-compiles with zig's Clang, which brings the headers and libraries of its targets. scripts/prebuild.mjs passes:
#   TILEWORK_ZIG         the program
#   TILEWORK_ZIG_TARGET  for example x86_64-linux-gnu.2.28: processor, system, C library and its lowest version
if(TILEWORK_ZIG_TARGET MATCHES "-windows-")
  set(CMAKE_SYSTEM_NAME Windows)
elseif(TILEWORK_ZIG_TARGET MATCHES "-macos")
  set(CMAKE_SYSTEM_NAME Darwin)
  # A cross compiler has no SDK of Xcode to look for, and zig takes the lowest version from its target.
  set(CMAKE_OSX_SYSROOT "")
  set(CMAKE_OSX_DEPLOYMENT_TARGET "")
  set(CMAKE_SHARED_LINKER_FLAGS_INIT -s)
else()
  set(CMAKE_SYSTEM_NAME Linux)
endif()
string(REGEX MATCH "^[^-]+" CMAKE_SYSTEM_PROCESSOR "${TILEWORK_ZIG_TARGET}")
# Optimised also where CMake tests the compiler: zig would first build a libc++ without optimisation for a test that links.
# zig writes debug information unless told not to, a fifth of the compile time, which the linker would strip.
set(CMAKE_CXX_COMPILER "${TILEWORK_ZIG}" c++ -O3 -g0 -target ${TILEWORK_ZIG_TARGET})
set(CMAKE_CXX_ARCHIVE_CREATE "\"${TILEWORK_ZIG}\" ar qc <TARGET> <OBJECTS>")
set(CMAKE_CXX_ARCHIVE_APPEND "\"${TILEWORK_ZIG}\" ar q <TARGET> <OBJECTS>")
set(CMAKE_CXX_ARCHIVE_FINISH "\"${TILEWORK_ZIG}\" ranlib <TARGET>")

# Most compiler tests link nothing, so a configure takes seconds.
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES TILEWORK_ZIG TILEWORK_ZIG_TARGET)
