"""The names of the notes in the store: small facts about this machine that several processes share."""

SPEEDS = "speeds"  # what the workers measured: model -> seconds per replay at a batch of 1 and of 8
SLOTS = "slots"  # runs that are played at the same time at most, here or on a cluster
DEVICE = "device"  # what they compute on: cpu, cuda, mps
SERVER = "server"  # when the web server last said that it is alive
RECORDED = "recorded"  # the id of the run that a newcomer sees first
RECORDINGS = "recordings"  # which recorded runs are here: id -> digest of what was recorded
LOG = "log"  # since when the write-ahead log holds what was deleted, because somebody read while it was to be emptied
CLOCK = "clock"  # the time when the store was last swept: a clock that jumps is told by it
CLUSTER = "cluster"  # where the workers are: the address of a Ray cluster, empty for this machine
CLUSTER_NAMESPACE = "cluster namespace"  # under what name the workers of this store are known there
