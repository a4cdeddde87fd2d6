# libdas from Julia, through ccall. No packages. The library is sought in the folder DAS_LIB, then where the system looks.
#
#     julia examples/julia/das.jl
#
# reconstructs a simulated point. `include` the file from elsewhere to use the module alone.
module Das

const library = haskey(ENV, "DAS_LIB") ? joinpath(ENV["DAS_LIB"], "libdas.so") : "libdas.so.0"
const TYPE_F32 = Int32(6)
const TYPE_CF32 = Int32(10)

mutable struct ErrorStruct
    struct_size::UInt32
    status::Int32
    message::NTuple{512,UInt8}
    ErrorStruct() = new(sizeof(ErrorStruct), 0, ntuple(_ -> 0x00, 512))
end

function check(status::Int32, e::ErrorStruct)
    status == 0 && return
    name = unsafe_string(ccall((:das_status_name, library), Cstring, (Int32,), status))
    text = String(collect(Iterators.takewhile(!=(0x00), e.message)))
    error("$name: $text")
end

version() = unsafe_string(ccall((:das_version_string, library), Cstring, ()))

# Each object owns one handle, released by the garbage collector.
for (type, destroy) in ((:Device, :das_device_destroy), (:Acquisition, :das_acquisition_destroy),
                        (:Grid, :das_grid_destroy), (:Options, :das_options_destroy), (:Plan, :das_plan_destroy))
    @eval mutable struct $type
        handle::Ptr{Cvoid}
        function $type(handle::Ptr{Cvoid})
            object = new(handle)
            finalizer(o -> ccall(($(QuoteNode(destroy)), library), Cvoid, (Ref{Ptr{Cvoid}},), Ref(o.handle)), object)
        end
    end
end

function Device(name::String="auto")
    handle, e = Ref{Ptr{Cvoid}}(C_NULL), ErrorStruct()
    check(ccall((:das_device_open, library), Int32, (Cstring, Ptr{Cvoid}, Ref{Ptr{Cvoid}}, Ref{ErrorStruct}),
                name, C_NULL, handle, e), e)
    Device(handle[])
end

function Acquisition()
    handle, e = Ref{Ptr{Cvoid}}(C_NULL), ErrorStruct()
    check(ccall((:das_acquisition_create, library), Int32, (Ref{Ptr{Cvoid}}, Ref{ErrorStruct}), handle, e), e)
    Acquisition(handle[])
end

function Options()
    handle, e = Ref{Ptr{Cvoid}}(C_NULL), ErrorStruct()
    check(ccall((:das_options_create, library), Int32, (Ref{Ptr{Cvoid}}, Ref{ErrorStruct}), handle, e), e)
    Options(handle[])
end

# Setters with one double; the others are written likewise from include/das/das.h.
for (name, symbol, type) in ((:add_plane_transmit!, :das_acquisition_add_plane_transmit, :Acquisition),
                             (:set_sampling_frequency!, :das_acquisition_set_sampling_frequency, :Acquisition),
                             (:set_sound_speed!, :das_acquisition_set_sound_speed, :Acquisition),
                             (:set_demodulation_frequency!, :das_acquisition_set_demodulation_frequency, :Acquisition),
                             (:set_f_number!, :das_options_set_f_number, :Options))
    @eval function $name(object::$type, value::Real)
        e = ErrorStruct()
        check(ccall(($(QuoteNode(symbol)), library), Int32, (Ptr{Cvoid}, Float64, Ref{ErrorStruct}), object.handle, value, e), e)
    end
end

# positions: 3 x count, in metres. Julia's column order makes a column one element.
function set_receive_elements!(a::Acquisition, positions::Matrix{Float64})
    size(positions, 1) == 3 || error("positions are 3 x count")
    e = ErrorStruct()
    check(ccall((:das_acquisition_set_receive_elements, library), Int32, (Ptr{Cvoid}, Int64, Ptr{Float64}, Ref{ErrorStruct}),
                a.handle, size(positions, 2), positions, e), e)
end

function set_data!(a::Acquisition, type::Int32, samples::Integer)
    e = ErrorStruct()
    check(ccall((:das_acquisition_set_data, library), Int32, (Ptr{Cvoid}, Int32, Int64, Ref{ErrorStruct}),
                a.handle, type, samples, e), e)
end

# steps: 3 x 3, a column per axis; axis 1 is the fastest in the image, so image[ix, iy, iz].
function Grid(origin::Vector{Float64}, steps::Matrix{Float64}, counts::Vector{Int64})
    handle, e = Ref{Ptr{Cvoid}}(C_NULL), ErrorStruct()
    check(ccall((:das_grid_create_cartesian, library), Int32,
                (Ptr{Float64}, Ptr{Float64}, Ptr{Int64}, Ref{Ptr{Cvoid}}, Ref{ErrorStruct}), origin, steps, counts, handle, e), e)
    Grid(handle[])
end

function Plan(device::Device, acquisition::Acquisition, grid::Grid, options=nothing)
    handle, e = Ref{Ptr{Cvoid}}(C_NULL), ErrorStruct()
    check(ccall((:das_plan_create, library), Int32,
                (Ptr{Cvoid}, Ptr{Cvoid}, Ptr{Cvoid}, Ptr{Cvoid}, Ref{Ptr{Cvoid}}, Ref{ErrorStruct}), device.handle,
                acquisition.handle, grid.handle, options === nothing ? C_NULL : options.handle, handle, e), e)
    Plan(handle[])
end

# data: samples first, as in data[sample, receive, transmit, frame].
function reconstruct!(image::Array, plan::Plan, data::Array)
    e = ErrorStruct()
    check(ccall((:das_reconstruct_host, library), Int32,
                (Ptr{Cvoid}, Ptr{Cvoid}, Csize_t, Ptr{Cvoid}, Csize_t, Ptr{Cvoid}, Ref{ErrorStruct}), plan.handle, data,
                sizeof(data), image, sizeof(image), C_NULL, e), e)
    image
end

end # module

if abspath(PROGRAM_FILE) == @__FILE__
    fs, speed, centre, samples = 25e6, 1540.0, 5e6, 1024
    point = (2e-3, 20e-3)
    x = ((0:63) .- 31.5) .* 0.3e-3
    tau = (point[2] .+ hypot.(x .- point[1], point[2])) ./ speed
    cycles = ((0:samples-1) ./ fs .- tau') .* centre
    rf = Float32.(exp.(-1.5 .* cycles .^ 2) .* cos.(2pi .* cycles))

    acquisition = Das.Acquisition()
    Das.set_receive_elements!(acquisition, [x'; zeros(1, 64); zeros(1, 64)])
    Das.add_plane_transmit!(acquisition, 0.0)
    Das.set_sampling_frequency!(acquisition, fs)
    Das.set_sound_speed!(acquisition, speed)
    Das.set_data!(acquisition, Das.TYPE_F32, samples)
    grid = Das.Grid([-8e-3, 0.0, 10e-3], [0.2e-3 0 0; 0 0 0; 0 0.2e-3 0], [81, 101, 1])
    plan = Das.Plan(Das.Device("auto"), acquisition, grid)
    image = Das.reconstruct!(zeros(Float32, 81, 101), plan, rf)
    ix, iz = Tuple(argmax(abs.(image)))
    bx, bz = -8e-3 + (ix - 1) * 0.2e-3, 10e-3 + (iz - 1) * 0.2e-3
    println("libdas $(Das.version()): brightest at x $(round(1e3bx, digits=1)) mm, z $(round(1e3bz, digits=1)) mm")
    exit(abs(bx - point[1]) > 0.21e-3 || abs(bz - point[2]) > 0.21e-3 ? 1 : 0)
end
