% A point, seen by 64 elements after a plane wave:   octave plane_wave.m
% The folder of das_image is taken from the environment variable DAS_BIN, else it must be on the PATH.
fs = 25e6; c = 1540; centre = 5e6; samples = 1024;
point = [2e-3, 20e-3];
element_x = ((0:63) - 31.5) * 0.3e-3;
tau = (point(2) + hypot (element_x - point(1), point(2))) / c;
cycles = bsxfun (@minus, (0:samples-1)' / fs, tau) * centre;
rf = exp (-1.5 * cycles .^ 2) .* cos (2 * pi * cycles);
x = linspace (-8e-3, 8e-3, 81); z = linspace (10e-3, 30e-3, 101);
image = das_image_call (rf, element_x, fs, c, x, z, fullfile (getenv ('DAS_BIN'), 'das_image'));
[~, best] = max (abs (image(:)));
[iz, ix] = ind2sub (size (image), best);
printf ('brightest at x %.1f mm, z %.1f mm\n', x(ix) * 1e3, z(iz) * 1e3);
assert (abs (x(ix) - point(1)) < 0.21e-3 && abs (z(iz) - point(2)) < 0.21e-3);
