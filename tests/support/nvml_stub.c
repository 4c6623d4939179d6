/* Stands in for libnvidia-ml.so.1 on a machine without a driver: one card, constant answers.

   Built for a test of what is asked of NVML, in which units, and what happens when it refuses.
   OLD_DRIVER leaves out what drivers before 535 do not have. The variable REFUSED names, between
   commas, the functions that answer "not supported" (field values: each value, not the call). */
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, NOT_SUPPORTED = 3, NOT_FOUND = 6 };

typedef struct {
    unsigned int field_id, scope_id;
    long long timestamp, latency_us;
    int value_type, result;
    union { double d; unsigned int ui; unsigned long long ull; } value;
} field_value;

static int answer(const char *name)
{
    const char *refused = getenv("REFUSED");
    for (size_t n = strlen(name); refused && (refused = strstr(refused, name)); refused += n)
        if (refused[n] == ',' || refused[n] == '\0')
            return NOT_SUPPORTED;
    return SUCCESS;
}

#define ANSWER(pointer, value) do { *(pointer) = (value); return answer(__func__); } while (0)

int nvmlInitWithFlags(unsigned int flags) { (void)flags; return answer(__func__); }
int nvmlShutdown(void) { return SUCCESS; }
const char *nvmlErrorString(int result) { return result == NOT_FOUND ? "Not Found" : "Not Supported"; }

int nvmlDeviceGetHandleByUUID(const char *uuid, void **handle)
{
    static int card;
    *handle = &card;
    return strcmp(uuid, "GPU-stub") ? NOT_FOUND : SUCCESS;
}

int nvmlDeviceGetClockInfo(void *card, int kind, unsigned int *mhz)
{
    (void)card;
    ANSWER(mhz, kind == 1 ? 1980 : kind == 2 ? 3201 : 0);
}

int nvmlDeviceGetTemperature(void *card, int sensor, unsigned int *celsius)
{
    (void)card;
    ANSWER(celsius, sensor == 0 ? 41 : 0);
}

int nvmlDeviceGetPowerUsage(void *card, unsigned int *mw) { (void)card; ANSWER(mw, 300500); }

int nvmlDeviceGetTotalEnergyConsumption(void *card, unsigned long long *mj)
{
    (void)card;
    ANSWER(mj, 5000000250ULL); /* beyond 32 bits, as after months */
}

int nvmlDeviceGetCurrentClocksThrottleReasons(void *card, unsigned long long *mask)
{
    (void)card;
    ANSWER(mask, 0x21);
}

#ifndef OLD_DRIVER
int nvmlDeviceGetCurrentClocksEventReasons(void *card, unsigned long long *mask)
{
    (void)card;
    ANSWER(mask, 0x44);
}

int nvmlDeviceGetFieldValues(void *card, int count, field_value *values)
{
    (void)card;
    for (int i = 0; i < count; i++) {
        values[i].result = values[i].field_id == 186 ? answer(__func__) : NOT_SUPPORTED;
        values[i].value.ui = 612250;
    }
    return SUCCESS;
}
#endif
