"""As much of NVML as the library asks of it; nothing is known of a card's clocks and power."""

from made_up import DRIVER, present

NVML_SUCCESS = 0


class NVMLError(Exception):
    """What NVML refuses."""


def nvmlInit():
    """There is a driver unless nothing is there."""
    if not present():
        raise NVMLError("Driver Not Loaded")


def nvmlShutdown():
    """Nothing to do."""


def nvmlSystemGetDriverVersion():
    """Version of the driver."""
    return DRIVER


def nvmlDeviceGetCount():
    """Number of cards."""
    return len(present())


def nvmlDeviceGetHandleByIndex(index):
    """A card."""
    return present()[index]


def nvmlDeviceGetHandleByUUID(uuid):
    """Made-up cards have no sensors."""
    raise NVMLError("Not Supported")


def nvmlDeviceGetCudaComputeCapability(card):
    """Major and minor."""
    return divmod(int(card["arch"].removeprefix("sm_")), 10)


def nvmlDeviceGetUUID(card):
    """Identity."""
    return card["uuid"]


def nvmlDeviceGetName(card):
    """Name."""
    return card["name"]
