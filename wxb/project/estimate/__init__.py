"""What training will take, before it is begun: parameters, operations, memory, disk and time."""
