# libdas. `make help` lists the targets and variables.
# One makefile, not recursive; sources are found by wildcard.

# ---------------------------------------------------------------------------
# make deps demo, make deps check: packages first, then make again, so that it
# looks for compilers and libraries after they have been installed.
# ---------------------------------------------------------------------------
ifneq ($(filter deps,$(MAKECMDGOALS)),)
.PHONY: deps $(MAKECMDGOALS)
.NOTPARALLEL:
deps:
	@.ci/install-packages
AFTER_DEPS := $(filter-out deps,$(MAKECMDGOALS))
ifneq ($(AFTER_DEPS),)
$(AFTER_DEPS): deps
	@$(MAKE) --no-print-directory $@
endif
else

# ---------------------------------------------------------------------------
# Settings
# ---------------------------------------------------------------------------
O       ?= build
CUDA    ?= auto
OPENCL  ?= auto
V       ?=
WERROR  ?=

PREFIX      ?= /usr/local
prefix      ?= $(PREFIX)
exec_prefix ?= $(prefix)
includedir  ?= $(prefix)/include
libdir      ?= $(exec_prefix)/lib
pkgconfigdir ?= $(libdir)/pkgconfig

INSTALL      ?= install
INSTALL_DATA ?= $(INSTALL) -m 644
PKG_CONFIG   ?= pkg-config
PYTHON       ?= python3
OBJCOPY      ?= objcopy
CUDA_HOME    ?= /usr/local/cuda

# All processors, unless told otherwise.
ifeq ($(filter -j% --jobserver%,$(MAKEFLAGS)),)
MAKEFLAGS += -j$(shell nproc 2>/dev/null || echo 1)
endif

Q := $(if $(V),,@)
say = $(if $(V),,@printf '  %-7s %s\n' $(1) $(2))

version := $(shell sed -n 's/^.define DAS_VERSION_[A-Z]* \([0-9]*\)$$/\1/p' include/das/das.h)
empty :=
version := $(subst $(empty) $(empty),.,$(strip $(version)))
# Number of the ABI, apart from the release: 0 while the header may still change.
abi := 0

# The products of the default build go to lib/, those of others stay with them.
L := $(if $(filter build,$(O)),lib,$(O)/lib)
to_lib := $(if $(filter build,$(O)),../../lib,../lib)

# ---------------------------------------------------------------------------
# Compiler
# ---------------------------------------------------------------------------
machine := $(shell $(CC) -dumpmachine 2>/dev/null)
das_cflags := -std=c11 -O2 -fPIC -fvisibility=hidden -ffp-contract=off -pthread \
              -Wall -Wextra -Wpedantic -Wconversion $(if $(WERROR),-Werror)
das_cppflags := -D_GNU_SOURCE -Iinclude -Isrc
compile = $(CC) $(das_cppflags) $(defines_$(notdir $*)) $(das_cflags) $(flags_$(notdir $*)) \
          $(CPPFLAGS) $(CFLAGS) -MMD -MP -MF $(@:.o=.d) -c -o $@ $<
link_flags := -pthread $(CFLAGS) $(LDFLAGS)

# Instruction sets: each in a file of its own, chosen when the program runs.
# gcc 12 for aarch64 stops with an internal error where it vectorises loops around vectors that are written out.
fast_flags := -O3 -fno-math-errno -fno-trapping-math $(if $(filter aarch64-%,$(machine)),-fno-tree-loop-vectorize)
flags_cpu_avx2     := $(fast_flags) -mavx2 -mfma -mf16c
flags_cpu_avx512   := $(fast_flags) -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mf16c
flags_cpu_neon     := $(fast_flags)
flags_cpu_portable := $(fast_flags)
flags_cpu_fold     := $(fast_flags)
general_flags := -O3 -fno-math-errno -fno-trapping-math
flags_cpu_scalar   := $(general_flags)
flags_cpu_double   := $(general_flags)
flags_cpu_avx2_general   := $(flags_cpu_avx2)
flags_cpu_avx2_double    := $(flags_cpu_avx2)
flags_cpu_avx512_general := $(flags_cpu_avx512)
flags_cpu_avx512_double  := $(flags_cpu_avx512)

# ---------------------------------------------------------------------------
# Sources
# ---------------------------------------------------------------------------
sources := $(sort $(wildcard src/*.c src/cpu/*.c))
ifeq ($(filter x86_64-%,$(machine)),)
sources := $(filter-out src/cpu/cpu_avx%.c,$(sources))
endif
ifeq ($(filter aarch64-%,$(machine)),)
sources := $(filter-out src/cpu/cpu_neon%.c,$(sources))
endif

# CUDA: nvcc makes a fat binary of the kernels, which cuda_fatbin.c embeds.
cuda_kernels := $(wildcard src/cuda/cuda_kernels.cu)
ifeq ($(CUDA),0)
NVCC :=
else
NVCC ?= $(firstword $(shell command -v nvcc 2>/dev/null) $(wildcard $(CUDA_HOME)/bin/nvcc))
endif
with_cuda := $(and $(NVCC),$(cuda_kernels),$(wildcard src/cuda/cuda_fatbin.c))
ifeq ($(CUDA)$(with_cuda),1)
$(error CUDA=1, but nvcc is neither on the PATH nor in CUDA_HOME ($(CUDA_HOME)))
endif
cuda_sources := $(if $(with_cuda),$(filter-out src/cuda/cuda_stub.c,$(wildcard src/cuda/*.c)),src/cuda/cuda_stub.c)
sources += $(sort $(cuda_sources))

ifneq ($(with_cuda),)
# SASS for these, as far as this nvcc knows them, and PTX of the newest.
CUDA_ARCHS ?= 75 80 86 89 90 100 120
cuda_known := $(subst sm_,,$(shell $(NVCC) --list-gpu-code))
cuda_archs := $(filter $(cuda_known),$(CUDA_ARCHS))
NVCCFLAGS ?=
nvcc_flags := -std=c++17 -O3 -fmad=false --threads 2 -Xfatbin -compress-all -Isrc -Iinclude \
              $(foreach a,$(cuda_archs),-gencode arch=compute_$(a),code=sm_$(a)) \
              -gencode arch=compute_$(lastword $(cuda_archs)),code=compute_$(lastword $(cuda_archs)) $(NVCCFLAGS)
fatbin := $(O)/cuda_kernels.fatbin
defines_cuda_fatbin := -DDAS_CUDA_FATBIN_PATH='"$(fatbin)"'
# For messages: 13.0 is 13000.
cuda_version := $(shell $(NVCC) --version | sed -n 's/.*release \([0-9]*\)\.\([0-9]*\).*/\1 \2/p')
defines_cuda_device := -DDAS_CUDA_ARCHS='"$(addprefix sm_,$(cuda_archs))"' \
                       $(if $(cuda_version),-DDAS_CUDA_TOOLKIT_VERSION=$(word 1,$(cuda_version))0$(word 2,$(cuda_version))0)
endif

# OpenCL: the source of the kernels is embedded and compiled by the driver.
with_opencl := $(if $(filter 0,$(OPENCL)),,$(wildcard src/opencl/opencl_source.c))
ifeq ($(OPENCL)$(with_opencl),1)
$(error OPENCL=1, but src/opencl/opencl_source.c is missing)
endif
opencl_sources := $(if $(with_opencl),$(filter-out src/opencl/opencl_stub.c,$(wildcard src/opencl/*.c)),src/opencl/opencl_stub.c)
sources += $(sort $(opencl_sources))
opencl_kernels := $(firstword $(wildcard src/opencl/opencl_kernels.cl src/opencl/*.cl))
defines_opencl_source := -DDAS_OPENCL_SOURCE_PATH='"$(opencl_kernels)"' -DDAS_KERNEL_HEADER_PATH='"src/kernel.h"'

objects := $(sources:%.c=$(O)/%.o)

# Optional libraries of the programs, never of libdas.
have = $(shell $(PKG_CONFIG) --exists $(1) 2>/dev/null && echo $(1))
cjson := $(firstword $(call have,libcjson) $(call have,cjson))
fftw  := $(call have,fftw3)
png   := $(call have,libpng)
found := $(strip $(cjson) $(fftw) $(png))
program_cppflags := $(if $(cjson),-DDAS_HAVE_CJSON) $(if $(fftw),-DDAS_HAVE_FFTW) $(if $(png),-DDAS_HAVE_PNG) \
                    $(if $(found),$(shell $(PKG_CONFIG) --cflags $(found)))
program_libs := $(if $(found),$(shell $(PKG_CONFIG) --libs $(found))) -lm

numbered := $(sort $(wildcard examples/[0-9]*.c))
commands := $(sort $(wildcard examples/das_*.c))
helpers  := $(filter-out $(numbered) $(commands),$(wildcard examples/*.c))
bench_source := $(wildcard tests/das_bench.c)
# Tests of a backend's own parts need it built.
missing := $(if $(with_cuda),,cuda) $(if $(with_opencl),,opencl)
left_out := $(foreach m,$(missing),$(patsubst %,without=$(m):%,$(wildcard tests/test_$(m)_*.c)))
test_sources := $(sort $(filter-out $(foreach m,$(missing),tests/test_$(m)_%.c),$(wildcard tests/test_*.c)))
test_helpers := $(filter-out tests/test_%.c tests/fuzz_%.c $(bench_source),$(wildcard tests/*.c))
test_scripts := $(sort $(wildcard tests/test_*.sh tests/test_*.py tests/*/test_*.sh tests/*/test_*.py tests/*/test_*.jl tests/*/test_*.m))

buildable_commands := $(if $(cjson),$(commands),$(filter-out examples/das_image.c,$(commands)))
program_of = $(patsubst %.c,$(O)/bin/%,$(notdir $(1)))
example_programs := $(call program_of,$(numbered) $(buildable_commands))
bench_program    := $(call program_of,$(bench_source))
test_programs    := $(patsubst tests/%.c,$(O)/tests/%,$(test_sources))

# TESTS=words: only the tests whose names contain one of them.
TESTS ?=
selected = $(if $(TESTS),$(sort $(foreach t,$(TESTS),$(foreach f,$(1),$(if $(findstring $(t),$(notdir $(f))),$(f))))),$(1))

outside_objects := $(patsubst %.c,$(O)/%.o,$(numbered) $(commands) $(helpers) $(bench_source) $(test_sources) $(test_helpers))

soname := libdas.so.$(abi)
real   := libdas.so.$(abi).$(version:0.%=%)
shared := $(L)/$(real)
static := $(L)/libdas.a

# ---------------------------------------------------------------------------
# Targets
# ---------------------------------------------------------------------------
.PHONY: all lib tests examples bench check check-abi check-install check-sanitize check-aarch64 \
        install uninstall clean demo help FORCE
.DELETE_ON_ERROR:
.SUFFIXES:
.SECONDARY:

all: lib examples $(bench_program)

lib: $(shared) $(L)/$(soname) $(L)/libdas.so $(static)

examples: $(example_programs)
ifeq ($(cjson),)
	@echo "das_image is not built: it reads JSON with cJSON (libcjson-dev), which pkg-config does not find" >&2
endif

tests: $(test_programs)

# Rewritten only when they change, so that other settings rebuild what they touch.
settings = $(CC) $(das_cppflags) $(das_cflags) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) $(program_cppflags) $(program_libs)
$(O)/settings: FORCE
	@mkdir -p $(@D); echo "$(subst ",,$(settings))" | cmp -s - $@ || echo "$(subst ",,$(settings))" >$@
$(O)/sources: FORCE
	@mkdir -p $(@D); echo "$(objects)" | cmp -s - $@ || echo "$(objects)" >$@
FORCE:

$(objects): $(O)/%.o: %.c $(O)/settings
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(compile)

$(outside_objects): private das_cppflags += -Itests -Iexamples $(program_cppflags)
$(outside_objects): $(O)/%.o: %.c $(O)/settings
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(compile)

ifneq ($(with_cuda),)
$(O)/src/cuda/cuda_fatbin.o: $(fatbin)
$(O)/nvcc-settings: FORCE
	@mkdir -p $(@D); echo "$(NVCC) $(nvcc_flags)" | cmp -s - $@ || echo "$(NVCC) $(nvcc_flags)" >$@
$(fatbin): $(cuda_kernels) $(O)/nvcc-settings
	$(call say,NVCC,"$< for $(cuda_archs)")
	$(Q)$(NVCC) $(nvcc_flags) -fatbin -MMD -MP -MT $@ -MF $@.d -o $@ $<
endif
ifneq ($(with_opencl),)
$(O)/src/opencl/opencl_source.o: $(wildcard src/opencl/*.cl) src/kernel.h
endif

$(shared): $(objects) src/libdas.map $(O)/sources
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -shared -o $@ $(objects) -Wl,-soname,$(soname) -Wl,--version-script,src/libdas.map \
	    -Wl,-z,defs,-z,now,-z,relro,-z,nodelete -Wl,--as-needed $(link_flags) -lm

$(L)/$(soname): $(shared)
	$(Q)ln -sf $(real) $@
$(L)/libdas.so: $(L)/$(soname)
	$(Q)ln -sf $(soname) $@

# One object, in which only the public names are left global.
$(static): $(objects) $(O)/sources
	$(call say,AR,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -r -nostdlib -o $(O)/das.o $(objects)
	$(Q)$(OBJCOPY) --localize-hidden $(O)/das.o
	$(Q)rm -f $@ && $(AR) rcs $@ $(O)/das.o

# For the tests, which reach the internals.
$(O)/libdas-internal.a: $(objects) $(O)/sources
	$(Q)rm -f $@ && $(AR) rcs $@ $(objects)
test_archive := $(O)/libtesting.a
$(test_archive): $(patsubst %.c,$(O)/%.o,$(test_helpers))
	$(Q)rm -f $@ && $(AR) rcs $@ $^
program_archive := $(O)/libprograms.a
$(program_archive): $(patsubst %.c,$(O)/%.o,$(helpers))
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(example_programs): $(O)/bin/%: $(O)/examples/%.o $(program_archive) $(L)/libdas.so
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -o $@ $< $(program_archive) -L$(L) -ldas '-Wl,-rpath,$$ORIGIN/$(to_lib)' $(link_flags) \
	    -Wl,--as-needed $(program_libs)

# The oracle is all that it takes from the tests.
$(bench_program): $(O)/bin/%: $(O)/tests/%.o $(test_archive) $(program_archive) $(L)/libdas.so
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -o $@ $< $(test_archive) $(program_archive) -L$(L) -ldas '-Wl,-rpath,$$ORIGIN/$(to_lib)' $(link_flags) \
	    -Wl,--as-needed $(program_libs)

$(test_programs): $(O)/tests/%: $(O)/tests/%.o $(test_archive) $(program_archive) $(O)/libdas-internal.a
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -o $@ $< $(test_archive) $(program_archive) $(O)/libdas-internal.a $(link_flags) -Wl,--as-needed $(program_libs)

-include $(objects:.o=.d) $(outside_objects:.o=.d) $(if $(with_cuda),$(wildcard $(fatbin).d))

# ---------------------------------------------------------------------------
# Checks. Each prints PASS, FAIL and SKIP lines and ends with the totals.
# ---------------------------------------------------------------------------
test_environment = DAS_BIN='$(abspath $(O)/bin)' DAS_LIB='$(abspath $(L))' DAS_BUILD='$(abspath $(O))' CC='$(CC)' PYTHON='$(PYTHON)' \
                   MAKE='$(MAKE)' $(if $(DAS_SHARED),DAS_SHARED='$(DAS_SHARED)',$(if $(wildcard ../shared),DAS_SHARED='$(abspath ../shared)'))
run_tests = $(test_environment) tests/run_tests.sh

check: all tests
	@$(run_tests) $(call selected,$(test_programs) $(test_scripts) $(left_out))

# The ABI against the recorded one, with abidiff.
check-abi: lib
	@$(run_tests) tests/check_abi.sh

# Installs to a scratch folder and builds users of it in C, C++ and Python.
check-install: lib
	@$(run_tests) tests/check_install.sh

# The small tests under the sanitizers of the compiler. Threads without OpenCL, whose driver is not instrumented.
sanitize_flags := -g -O1 -fno-omit-frame-pointer -fno-sanitize-recover=all
asan_tests := $(filter-out tests/test_layout.c,$(test_sources))
tsan_tests := $(filter tests/test_contract_%.c tests/test_fuzz.c,$(test_sources))
check-sanitize:
	@$(MAKE) --no-print-directory O=$(O)/asan CUDA_ARCHS=90 CFLAGS='$(sanitize_flags) -fsanitize=address,undefined $(CFLAGS)' tests
	@$(MAKE) --no-print-directory O=$(O)/tsan CUDA=0 OPENCL=0 CFLAGS='$(sanitize_flags) -fsanitize=thread $(CFLAGS)' tests
	@DAS_TEST_SMALL=1 LSAN_OPTIONS=suppressions=tests/leaks.txt:print_suppressions=0 $(run_tests) \
	    "$(O)/asan/tests/test_conformance --cases 1" "$(O)/tsan/tests/test_conformance --device cpu --only repeat" \
	    $(filter-out %/test_conformance,$(asan_tests:tests/%.c=$(O)/asan/tests/%)) $(tsan_tests:tests/%.c=$(O)/tsan/tests/%)

# The library for aarch64, its arithmetic under emulation.
check-aarch64:
	@$(MAKE) --no-print-directory O=$(O)/aarch64 CUDA=0 OPENCL=0 CC=aarch64-linux-gnu-gcc AR=aarch64-linux-gnu-ar \
	    OBJCOPY=aarch64-linux-gnu-objcopy PKG_CONFIG=false lib tests
	@DAS_TEST_SMALL=1 TEST_RUNNER='qemu-aarch64 -L /usr/aarch64-linux-gnu' $(run_tests) \
	    $(O)/aarch64/tests/test_layout "$(O)/aarch64/tests/test_conformance --device cpu --only table" \
	    "$(O)/aarch64/tests/test_conformance --device cpu --only edges" \
	    "$(O)/aarch64/tests/test_conformance --device cpu --only random --cases 1"

bench: $(bench_program)
	@tests/run_bench.sh $(O)/bin/das_bench

demo: all
	@$(test_environment) examples/demo.sh $(O)

# ---------------------------------------------------------------------------
# Installation
# ---------------------------------------------------------------------------
installed = $(includedir)/das/das.h $(libdir)/$(real) $(libdir)/$(soname) $(libdir)/libdas.so $(libdir)/libdas.a \
            $(pkgconfigdir)/libdas.pc

install: lib
	$(INSTALL) -d $(DESTDIR)$(includedir)/das $(DESTDIR)$(libdir) $(DESTDIR)$(pkgconfigdir)
	$(INSTALL_DATA) include/das/das.h $(DESTDIR)$(includedir)/das/das.h
	$(INSTALL_DATA) $(shared) $(DESTDIR)$(libdir)/$(real)
	ln -sf $(real) $(DESTDIR)$(libdir)/$(soname)
	ln -sf $(soname) $(DESTDIR)$(libdir)/libdas.so
	$(INSTALL_DATA) $(static) $(DESTDIR)$(libdir)/libdas.a
	sed -e 's|@prefix@|$(prefix)|' -e 's|@includedir@|$(includedir:$(prefix)/%=$${prefix}/%)|' \
	    -e 's|@libdir@|$(libdir:$(prefix)/%=$${prefix}/%)|' \
	    -e 's|@version@|$(version)|' libdas.pc.in >$(O)/libdas.pc
	$(INSTALL_DATA) $(O)/libdas.pc $(DESTDIR)$(pkgconfigdir)/libdas.pc

uninstall:
	rm -f $(addprefix $(DESTDIR),$(installed))
	-rmdir $(DESTDIR)$(includedir)/das $(DESTDIR)$(pkgconfigdir) 2>/dev/null

clean:
	rm -rf $(O)
	rm -f lib/libdas.*

help:
	@sed -n 's/^#? //p' Makefile
#? Targets
#?   all             library, programs, benchmark (default)
#?   deps            installs what building and checking need (apt; asks sudo if not root)
#?   demo            simulates a phantom, reconstructs it, writes $(O)/demo.png
#?   check           all tests; the last line is the totals
#?   check-abi       the ABI against tests/abi
#?   check-install   installs to a scratch folder and builds users of it
#?   check-sanitize  tests under ASan + UBSan and under TSan
#?   check-aarch64   cross-compiles and tests under qemu
#?   bench           measures
#?   lib, examples, tests    parts of all and check
#?   install, uninstall, clean
#? Variables
#?   O=build         folder for what is built; libraries of the default go to lib/
#?   CC, CFLAGS, CPPFLAGS, LDFLAGS    yours are added after libdas's own
#?   WERROR=1        warnings are errors
#?   CUDA=auto|0|1   with the CUDA backend: if there is nvcc, no, or stop without it
#?   CUDA_HOME, NVCC, NVCCFLAGS, CUDA_ARCHS
#?   OPENCL=auto|0|1 with the OpenCL backend (needs nothing to build)
#?   TESTS=words     only tests whose names contain one of the words
#?   DAS_SHARED=dir  recordings for the tests that use them
#?   PREFIX, DESTDIR and the other GNU directory variables; V=1 shows commands
endif
