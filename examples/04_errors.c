/* What goes wrong is told by a status and, if a das_error is given, by a sentence. Nothing is printed or ended by the
 * library itself, and a setter that fails leaves the object as it was. */
#include "example.h"

int main(void)
{
    das_error error = DAS_ERROR_INIT;
    das_acquisition *acquisition = make_acquisition();
    das_device *device = NULL;
    int unexpected = 0;

    if (das_acquisition_set_sound_speed(acquisition, -1540, &error) == DAS_ERROR_ARGUMENT)
        printf("%s: %s\n", das_status_name(error.status), error.message);
    else
        unexpected++;

    if (das_device_open("cuda:99", NULL, &device, &error) != DAS_OK)
        printf("%s: %s\n", das_status_name(error.status), error.message);
    else
        unexpected++;
    unexpected += device != NULL; /* a failing call leaves no handle behind */

    /* the das_error is optional */
    unexpected += das_acquisition_set_sampling_frequency(acquisition, 0, NULL) != DAS_ERROR_ARGUMENT;

    das_acquisition_destroy(&acquisition);
    das_acquisition_destroy(&acquisition); /* NULL by now, and that is fine */
    return unexpected;
}
