"""What the scripts that look for faults raise when they find one."""


class Fault(Exception):
    """Something that must not happen."""


def expect(holds, message):
    if not holds:
        raise Fault(message)
