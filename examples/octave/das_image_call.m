% image = das_image_call (rf, element_x, fs, c, x, z, program)
%
% Reconstructs plane-wave data (straight down) in Octave or MATLAB through the das_image program: writes the samples and
% an acquisition.json into a temporary folder, runs das_image and reads the .npy back. Needs no compiled extension.
%   rf         samples x elements
%   element_x  positions of the elements along x, in metres
%   fs, c      sampling frequency in Hz, sound speed in m/s
%   x, z       evenly spaced positions of the image, in metres
%   program    das_image, with its folder where it is not on the PATH
%   image      numel(z) x numel(x), the raw sum
function image = das_image_call (rf, element_x, fs, c, x, z, program)
  if (nargin < 7)
    program = 'das_image';
  end
  folder = tempname ();
  mkdir (folder);
  f = fopen (fullfile (folder, 'rf.bin'), 'w', 'ieee-le');
  fwrite (f, rf, 'single');
  fclose (f);
  f = fopen (fullfile (folder, 'elements.csv'), 'w');
  fprintf (f, 'x_m,y_m,z_m\n');
  fprintf (f, '%.9g,0,0\n', element_x);
  fclose (f);
  f = fopen (fullfile (folder, 'acquisition.json'), 'w');
  fprintf (f, '{"data": {"file": "rf.bin", "dtype": "<f4", "axes": ["receive", "sample"], "shape": [%d, %d]},\n', ...
           size (rf, 2), size (rf, 1));
  fprintf (f, ' "sampling_frequency_hz": %.17g, "sound_speed_m_s": %.17g,\n', fs, c);
  fprintf (f, ' "receive": {"positions_m": "elements.csv"}, "transmits": [{"type": "plane", "angle_rad": 0}]}\n');
  fclose (f);
  npy = fullfile (folder, 'image.npy');
  command = sprintf ('%s --x %.9g:%.9g:%d --z %.9g:%.9g:%d %s %s', program, x(1), x(end), numel (x), z(1), z(end), ...
                     numel (z), fullfile (folder, 'acquisition.json'), npy);
  [status, text] = system ([command ' 2>&1']);
  if (status ~= 0)
    error ('%s', text);
  end
  f = fopen (npy, 'r', 'ieee-le');
  fseek (f, 8, 'bof');
  header = fread (f, 1, 'uint16');
  fseek (f, 10 + header, 'bof');
  image = fread (f, [numel(x), numel(z)], 'single')';
  fclose (f);
  delete (fullfile (folder, '*'));
  rmdir (folder);
end
