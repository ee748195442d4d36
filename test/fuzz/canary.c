/* A target with a fault: it reads one byte too far when the input begins with "!". */
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static volatile uint8_t seen;
    if (size > 0 && data[0] == '!')
        seen = data[size];
    return seen == 255;
}
