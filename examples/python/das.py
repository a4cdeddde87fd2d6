"""libdas from Python, through ctypes. Nothing but the standard library; NumPy arrays are welcome wherever memory is.

    import das
    device = das.Device("auto")
    acquisition = das.Acquisition()
    acquisition.set_receive_elements(positions)            # [[x, y, z], ...] in metres
    acquisition.add_plane_transmit(0.0)
    acquisition.set_sampling_frequency(20e6)
    acquisition.set_sound_speed(1540.0)
    acquisition.set_data(das.TYPE_F32, samples)
    grid = das.Grid.cartesian(origin, steps, counts)
    image = das.Plan(device, acquisition, grid).reconstruct(rf)    # memoryview: image[z, x]

Every method is the C function of the same name with the object, the counts of arrays and the error left out:
das_acquisition_set_sound_speed() is Acquisition.set_sound_speed(). include/das/das.h says what they do. A call that fails
raises das.Error. The library is sought in the folder DAS_LIB; without it where the system looks, then in lib/ of the source tree.
"""
import ctypes
import ctypes.util
import os
from ctypes import POINTER, byref, c_char, c_double, c_float, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p

(TYPE_I8, TYPE_U8, TYPE_I16, TYPE_U16, TYPE_F16, TYPE_F32, TYPE_F64, TYPE_CI16, TYPE_CF16, TYPE_CF32, TYPE_CF64) = range(1, 12)
NEAREST, LINEAR, QUADRATIC, CUBIC, LANCZOS = range(5)
WINDOW_RECT, WINDOW_HANN, WINDOW_HAMMING, WINDOW_TUKEY = range(4)
NORMALIZATION_NONE, NORMALIZATION_COUNT, NORMALIZATION_WEIGHTS = range(3)
OUTSIDE_ZERO, OUTSIDE_CLAMP = range(2)
PRECISION_EXACT, PRECISION_REDUCED, PRECISION_DOUBLE = range(3)


class _ErrorStruct(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("status", c_int32), ("message", c_char * 512)]


class _Info(ctypes.Structure):
    """An output structure, whose first field is its own size."""

    def __init__(self):
        super().__init__(struct_size=ctypes.sizeof(self))


class DeviceInfo(_Info):
    _fields_ = [("struct_size", c_uint32), ("is_gpu", c_int32), ("has_double", c_int32), ("compute_units", c_int32),
                ("memory_bytes", c_uint64), ("max_buffer_bytes", c_uint64), ("name", c_char * 64), ("description", c_char * 256)]


class PlanInfo(_Info):
    _fields_ = [("struct_size", c_uint32), ("image_type", c_int32), ("image_shape", c_int64 * 6), ("image_strides", c_int64 * 6),
                ("points", c_int64), ("pairs", c_int64), ("input_bytes", c_uint64), ("output_bytes", c_uint64),
                ("plan_bytes", c_uint64), ("slot_bytes", c_uint64), ("slots", c_int32), ("tiles", c_int32)]


class Timing(_Info):
    _fields_ = [("struct_size", c_uint32), ("reserved", c_uint32), ("upload_ms", c_double), ("pack_ms", c_double),
                ("compute_ms", c_double), ("download_ms", c_double)]


class Error(Exception):
    """Attributes: status (a negative number) and name ("DAS_ERROR_ARGUMENT")."""

    def __init__(self, error):
        self.status, self.name = error.status, _lib.das_status_name(error.status).decode()
        super().__init__(f"{self.name}: {error.message.decode(errors='replace')}")


def _load():
    folder = os.environ.get("DAS_LIB")
    if folder:
        return ctypes.CDLL(os.path.join(folder, "libdas.so"))
    tree = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "lib", "libdas.so")
    for name in (ctypes.util.find_library("das"), "libdas.so.0", tree):
        try:
            if name:
                return ctypes.CDLL(name)
        except OSError:
            pass
    raise OSError("libdas is neither installed nor built in lib/; the variable DAS_LIB may name its folder")


_lib = _load()
for _name in ("das_version_string", "das_status_name", "das_plan_description"):
    getattr(_lib, _name).restype = ctypes.c_char_p
_lib.das_status_name.argtypes = [c_int32]
_lib.das_plan_description.argtypes = [c_void_p]


def _call(name, *arguments):
    error = _ErrorStruct(struct_size=ctypes.sizeof(_ErrorStruct))
    function = getattr(_lib, "das_" + name)
    function.restype = c_int32
    if function(*arguments, byref(error)) != 0:
        raise Error(error)


def _flat(values):
    for value in values:
        if hasattr(value, "__iter__"):
            yield from _flat(value)
        else:
            yield value


def _array(kind, values):
    if hasattr(values, "tolist"):
        values = values.tolist()
    flat = list(_flat(values))
    return (kind * len(flat))(*flat)


def _memory(thing, writable=False):
    """A ctypes view of any contiguous buffer, kept alive by the caller."""
    view = memoryview(thing)
    if not view.c_contiguous:
        raise ValueError("memory is not contiguous")
    if view.readonly:
        if writable:
            raise ValueError("memory is read-only")
        return (c_char * view.nbytes).from_buffer_copy(view.cast("B"))
    return (c_char * view.nbytes).from_buffer(view.cast("B"))


# What the methods take, one letter an argument: d double, i int32, q int64, Q uint64; a list of n doubles: 3;
# D, F, I: doubles, floats, int64 with their count before them; P: positions, three doubles each; ? may be None.
_METHODS = {
    "acquisition": {
        "set_receive_elements": "P", "set_receive_normals": "P", "set_receive_weights": "D", "set_receive_delays": "D",
        "add_element_transmit": "3", "add_element_transmits": "", "add_plane_transmit": "d",
        "add_plane_direction_transmit": "3?", "add_diverging_transmit": "3?", "add_focused_transmit": "3?",
        "add_oneway_transmit": "", "clear_transmits": "", "set_transmit_weights": "D", "set_transmit_delays": "D",
        "set_start_times": "D", "set_sampling_frequency": "d", "set_sound_speed": "d", "set_demodulation_frequency": "d",
        "set_data": "iq", "set_frame_count": "q", "set_sample_offset": "d", "set_data_strides": "qqqqq",
        "set_trace_strides": "qqqq"},
    "options": {
        "set_interpolation": "i", "set_f_number": "d", "set_window": "id", "set_window_table": "D", "set_normalization": "i",
        "set_keep_transmit": "i", "set_keep_receive": "i", "set_outside": "i", "set_precision": "i", "set_image_type": "i",
        "set_phase_reference": "i", "set_max_in_flight": "q", "set_incremental": "i", "set_memory_budget": "Q",
        "set_fast_paths": "i", "set_transmit_times": "D2", "set_receive_times": "D2", "set_transmit_weights": "F2",
        "set_receive_weights": "F2"},
    "run": {"set_frames": "qqq", "set_transmits": "qq", "set_accumulate": "i", "enable_timing": "i"},
}
_SCALARS = {"d": c_double, "i": c_int32, "q": c_int64, "Q": c_uint64}


def _convert(signature, arguments):
    if signature in ("D2", "F2"):  # a table [rows][points]
        rows, = arguments
        table = _array(c_double if signature == "D2" else c_float, rows)
        return [c_int64(len(rows)), c_int64(len(table) // len(rows)), table]
    if len(signature) != len(arguments):
        raise TypeError(f"{len(signature)} arguments expected")
    converted = []
    for letter, value in zip(signature, arguments):
        if letter in _SCALARS:
            converted.append(_SCALARS[letter](value))
        elif letter in "3?":
            converted.append(None if value is None else _array(c_double, value))
        else:
            array = _array(c_double, value)
            converted += [c_int64(len(array) // 3 if letter == "P" else len(array)), array]
    return converted


class _Object:
    """Owns one handle; `kind` is the word after das_ in its functions."""
    kind = None

    def __init__(self, create, *arguments):
        self.handle, self.borrowed = c_void_p(), {}
        _call(create, *arguments, byref(self.handle))

    def __del__(self):
        if getattr(self, "handle", None):
            getattr(_lib, f"das_{self.kind}_destroy")(byref(self.handle))

    def __init_subclass__(cls):
        for name, signature in _METHODS.get(cls.kind, {}).items():
            def method(self, *arguments, _name=f"{cls.kind}_{name}", _signature=signature):
                if len(arguments) < len(_signature) and _signature.endswith("?"):
                    arguments += (None,)
                converted = _convert(_signature, arguments)
                _call(_name, self.handle, *converted)
                if _signature in ("D2", "F2"):  # the library reads tables when the plan is made
                    self.borrowed[_name] = converted
            method.__name__ = name
            setattr(cls, name, method)


class _DeviceOptions(_Object):
    kind = "device_options"

    def __init__(self):
        super().__init__("device_options_create")


class Device(_Object):
    kind = "device"

    def __init__(self, name="auto", threads=0, isa=None):
        options = _DeviceOptions()
        _call("device_options_set_thread_count", options.handle, c_int64(threads))
        _call("device_options_set_isa", options.handle, isa and isa.encode())
        super().__init__("device_open", name.encode(), options.handle)

    def info(self):
        info = DeviceInfo()
        _call("device_get_info", self.handle, byref(info))
        return info


class Acquisition(_Object):
    kind = "acquisition"

    def __init__(self):
        super().__init__("acquisition_create")

    def set_traces(self, transmit, receive, weight=None):
        weights = None if weight is None else _array(c_double, weight)
        _call("acquisition_set_traces", self.handle, c_int64(len(transmit)), _array(c_int64, transmit),
              _array(c_int64, receive), weights)

    def set_pair_weights(self, weights):
        _call("acquisition_set_pair_weights", self.handle, *_convert("D2", (weights,)))


class Grid(_Object):
    kind = "grid"

    @classmethod
    def cartesian(cls, origin, steps, counts):
        """steps: up to three vectors; counts: up to three numbers, the first axis being the fastest in the image."""
        steps = list(_flat(steps))
        counts = list(counts)
        return cls("grid_create_cartesian", _array(c_double, origin), _array(c_double, steps + [0.0] * (9 - len(steps))),
                   _array(c_int64, counts + [1] * (3 - len(counts))))

    @classmethod
    def polar(cls, apex, angles, radii, elevations=(0.0,)):
        return cls("grid_create_polar", _array(c_double, apex), c_int64(len(angles)), _array(c_double, angles),
                   c_int64(len(elevations)), _array(c_double, elevations), c_int64(len(radii)), _array(c_double, radii))

    @classmethod
    def points(cls, points):
        return cls("grid_create_points", c_int64(len(points)), _array(c_double, points))


class Options(_Object):
    kind = "options"

    def __init__(self):
        super().__init__("options_create")


class Run(_Object):
    kind = "run"

    def __init__(self, device):
        super().__init__("run_create", device.handle)

    def timing(self):
        timing = Timing()
        _call("run_get_timing", self.handle, byref(timing))
        return timing


class Queue(_Object):
    kind = "queue"

    def __init__(self, device):
        super().__init__("queue_create", device.handle)
        self.memory = []  # of uploads and downloads on their way

    def wait(self):
        _call("queue_wait", self.handle)
        self.memory.clear()

    def wait_event(self, event):
        _call("queue_wait_event", self.handle, event.handle)


class Event(_Object):
    kind = "event"

    def __init__(self, device):
        super().__init__("event_create", device.handle)

    def record(self, queue):
        _call("event_record", self.handle, queue.handle)

    def wait(self):
        _call("event_wait", self.handle)

    def milliseconds_since(self, start):
        milliseconds = c_double()
        _call("event_elapsed", start.handle, self.handle, byref(milliseconds))
        return milliseconds.value


class Buffer(_Object):
    """bytes on a device; host=True: host memory that the device reaches fast."""
    kind = "buffer"

    def __init__(self, device, size, host=False):
        super().__init__("buffer_create", device.handle, c_uint64(size), c_int32(host))

    def upload(self, queue, data, offset=0):
        memory = _memory(data)
        queue.memory.append(memory)
        _call("buffer_upload", queue.handle, self.handle, c_uint64(offset), memory, c_uint64(len(memory)))

    def download(self, queue, into, offset=0):
        memory = _memory(into, writable=True)
        queue.memory.append(memory)
        _call("buffer_download", queue.handle, self.handle, c_uint64(offset), memory, c_uint64(len(memory)))


class Plan(_Object):
    kind = "plan"

    def __init__(self, device, acquisition, grid, options=None):
        super().__init__("plan_create", device.handle, acquisition.handle, grid.handle, options and options.handle)

    def info(self):
        info = PlanInfo()
        _call("plan_get_info", self.handle, byref(info))
        return info

    def description(self):
        return _lib.das_plan_description(self.handle).decode()

    def queue(self, queue, data, image, run=None):
        """das_reconstruct(): from one Buffer to another, in the order of a Queue."""
        _call("reconstruct", self.handle, queue.handle, data.handle, image.handle, run and run.handle)

    def reconstruct(self, data, image=None, run=None):
        """data: contiguous memory of samples. image: writable memory for the result, or None for a new memoryview with the
        image's axes, those of length 1 left out; complex values have a last axis of 2."""
        info = self.info()
        result = bytearray(info.output_bytes) if image is None else image
        source, target = _memory(data), _memory(result, writable=True)
        _call("reconstruct_host", self.handle, source, c_size_t(len(source)), target, c_size_t(len(target)),
              run and run.handle)
        if image is not None:
            return image
        shape = [n for n in info.image_shape if n > 1] + [2] * (info.image_type in (TYPE_CF32, TYPE_CF64))
        return memoryview(result).cast("f" if info.image_type in (TYPE_F32, TYPE_CF32) else "d", shape or [1])


def version():
    return _lib.das_version_string().decode()


def devices():
    count = c_int64()
    _call("device_count", byref(count))
    infos = [DeviceInfo() for _ in range(count.value)]
    for index, info in enumerate(infos):
        _call("device_list", c_int64(index), byref(info))
    return infos
